// The SDK against a real server.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { MemoryStorage, NexoError } from "../src/index.js";
import { People, texts, until } from "./support/people.js";
import { NexoServer } from "./support/server.js";

let server;
let people;
let count = 0;

/** New names, so that tests do not meet. */
const names = (...stems) => {
  count += 1;
  return stems.map((stem) => `${stem}${count}`);
};

before(async () => {
  server = await NexoServer.start();
  people = new People(server.url);
});
after(async () => {
  await people?.end();
  await server?.end();
});

describe("single chats", () => {
  test("a message goes from sending to read", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    const sent = one.chatWith(ben).send("hello");
    assert.equal(sent.state, "sending");
    assert.deepEqual(one.chatWith(ben).pending, [sent]);
    const message = await sent.whenSaved();
    assert.equal(message.seq, 1);
    assert.deepEqual(one.chatWith(ben).pending, []);
    assert.equal(one.chatWith(ben).messages[0].clientMsgId, sent.clientMsgId);
    await until(other, () => texts(other.chatWith(ann)).length === 1);
    assert.equal(other.chatWith(ann).unread, 1);
    await until(one, () => sent.state === "delivered");
    other.chatWith(ann).markRead();
    assert.equal(other.chatWith(ann).unread, 0);
    await until(one, () => sent.state === "read");
    assert.equal(one.chatWith(ben).stateOf(one.chatWith(ben).messages[0]), "read");
  });

  test("the list has what is newest first, with the last message and exact unread, on a second device too", async () => {
    const [ann, ben, cid] = names("ann", "ben", "cid");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    await people.ensure(cid);
    for (const text of ["a", "b", "c"]) await one.chatWith(ben).send(text).whenSaved();
    await one.chatWith(cid).send("to cid").whenSaved();
    assert.deepEqual(one.conversations.map((conversation) => conversation.peerId), [cid, ben]);
    await other.chatWith(ann).send("d").whenSaved();
    await until(one, () => one.conversations[0].lastMessage?.content === "d");
    assert.equal(one.totalUnread, 1);

    const second = await people.connect(ann);
    await until(second, () => second.conversations[0]?.lastMessage?.content === "d");
    assert.deepEqual(second.conversations.map((conversation) => [conversation.peerId, conversation.unread]), [[ben, 1], [cid, 0]]);
    second.chatWith(ben).markRead();
    await until(one, () => one.chatWith(ben).unread === 0);
    assert.equal(one.totalUnread, 0);
  });

  test("messages that were missed come in order, once, when a device comes back", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    const heard = [];
    other.on("message", ({ message }) => heard.push(message.content));
    await one.chatWith(ben).send("0").whenSaved();
    await until(other, () => heard.length === 1);
    await other.close();
    assert.equal(other.state, "offline");
    const wanted = Array.from({ length: 450 }, (_, index) => String(index));
    await Promise.all(wanted.slice(1).map((text) => one.chatWith(ben).send(text).whenSaved()));
    await other.connect();
    assert.deepEqual(heard, wanted);
    assert.equal(other.chatWith(ann).unread, 450);
  });

  test("history is paged backwards, and the window forgets its far end", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    await people.ensure(ben);
    const wanted = Array.from({ length: 130 }, (_, index) => `m${index}`);
    await Promise.all(wanted.map((text) => one.chatWith(ben).send(text).whenSaved()));
    const second = await people.connect(ann, { windowSize: 60 });
    const chat = second.chatWith(ben);
    assert.equal(await chat.loadLatest(30), 30);
    assert.deepEqual(texts(chat), wanted.slice(100));
    assert.equal(await chat.loadEarlier(50), 50);
    assert.deepEqual(texts(chat), wanted.slice(50, 110));
    assert.equal(chat.hasLater, true);
    await one.chatWith(ben).send("new").whenSaved();
    await until(second, () => chat.headSeq === 131);
    assert.deepEqual(texts(chat), wanted.slice(50, 110));
    await chat.loadLater(50);
    await chat.loadLater(50);
    assert.equal(chat.hasLater, false);
    assert.equal(texts(chat).at(-1), "new");
    await one.chatWith(ben).send("newer").whenSaved();
    await until(second, () => texts(chat).at(-1) === "newer");
    await chat.loadAround(20, 20);
    assert.ok(texts(chat).includes("m19"));
    assert.equal(chat.hasLater, true);
    while (chat.hasEarlier) await chat.loadEarlier(50);
    assert.equal(texts(chat)[0], "m0");
    await chat.loadLatest(10);
    assert.deepEqual(texts(chat).slice(-2), ["new", "newer"]);
  });

  test("a recalled message is blank for both, and in quotes of it", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    const first = await one.chatWith(ben).send("secret").whenSaved();
    await until(other, () => other.chatWith(ann).messages.length === 1);
    const reply = other.chatWith(ann).send("really?", { replyTo: first.serverMsgId });
    await reply.whenSaved();
    assert.deepEqual(other.chatWith(ann).messages[1].quote?.text, "secret");
    await until(one, () => one.chatWith(ben).messages.length === 2);
    assert.equal(one.chatWith(ben).messages[1].quote?.text, "secret");
    await one.chatWith(ben).recall(first.serverMsgId);
    for (const [client, peer] of [[one, ben], [other, ann]]) {
      await until(client, () => client.chatWith(peer).messages[0].status === 1);
      assert.equal(client.chatWith(peer).messages[0].content, "");
      assert.equal(client.chatWith(peer).messages[1].quote, null);
    }
    const fresh = await people.connect(ann);
    await fresh.chatWith(ben).loadLatest();
    const shown = (client) => client.chatWith(ben).messages.map(({ seq, status, content, quote }) => ({ seq, status, quote, content: status || content.by ? 0 : content }));
    assert.deepEqual(shown(fresh), shown(one));
  });

  test("a refused message fails with its reason, can be retried, and does not hold up others", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    await other.users.block(ann);
    const refused = one.chatWith(ben).send("hello?");
    await assert.rejects(refused.whenSaved(), (error) => error instanceof NexoError && error.reason === "blocked");
    assert.equal(refused.state, "failed");
    assert.deepEqual(one.chatWith(ben).pending, [refused]);
    await other.users.unblock(ann);
    await one.chatWith(ben).send("next").whenSaved();
    assert.equal(refused.retry(), true);
    await refused.whenSaved();
    assert.deepEqual(texts(one.chatWith(ben)), ["next", "hello?"]);
    await other.users.block(ann);
    const given = one.chatWith(ben).send("again");
    await until(one, () => given.state === "failed");
    assert.equal(given.cancel(), true);
    assert.deepEqual(one.pending, []);
  });

  test("typing and presence are told", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    one.presence.subscribe([ben]);
    await until(one, () => one.presence.of(ben)?.online === true);
    await one.chatWith(ben).send("hi").whenSaved();
    other.chatWith(ann).typing();
    await until(one, () => one.chatWith(ben).typists.includes(ben));
    other.chatWith(ann).typing(false);
    await until(one, () => one.chatWith(ben).typists.length === 0);
    await other.close();
    await until(one, () => one.presence.of(ben)?.online === false);
  });
});

