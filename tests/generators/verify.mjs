// Verifies one delivery, given as JSON on the standard input, with the library of Standard Webhooks.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const { secret, body, headers } = JSON.parse(readFileSync(0, "utf8"));
const got = new Webhook(secret).verify(body, headers);
try {
  new Webhook(secret).verify(body.replace("hello", "hullo"), headers);
  console.log("FORGED");
} catch (error) {
  console.log(`VERIFIED ${got.events[0].data.content} ${error.constructor.name}`);
}
