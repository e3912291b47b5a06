// Checks that a webhook was sent by the Nexo server: signatures of the Standard Webhooks specification.

import { createHmac, timingSafeEqual } from "node:crypto";

import { NexoError } from "./errors.js";

const TOLERANCE_S = 300;
const PREFIX = "whsec_";
const VERSION = "v1";
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * The decoded body, `{events: […]}`, of a request that the server signed with one of the secrets. Throws `bad_signature`,
 * or `webhook_expired` when it was signed more than `toleranceS` ago (or ahead): it may be a recorded one that is sent again.
 * @param {string | readonly string[]} secrets
 * @param {Headers | Record<string, string | string[] | undefined>} headers of Node or of fetch
 * @param {Uint8Array | string} body as it was received, not decoded and encoded again
 * @param {number} [toleranceS]
 * @returns {any}
 */
export function verifyWebhook(secrets, headers, body, toleranceS = TOLERANCE_S) {
  const found = byLowerName(headers);
  const webhookId = found.get("webhook-id") ?? "";
  const timestamp = found.get("webhook-timestamp") ?? "";
  if (!webhookId || !/^\d+$/.test(timestamp)) {
    throw new NexoError("bad_signature", "The headers webhook-id and webhook-timestamp are missing or wrong");
  }
  const raw = Buffer.from(body);
  const signed = Buffer.concat([Buffer.from(`${webhookId}.${timestamp}.`), raw]);
  const given = (found.get("webhook-signature") ?? "")
    .split(" ")
    .filter((one) => one.startsWith(`${VERSION},`))
    .map((one) => Buffer.from(one.slice(VERSION.length + 1), "base64"));
  const due = (typeof secrets === "string" ? [secrets] : secrets).map((secret) => signatureOf(secret, signed));
  // all pairs are compared, each in constant time: the time taken depends on no secret
  const matches = due.flatMap((one) => given.map((other) => one.length === other.length && timingSafeEqual(one, other)));
  if (!matches.includes(true)) throw new NexoError("bad_signature", "No signature of the request fits a secret");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > toleranceS) {
    throw new NexoError("webhook_expired", `The request was signed at ${timestamp}, more than ${toleranceS} s off`);
  }
  try {
    return JSON.parse(raw.toString("utf8"));
  } catch (error) {
    throw new NexoError("bad_reply", String(error));
  }
}

/** @param {string} secret @param {Buffer} signed */
function signatureOf(secret, signed) {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  if (!BASE64.test(text)) throw new NexoError("bad_secret", "A secret is `whsec_` and a key in base64");
  return createHmac("sha256", Buffer.from(text, "base64")).update(signed).digest();
}

/** @param {Headers | Record<string, string | string[] | undefined>} headers @returns {Map<string, string>} */
function byLowerName(headers) {
  const pairs = headers instanceof Headers ? [...headers.entries()] : Object.entries(headers);
  return new Map(pairs.map(([name, value]) => [name.toLowerCase(), String(value ?? "")]));
}
