/**
 * The decoded body, `{events: […]}`, of a request that the server signed with one of the secrets. Throws `bad_signature`,
 * or `webhook_expired` when it was signed more than `toleranceS` ago (or ahead): it may be a recorded one that is sent again.
 * @param {string | readonly string[]} secrets
 * @param {Headers | Record<string, string | string[] | undefined>} headers of Node or of fetch
 * @param {Uint8Array | string} body as it was received, not decoded and encoded again
 * @param {number} [toleranceS]
 * @returns {any}
 */
export function verifyWebhook(secrets: string | readonly string[], headers: Headers | Record<string, string | string[] | undefined>, body: Uint8Array | string, toleranceS?: number): any;
