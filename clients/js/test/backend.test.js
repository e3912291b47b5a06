// What the SDK offers to a product's backend: with a real server, and with webhooks as tests/conformance/webhooks.json has them.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";

import { NexoBackend, verifyWebhook } from "../src/backend.js";
import { NexoServer } from "./support/server.js";

const FILE = JSON.parse(readFileSync(new URL("../../../tests/conformance/webhooks.json", import.meta.url), "utf8"));
const KEYS = { a: "the first key of the hook", b: "the next key of the hook" };

const secretOf = (name) => `whsec_${Buffer.from(KEYS[name]).toString("base64")}`;
const sign = (name, signed) => `v1,${createHmac("sha256", KEYS[name]).update(signed).digest("base64")}`;
const rejects = (work, reason) => assert.rejects(work, (error) => error.reason === reason);

describe("webhooks", () => {
  for (const { name, signed_by, secrets, age_s = 0, change, outcome } of FILE.cases) {
    test(name, () => {
      const timestamp = String(Math.floor(Date.now() / 1000) - age_s);
      let { body } = FILE;
      const signatures = ["v1a,of-another-kind", ...signed_by.map((key) => sign(key, `msg_1.${timestamp}.${body}`))];
      const headers = { "Webhook-Id": "msg_1", "Webhook-Timestamp": timestamp, "Webhook-Signature": signatures.join(" ") };
      if (change === "body") body = body.replace("saved", "recalled");
      if (change === "webhook-id") headers["Webhook-Id"] = "msg_2";
      if (change === "webhook-timestamp") headers["Webhook-Timestamp"] = String(Math.floor(Date.now() / 1000));
      if (change === "no timestamp") delete headers["Webhook-Timestamp"];
      const verify = (...given) => verifyWebhook(secrets.map(secretOf), ...given, FILE.tolerance_s);
      if (outcome === "ok") {
        assert.deepEqual(verify(headers, Buffer.from(body)), JSON.parse(body));
        assert.deepEqual(verify(new Headers(headers), body), JSON.parse(body));
      } else assert.throws(() => verify(headers, body), (error) => error.reason === outcome);
    });
  }

  test("a known signature is accepted", () => {
    const { secret, webhook_id, timestamp, signature, body } = FILE.known;
    const headers = { "webhook-id": webhook_id, "webhook-timestamp": timestamp, "webhook-signature": signature };
    assert.deepEqual(verifyWebhook(secret, headers, body, Infinity), JSON.parse(body));
    assert.throws(() => verifyWebhook("whsec_ not base64", headers, body), (error) => error.reason === "bad_secret");
  });
});

describe("a backend", () => {
  let server;
  let backend;
  before(async () => {
    server = await NexoServer.start();
    backend = new NexoBackend(server.url, server.addKey("shop", "users,tokens,act"));
  });
  after(() => server?.end());

  test("makes, changes and disables users", async () => {
    const made = await backend.users.put([{ userId: "ann", nickname: "Ann", extra: { some_plan: "gold" } }]);
    assert.deepEqual(made.map(({ userId, extra }) => [userId, extra]), [["ann", { some_plan: "gold" }]]);
    await backend.users.disable("ann", "asked for it");
    const { nickname, disabled, disabledReason } = await backend.users.get("ann");
    assert.deepEqual([nickname, disabled, disabledReason], ["Ann", true, "asked for it"]);
    await rejects(backend.tokens.create("ann"), "user_disabled");
    await backend.users.enable("ann");
    assert.equal((await backend.users.get("ann")).disabled, false);
    await rejects(backend.users.get("nemo"), "user_not_found");
  });

  test("acts for its users", async () => {
    await backend.users.put(["ann", "ben", "cid"].map((userId) => ({ userId })));
    const ann = backend.act("ann");
    const sent = await ann.send("Your order is on its way", { to: "ben", clientMsgId: "order-1" });
    assert.equal(sent.seq, 1);
    const again = await ann.send("Your order is on its way", { to: "ben", clientMsgId: "order-1" });
    assert.equal(again.serverMsgId, sent.serverMsgId);
    const page = await backend.act("ben").history(sent.conversationId, { limit: 10 });
    assert.deepEqual(page.messages.map(({ senderId, content }) => [senderId, content]), [["ann", "Your order is on its way"]]);
    await backend.act("ben").markRead(sent.conversationId, 1);
    const group = await ann.groups.create({ name: "Order 1", memberIds: ["ben", "cid"] });
    const welcome = await ann.send("Welcome", { groupId: group.groupId });
    assert.equal((await ann.recall(welcome.serverMsgId)).serverMsgId, welcome.serverMsgId);
    assert.equal((await ann.users.info()).userId, "ann");
    await rejects(backend.call("GET", "/user/info"), "missing_user");
  });

  test("gives tokens and revokes sessions", async () => {
    await backend.users.put([{ userId: "dan" }]);
    const token = await backend.tokens.create("dan", { platformId: 5, deviceId: "phone", ttlS: 600 });
    assert.deepEqual([token.userId, token.deviceId, token.refreshToken], ["dan", "phone", ""]);
    assert.equal(await backend.sessions.revoke("dan", "phone"), 1);
  });
});

