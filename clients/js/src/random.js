// Random numbers, from the best source that is there.

/** @returns {number} at least 0 and below 1 */
export function random() {
  const crypto = globalThis.crypto;
  if (!crypto?.getRandomValues) return Math.random();
  return /** @type {number} */ (crypto.getRandomValues(new Uint32Array(1))[0]) / 2 ** 32;
}
