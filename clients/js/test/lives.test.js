// How the life of a client ends and begins again, with a real server: messages that were not handled or not sent, users of one
// device that change, tokens of the product.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { NexoBackend } from "../src/backend.js";
import { MemoryStorage } from "../src/index.js";
import { People, until } from "./support/people.js";
import { NexoServer } from "./support/server.js";

let server;
let people;
let backend;

before(async () => {
  server = await NexoServer.start();
  people = new People(server.url);
  backend = new NexoBackend(server.url, server.addKey("shop", "users,tokens,act"));
});
after(async () => {
  await people?.end();
  await server?.end();
});

test("iterators throw the reason once when the session was ended, and end when the client is closed", async () => {
  const ann = await people.connect("ann");
  const messages = ann.events("message");
  const states = ann.events("state", "session");
  const ended = assert.rejects(messages.next(), { reason: "session_invalid" });
  await backend.sessions.revoke("ann");
  await ended;
  assert.deepEqual(await messages.next(), { done: true, value: undefined });
  const seen = [(await states.next()).value, (await states.next()).value];
  assert.deepEqual(seen.map(({ name }) => name).sort(), ["session", "state"]);
  await assert.rejects(states.next(), { reason: "session_invalid" });
  const ben = await people.connect("ben");
  const others = ben.events("message");
  await ben.close();
  for await (const event of others) assert.fail(event);
});

test("an event that does not exist is refused by its name", () => {
  const client = people.make();
  assert.throws(() => client.on("nonsense", () => {}), /no event "nonsense": changed, contactDecision, contactRequest, conversations/);
  assert.throws(() => client.events("message", "nonsense"), { reason: "unknown_event" });
  assert.throws(() => client.events(), { reason: "unknown_event" });
});

test("what the last inbox left is in the next one, and what was handled is not", async () => {
  const storage = new MemoryStorage();
  const cid = await people.connect("cid");
  const dan = await people.signIn("dan", { storage });
  const inbox = dan.inbox();
  assert.throws(() => dan.inbox(), { reason: "inbox_in_use" });
  await dan.connect();
  for (const text of ["one", "two", "three", "four"]) cid.chatWith("dan").send(text);
  await cid.flush();
  for await (const { message } of inbox) if (message.content === "two") break;
  const again = dan.inbox();
  const { value: two } = await again.next();
  assert.equal(two.message.content, "two");
  two.done();
  two.done(); // a second time is nothing
  assert.equal((await again.next()).value.message.content, "three");
  await dan.close();
  const next = people.make({ storage });
  const rest = next.inbox();
  await next.connect();
  assert.deepEqual([(await rest.next()).value.message.content, (await rest.next()).value.message.content], ["three", "four"]);
});

test("closing returns what was not sent, flushing waits for it", async () => {
  const eve = await people.connect("eve");
  await people.ensure("fay");
  const sent = eve.chatWith("fay").send("in time");
  await eve.flush();
  assert.equal(sent.state, "saved");
  assert.deepEqual(await eve.close(), []);
  const late = eve.chatWith("fay").send("too late");
  await assert.rejects(eve.flush(), { reason: "offline" });
  assert.deepEqual(await eve.close(), [late]);
  await eve.connect();
  await eve.flush();
  assert.equal(late.state, "saved");
});

test("a stored session of another user is not continued", async () => {
  const storage = new MemoryStorage();
  await (await people.signIn("gus", { storage })).close();
  const client = people.make({ storage });
  assert.equal(await client.restore({ expectUser: "gus" }), true);
  assert.equal(await client.restore({ expectUser: "hal" }), false);
  assert.equal(client.userId, null);
  assert.equal(await client.restore(), false);
  await assert.rejects(client.connect(), { reason: "unauthorized" });
  const session = (await people.signIn("gus")).session;
  assert.equal(await client.restore({ session, expectUser: "hal" }), false);
  assert.equal(await client.restore(session), true);
});

test("tokens of the backend are asked for when one ends or is refused", async () => {
  await backend.users.put([{ userId: "ida" }, { userId: "support" }]);
  const livesS = [2, 600, 600];
  let given = 0;
  const getToken = async () => (await backend.tokens.create("ida", { deviceId: "page", ttlS: livesS[given++] })).accessToken;
  const client = people.make({ deviceId: "page", getToken });
  await client.connect();
  assert.deepEqual([client.userId, given], ["ida", 1]);
  await until(client, () => given === 2); // before the first one ends
  assert.equal(client.state, "online");
  await backend.sessions.revoke("ida", "page");
  await until(client, () => given === 3 && client.state === "online");
  await client.chatWith("support").send("still here").whenSaved();
});

test("without a token of the product the client ends", async () => {
  await backend.users.put([{ userId: "jan" }, { userId: "kim" }]);
  const answers = [new TypeError("fetch failed"), null];
  for (const userId of ["jan", "kim"]) answers.push((await backend.tokens.create(userId)).accessToken);
  const getToken = async () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const client = people.make({ getToken });
  await assert.rejects(client.connect(), { reason: "network" });
  await assert.rejects(client.connect(), { reason: "unauthorized" });
  await client.connect();
  await backend.sessions.revoke("jan"); // and the next token is of another user
  await until(client, () => client.state === "closed");
  assert.equal(client.stateChange.reason, "reauth_uid_mismatch");

  const last = [(await backend.tokens.create("jan", { ttlS: 3 })).accessToken, null]; // signed out from the product
  const other = people.make({ getToken: async () => last.shift() });
  await other.connect();
  await until(other, () => other.state === "closed");
  assert.equal(other.stateChange.reason, "unauthorized");
  await until(other, () => other.session === null);
});
