// Connections that are cut in the middle of frames, and a server that is killed under load: nothing is lost,
// doubled or reordered, and everybody ends up with the same.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { People, texts, until } from "./support/people.js";
import { CuttingProxy } from "./support/proxy.js";
import { NexoServer } from "./support/server.js";

const EACH = Number(process.env.NEXO_LONG_TESTS ? 3000 : 300);

let server;
let proxy;
let people;

before(async () => {
  server = await NexoServer.start();
  proxy = await CuttingProxy.start(server.port);
  people = new People(proxy.url);
});
after(async () => {
  await people?.end();
  await proxy?.stop();
  await server?.end();
});

test("kill -9 and cut connections under load", async () => {
  const ids = ["ann", "ben", "cid"];
  const clients = [];
  for (const id of ids) clients.push(await people.connect(id, { maxInFlight: 8, windowSize: 100_000 }));
  const [ann, ben, cid] = clients;
  const { groupId } = await ann.groups.create({ name: "Storm", memberIds: ["ben", "cid"] });
  const heard = new Map(ids.map((id) => [id, []]));
  for (const client of clients) {
    client.on("message", ({ message, conversation }) => heard.get(client.userId).push([conversation.id, message.content]));
  }

  proxy.cutAfter(30_000);
  proxy.cutAll();
  const sends = [];
  const chats = [ann.group(groupId), ben.group(groupId), ann.chatWith("ben"), ben.chatWith("ann"), cid.chatWith("ann")];
  const load = async (chat, name) => {
    for (let number = 0; number < EACH; number += 1) {
      sends.push(chat.send(`${name}-${number}`).whenSaved());
      if (number % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 15));
    }
  };
  const loads = chats.map((chat, index) => load(chat, `s${index}`));
  const kills = (async () => {
    for (let round = 0; round < 3; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 250));
      await server.kill();
      await server.run();
    }
  })();
  await Promise.all([...loads, kills]);
  await Promise.all(sends);
  proxy.cutAfter(Infinity);
  proxy.cutAll();

  for (const client of clients) {
    const wanted = client === cid ? 2 * EACH : client === ann ? 3 * EACH : 2 * EACH;
    await until(client, () => heard.get(client.userId).length >= wanted && client.state === "online", `all of ${client.userId}`, 60_000);
  }
  assert.ok(proxy.cuts > 5, `only ${proxy.cuts} cuts`);

  const stored = async (conversationId) => {
    const found = [];
    for (let begin = 1; ; ) {
      const page = await ann.call("GET", "/msg/pull", { conversation_id: conversationId, begin_seq: begin });
      found.push(...page.messages);
      if (!page.has_more) return found;
      begin = page.next_seq;
    }
  };
  for (const [chat, names] of [[chats[0], ["s0", "s1"]], [chats[2], ["s2", "s3"]], [chats[4], ["s4"]]]) {
    const rows = await stored(chat.id.includes("cid") ? "si_ann:cid" : chat.id);
    assert.deepEqual(rows.map((row) => row.seq), rows.map((_, index) => index + 1));
    const words = rows.filter((row) => row.msg_type === 1).map((row) => row.content);
    for (const name of names) {
      const own = words.filter((word) => word.startsWith(`${name}-`));
      assert.deepEqual(own, Array.from({ length: EACH }, (_, number) => `${name}-${number}`), `${name} in order, once`);
    }
    for (const client of clients) {
      const id = rows[0].conversation_id;
      const mine = heard.get(client.userId).filter(([conversation]) => conversation === id).map(([, word]) => word);
      const others = rows.filter((row) => row.msg_type === 1 && row.sender_id !== client.userId).map((row) => row.content);
      if (mine.length === 0) continue;
      assert.deepEqual(mine, others, `${client.userId} heard all of ${id}, in order, once`);
      assert.equal(client.conversation(id).unread, others.length);
      assert.deepEqual(texts(client.conversation(id)), words);
      assert.deepEqual(client.conversation(id).pending, []);
    }
  }
});

test("a server that stops in an orderly way is left and found again", async () => {
  const client = await people.connect("dan");
  const states = [];
  client.on("state", ({ state, reason }) => states.push(`${state} ${reason}`));
  await server.kill("SIGTERM");
  await until(client, () => states.length > 0);
  assert.equal(states[0], "offline server_shutdown");
  await server.run();
  await until(client, () => client.state === "online");
});