describe("events", () => {
  const events = [];
  const asked = [];
  let failures = [];
  let listener;
  let backend;
  before(async () => {
    listener = createServer((request, response) => {
      assert.equal(request.headers.authorization, "Bearer nexo_sk_test");
      const query = Object.fromEntries(new URL(request.url, "http://server").searchParams);
      asked.push(query);
      const failure = failures.shift();
      const begin = query.cursor === undefined ? events.length : query.cursor === "begin" ? 0 : Number(query.cursor.slice(1));
      const page = events.slice(begin, begin + Number(query.limit));
      const data = { events: page, next_cursor: `c${begin + page.length}` };
      response.end(JSON.stringify(failure ? { err_code: 1, err_msg: failure, retry_after_ms: 1 } : { err_code: 0, data }));
    }).listen(0, "127.0.0.1");
    await once(listener, "listening");
    backend = new NexoBackend(`http://127.0.0.1:${listener.address().port}`, "nexo_sk_test");
  });
  after(() => {
    listener.closeAllConnections();
    listener.close();
  });
  const add = (type) => events.push({ event_id: String(events.length + 1), type, at: 1, data: { server_msg_id: "7" } });

  test("are followed, and continue from the cursor that was stored", async () => {
    for (let count = 0; count < 3; count++) add("user.created");
    failures = ["server_busy"];
    const seen = [];
    for await (const event of backend.events("begin", { limit: 2, waitS: 1 })) {
      seen.push([event.eventId, event.cursor]);
      if (seen.length === 3) break;
    }
    assert.deepEqual(seen, [["1", "begin"], ["2", "c2"], ["3", "c3"]]);
    const { value } = await backend.events("c2").next();
    assert.deepEqual([value.eventId, value.data, value.userId], ["3", { server_msg_id: "7" }, null]);
  });

  test("a key or an address that cannot be one is refused at once, and not shown", () => {
    for (const key of ["", "\n", "nexo_sk_te st", "nexo_sk_one\nnexo_sk_two"]) {
      assert.throws(() => new NexoBackend("http://127.0.0.1:1", key), (error) => error.reason === "bad_key" && !error.message.includes("nexo_sk"));
    }
    assert.throws(() => new NexoBackend("127.0.0.1:8900", "nexo_sk_test"), { reason: "bad_url" });
    assert.equal(new NexoBackend("http://127.0.0.1:1", "nexo_sk_test\n")._key, "nexo_sk_test");
  });

  test("begin now without a cursor; an error that does not pass is thrown", async () => {
    asked.length = 0;
    const stream = backend.events(null, { types: ["message.saved", "message.recalled"], waitS: 1 });
    const next = stream.next();
    while (asked.length < 2) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([asked[0].wait_s, asked[0].cursor, asked[1].cursor], ["0", undefined, "c3"]);
    assert.equal(asked[1].types, "message.saved,message.recalled");
    add("message.saved");
    assert.equal((await next).value.eventId, "4");
    failures = ["cursor_expired"];
    await rejects(backend.events("c0").next(), "cursor_expired");
  });
});