describe("groups", () => {
  test("a group's life is told by events, with mentions and receipts", async () => {
    const [ann, ben, cid] = names("ann", "ben", "cid");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    await people.ensure(cid);
    const group = await one.groups.create({ name: "Team", memberIds: [ben, cid] });
    const events = [];
    other.on("groupEvent", ({ message }) => events.push(message.msgType));
    await one.group(group.groupId).send("all here?", { mentions: [ben] }).whenSaved();
    const room = () => other.conversations.find((conversation) => conversation.groupId === group.groupId);
    await until(other, () => room()?.unreadMentions === 1);
    assert.deepEqual([room().unread, room().type], [1, "group"]);
    room().markRead();
    assert.deepEqual([room().unread, room().unreadMentions], [0, 0]);
    const own = one.group(group.groupId).messages.find((message) => message.content === "all here?");
    await until(one, () => one.group(group.groupId).stateOf(own) === "read");
    const receipts = await one.group(group.groupId).receipts(own.serverMsgId);
    assert.deepEqual(receipts.read, [ben]);
    await one.groups.update(group.groupId, { name: "Crew" });
    const { members } = await one.groups.members(group.groupId);
    assert.deepEqual(members.map((member) => member.userId).sort(), [ann, ben, cid].sort());
    await one.groups.removeMember(group.groupId, ben);
    await until(other, () => events.includes(104));
    const late = room().send("still here?");
    await assert.rejects(late.whenSaved(), { reason: "member_not_active" });
    await one.groups.invite(group.groupId, [ben]);
    await one.group(group.groupId).send("welcome back").whenSaved();
    await until(other, () => texts(room()).includes("welcome back"));
    assert.equal(room().unread, 1);
  });

  test("a group that only notifies is pulled", async () => {
    const quiet = await NexoServer.start({ NEXO_GROUP__STRATEGY__MODE: "notify" });
    const guests = new People(quiet.url);
    try {
      const one = await guests.connect("ann");
      const other = await guests.connect("ben");
      await guests.ensure("cid");
      const group = await one.groups.create({ name: "Town", memberIds: ["ben", "cid"] });
      await Promise.all(["x", "y", "z"].map((text) => one.group(group.groupId).send(text).whenSaved()));
      await until(other, () => texts(other.group(group.groupId)).length === 3);
      assert.deepEqual(texts(other.group(group.groupId)), ["x", "y", "z"]);
      assert.equal(other.group(group.groupId).unread, 3);
    } finally {
      await guests.end();
      await quiet.end();
    }
  });
});

describe("sessions", () => {
  test("a session goes on from the storage, with the outbox and the baselines", async () => {
    const [ann, ben] = names("ann", "ben");
    const storage = new MemoryStorage();
    const other = await people.connect(ben);
    const first = await people.connect(ann, { storage });
    await other.chatWith(ann).send("one").whenSaved();
    await until(first, () => first.chatWith(ben).messages.length === 1);
    await first.close();
    const waiting = first.chatWith(ben).send("written offline");
    assert.equal(waiting.state, "sending");
    await first._driver._writes;
    await other.chatWith(ann).send("two").whenSaved();

    const second = people.make({ storage });
    const heard = [];
    second.on("message", ({ message }) => heard.push(message.content));
    assert.equal(await second.restore(), true);
    assert.deepEqual(second.pending.map((outgoing) => outgoing.content), ["written offline"]);
    await second.connect();
    await until(second, () => second.pending.length === 0);
    assert.deepEqual(heard, ["two"]);
    await until(other, () => texts(other.chatWith(ann)).at(-1) === "written offline");
    assert.deepEqual(await storage.entries("outbox/"), []);
  });

  test("tokens are refreshed before they expire, once for all who ask", async () => {
    const brief = await NexoServer.start({ NEXO_AUTH__ACCESS_TTL_S: "5" });
    const guests = new People(brief.url);
    try {
      let refreshes = 0;
      const counting = (url, init) => {
        if (String(url).endsWith("/auth/refresh")) refreshes += 1;
        return fetch(url, init);
      };
      const client = await guests.connect("ann", { fetch: counting });
      const first = client.session;
      await until(client, () => client.session.refreshToken !== first.refreshToken);
      assert.ok(Date.now() > first.refreshAt - 100, "not before it is due");
      const sent = client._driver._socket;
      await new Promise((resolve) => setTimeout(resolve, first.expiresAt - Date.now() + 500));
      assert.equal(client._driver._socket, sent, "the connection went on beyond the end of the first token");
      assert.equal(client.state, "online");
      await client.close();
      await new Promise((resolve) => setTimeout(resolve, client.session.expiresAt - Date.now() + 100));
      const before = refreshes;
      await Promise.all([client.users.info(), client.users.blocks(), client.groups.list()]);
      assert.equal(refreshes, before + 1);
    } finally {
      await guests.end();
      await brief.end();
    }
  });

  test("two clients on one storage do not fight over the session", async () => {
    const [ann] = names("ann");
    const storage = new MemoryStorage();
    const one = await people.connect(ann, { storage });
    const other = people.make({ storage });
    await other.restore();
    await other.connect();
    const stale = one.session;
    await one._sessions.refresh(stale);
    await other._sessions.refresh(stale);
    assert.notEqual(one.session.refreshToken, stale.refreshToken);
    assert.equal(other.session.refreshToken, one.session.refreshToken);
    assert.deepEqual([one.state, other.state], ["online", "online"]);
  });

  test("a session that was ended elsewhere is forgotten, and signing in again works", async () => {
    const [ann] = names("ann");
    const one = await people.connect(ann);
    const other = await people.connect(ann);
    await other.changePassword({ oldPassword: "correct horse", newPassword: "battery staple" });
    await until(one, () => one.state === "closed", "closed", 45_000);
    assert.equal(one.stateChange.reason, "session_invalid");
    await until(one, () => one.session === null);
    await assert.rejects(one.connect(), { reason: "unauthorized" });
    await one.login({ userId: ann, password: "battery staple" });
    await one.connect();
    assert.equal(one.state, "online");
  });

  test("logging out leaves nothing behind", async () => {
    const [ann, ben] = names("ann", "ben");
    const storage = new MemoryStorage();
    await people.ensure(ben);
    const client = await people.connect(ann, { storage });
    await client.chatWith(ben).send("x").whenSaved();
    await client.logout();
    assert.deepEqual((await storage.entries("")).map(([key]) => key), ["device"]);
    assert.equal(client.session, null);
    assert.throws(() => client.chatWith(ben), { reason: "unauthorized" });
  });
});
