// What release 0.2 has brought, against a real server: every call once, and what other devices show.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { NexoError } from "../src/index.js";
import { People, texts, until } from "./support/people.js";
import { CuttingProxy } from "./support/proxy.js";
import { NexoServer } from "./support/server.js";

let server;
let people;
let count = 0;

/** New names, so that tests do not meet. */
const names = (...stems) => {
  count += 1;
  return stems.map((stem) => `${stem}${count}`);
};
const said = async (conversation, text, options) => (await conversation.send(text, options).whenSaved()).serverMsgId;
const find = (conversation, id) => conversation.messages.find((message) => message.serverMsgId === id);
const next = (client, name) => new Promise((resolve) => client.once(name, resolve));
const refused = (reason) => (error) => error instanceof NexoError && error.reason === reason;

before(async () => {
  server = await NexoServer.start();
  people = new People(server.url);
});
after(async () => {
  await people?.end();
  await server?.end();
});

/** A view that was changed in place is what a client sees that comes now, and so are the counts. */
async function assertAsFetched(client, conversation) {
  const fresh = await people.connect(client.userId, { deviceId: "fresh" });
  const other = fresh.conversation(conversation.id);
  await other.loadLatest(200);
  await until(client, () => conversation.syncedSeq === other.syncedSeq);
  const shown = (view) => view.messages.filter((message) => message.msgType < 100).map(({ important, silent, ...message }) => message);
  assert.deepEqual(shown(conversation), shown(other));
  assert.deepEqual([conversation.unread, conversation.unreadMentions], [other.unread, other.unreadMentions]);
}

describe("changes of messages", () => {
  test("edits, reactions and pins change the view of all", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    const device = await people.connect(ben, { deviceId: "second" });
    const [mine, theirs, elsewhere] = [one.chatWith(ben), other.chatWith(ann), device.chatWith(ann)];
    const target = await said(mine, "Helo");
    await until(other, () => theirs.syncedSeq === 1);
    const reply = await said(theirs, "what?", { replyTo: target });
    const changed = next(other, "changed");
    const edited = await mine.edit(target, "Hello", { clientMsgId: "edit-1" });
    assert.deepEqual([edited.serverMsgId, edited.seq], [target, 3]);
    assert.deepEqual(await mine.edit(target, "Hello", { clientMsgId: "edit-1" }), edited);
    assert.equal(find(mine, target).content, "Hello"); // before its event
    const { change, message, conversation } = await changed;
    assert.deepEqual([change, message.content, conversation], ["edited", "Hello", theirs]);
    for (const [client, view] of [[one, mine], [other, theirs], [device, elsewhere]]) {
      await until(client, () => find(view, target)?.content === "Hello" && find(view, reply)?.quote?.text === "Hello");
    }
    assert.equal(find(theirs, target).editedAt, edited.editedAt);

    assert.deepEqual(await theirs.react(message, "👍"), [{ emoji: "👍", count: 1, mine: true }]);
    for (const [client, view, isMine] of [[one, mine, false], [other, theirs, true], [device, elsewhere, true]]) {
      await until(client, () => find(view, target).reactions.some((reaction) => reaction.count === 1 && reaction.mine === isMine));
    }
    const who = await mine.reactions(target);
    assert.deepEqual(who.reactions.map(({ emoji, userId }) => [emoji, userId]), [["👍", ben]]);
    await theirs.react(message, "👍", false);
    await until(one, () => find(mine, target).reactions.length === 0);

    const pinned = next(other, "pinned");
    const { seq } = await mine.pin(target);
    const told = await pinned;
    assert.deepEqual([told.serverMsgId, told.seq, told.on, told.by], [target, seq, true, ann]);
    assert.deepEqual((await theirs.pins()).map((pin) => pin.content), ["Hello"]);
    await mine.pin(target, false);
    assert.deepEqual(await theirs.pins(), []);
    assert.equal(mine.unread, 1); // the reply alone: changes never count
    assert.equal(theirs.lastMessage.content, "what?");
    for (const [client, view] of [[one, mine], [other, theirs], [device, elsewhere]]) await assertAsFetched(client, view);
    await assert.rejects(theirs.edit(target, "mine now"), refused("not_message_sender"));
  });

  test("a mention that an edit adds counts once", async () => {
    const [ann, ben, cid] = names("ann", "ben", "cid");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    await people.ensure(cid);
    const { groupId } = await one.groups.create({ name: "Team", memberIds: [ben, cid], groupType: 3 });
    const [mine, theirs] = [one.group(groupId), other.group(groupId)];
    const target = await said(mine, "look");
    await until(other, () => theirs.unread === 1);
    await mine.edit(target, "look @ben", { mentions: [ben] });
    await until(other, () => find(theirs, target).content === "look @ben");
    assert.deepEqual([theirs.unread, theirs.unreadMentions], [1, 1]);
    await assertAsFetched(other, theirs);
    theirs.markRead();
    await until(other, () => theirs.unread === 0 && theirs.unreadMentions === 0);
  });

  test("what changed while a device was away", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    const [mine, theirs] = [one.chatWith(ben), other.chatWith(ann)];
    const ids = [];
    for (const text of ["one", "two", "three", "four"]) ids.push(await said(mine, text));
    await until(other, () => theirs.syncedSeq === 4);
    const device = await people.connect(ben, { deviceId: "second" });
    const elsewhere = device.chatWith(ann);
    await elsewhere.loadLatest();
    await device.close();
    await mine.edit(ids[0], "ONE");
    await theirs.react(ids[1], "🎉");
    await theirs.deleteForMe([ids[2]]);
    await until(other, () => theirs.syncedSeq === 6);
    await device.connect();
    await until(device, () => texts(elsewhere).join() === "ONE,two,four" && find(elsewhere, ids[1]).reactions.length === 1);
    assert.deepEqual(find(elsewhere, ids[1]).reactions, [{ emoji: "🎉", count: 1, mine: true }]);
    await until(device, () => elsewhere.unread === 3);
    await assertAsFetched(device, elsewhere);
  });

  test("an edit is tried until the server has answered, in order, or until the client is closed", async () => {
    const [ann, ben] = names("ann", "ben");
    const proxy = await CuttingProxy.start(server.port);
    try {
      const one = await new People(proxy.url).connect(ann);
      const other = await people.connect(ben);
      const [mine, theirs] = [one.chatWith(ben), other.chatWith(ann)];
      const target = await said(mine, "helo");
      proxy.cutAfter(0);
      proxy.cutAll();
      const edits = [mine.edit(target, "hello"), mine.edit(target, "hello!")];
      await until(one, () => one.state !== "online");
      proxy.cutAfter(Infinity);
      const [first, second] = await Promise.all(edits);
      assert.ok(first.seq < second.seq);
      await until(other, () => find(theirs, target)?.content === "hello!");
      await until(one, () => mine.syncedSeq === 3); // each edit was done once
      proxy.cutAfter(0);
      proxy.cutAll();
      const late = mine.edit(target, "too late");
      const failed = assert.rejects(late, refused("closed"));
      await until(one, () => one.state !== "online");
      await one.close();
      await failed;
    } finally {
      await proxy.stop();
    }
  });

  test("deleting and clearing reach all devices, and no other user", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    const device = await people.connect(ben, { deviceId: "second" });
    const [mine, theirs, elsewhere] = [one.chatWith(ben), other.chatWith(ann), device.chatWith(ann)];
    const ids = [];
    for (const text of ["one", "two", "three"]) ids.push(await said(mine, text));
    await until(other, () => theirs.syncedSeq === 3);
    await until(device, () => elsewhere.syncedSeq === 3);
    const deleted = next(device, "deleted");
    await theirs.deleteForMe([find(theirs, ids[2])]);
    assert.deepEqual([texts(theirs), theirs.unread, theirs.lastMessage.content], [["one", "two"], 2, "two"]);
    assert.deepEqual(await deleted, { serverMsgIds: [ids[2]], upToSeq: null, conversation: elsewhere });
    assert.deepEqual([texts(elsewhere), elsewhere.unread], [["one", "two"], 2]);
    await assertAsFetched(device, elsewhere);
    const cleared = next(device, "deleted");
    await theirs.clear();
    assert.deepEqual([texts(theirs), theirs.unread], [[], 0]);
    assert.equal((await cleared).upToSeq, 3);
    assert.deepEqual([texts(elsewhere), elsewhere.unread], [[], 0]);
    await said(mine, "four");
    await until(device, () => texts(elsewhere).join() === "four" && elsewhere.unread === 1);
    assert.deepEqual(texts(mine), ["one", "two", "three", "four"]);
  });

  test("expiring messages go blank at their time", async () => {
    const [ann, ben] = names("ann", "ben");
    const one = await people.connect(ann);
    const other = await people.connect(ben);
    const [mine, theirs] = [one.chatWith(ben), other.chatWith(ann)];
    const changed = next(other, "changed");
    const sent = mine.send("secret", { expiresS: 5, extra: { a: 1 } });
    assert.equal(sent.expiresS, 5);
    const { serverMsgId, expiresAt, sendAt } = await sent.whenSaved();
    assert.equal(expiresAt - sendAt, 5000);
    const { change, message } = await changed;
    assert.deepEqual([change, message.status, message.content], ["expired", 2, ""]);
    await until(one, () => find(mine, serverMsgId).status === 2 && find(mine, serverMsgId).extra === null);
    assert.equal(theirs.unread, 1);
    await assertAsFetched(other, theirs);
  });
});

test("settings follow the user over devices", async () => {
  const [ann, ben] = names("ann", "ben");
  const one = await people.connect(ann);
  const other = await people.connect(ben);
  const device = await people.connect(ben, { deviceId: "second" });
  const [mine, theirs, elsewhere] = [one.chatWith(ben), other.chatWith(ann), device.chatWith(ann)];
  const first = await said(mine, "one");
  await until(other, () => theirs.syncedSeq === 1);
  await until(device, () => elsewhere.syncedSeq === 1);
  const told = next(device, "settings");
  const draft = { text: "I would", replyTo: first };
  await theirs.update({ pinned: true, archived: true, markedUnread: true, draft, extra: { snake_case: "red" } });
  assert.equal((await told).conversation, elsewhere);
  for (const view of [theirs, elsewhere]) {
    assert.deepEqual([view.pinned, view.archived, view.markedUnread], [true, true, true]);
    assert.deepEqual([view.draft, view.extra], [draft, { snake_case: "red" }]);
  }
  elsewhere.markRead();
  await until(other, () => !theirs.markedUnread);
  await theirs.update({ draft: null, extra: null, silentUntil: 4_000_000_000_000, recvMsgOpt: 2 });
  await until(device, () => elsewhere.silentUntil === 4_000_000_000_000);
  assert.deepEqual([elsewhere.draft, elsewhere.extra, elsewhere.recvMsgOpt], [null, null, 2]);
  await said(mine, "two");
  await until(device, () => elsewhere.syncedSeq === 2);
  assert.equal(elsewhere.archived, true); // muted: it stays
  await theirs.update({ silentUntil: 0, recvMsgOpt: 0 });
  await until(device, () => elsewhere.recvMsgOpt === 0);
  await said(mine, "three");
  await until(device, () => !elsewhere.archived);
  await theirs.update({ messageTtlS: 3600 });
  await said(mine, "four");
  await until(device, () => elsewhere.lastMessage.content === "four");
  assert.ok(elsewhere.lastMessage.expiresAt > elsewhere.lastMessage.sendAt);
  await theirs.update({ hidden: true });
  await until(device, () => !device.conversations.includes(elsewhere));
  assert.ok(!other.conversations.includes(theirs));
  await mine.pin(first);
  await until(device, () => elsewhere.syncedSeq === mine.syncedSeq);
  assert.ok(!device.conversations.includes(elsewhere)); // a pin does not bring it back
  await said(mine, "five");
  await until(device, () => device.conversations.includes(elsewhere));
});

test("forwarding, searching, media and places", async () => {
  const [ann, ben, cid] = names("ann", "ben", "cid");
  const one = await people.connect(ann);
  const other = await people.connect(ben);
  const third = await people.connect(cid);
  const [mine, target, theirs] = [one.chatWith(ben), one.chatWith(cid), third.chatWith(ann)];
  const word = `w${Date.now()}`;
  const ids = [await said(mine, `first ${word}`), await said(mine, `second ${word}`)];
  await said(mine, "see https://nexo.example/");
  const { groupId } = await one.groups.create({ name: "Team", memberIds: [ben, cid] });
  const sent = await one.forward(ids, [target, one.group(groupId)]);
  assert.deepEqual(sent.map((to) => [to.conversationId, to.serverMsgIds.length, to.error]), [[target.id, 2, null], [`sg_${groupId}`, 2, null]]);
  await until(third, () => texts(theirs).join() === `first ${word},second ${word}`);
  assert.equal(theirs.messages[0].forwardedFrom.senderId, ann);
  const merged = await one.forward(ids, [target.id], { merge: true, title: "Two", clientMsgId: "merge-1" });
  assert.deepEqual(await one.forward(ids, [target.id], { merge: true, title: "Two", clientMsgId: "merge-1" }), merged);
  await until(third, () => theirs.syncedSeq === 3);
  assert.deepEqual([theirs.messages[2].msgType, theirs.messages[2].content.title], [8, "Two"]);

  let page;
  do page = await one.search(word, { conversationId: mine.id, senderId: ann, msgType: 1, limit: 1 });
  while (!page.hasMore); // the index is a moment behind
  const [{ message, snippet, ranges }] = page.results;
  assert.equal(message.serverMsgId, ids[1]);
  assert.equal([...snippet].slice(...ranges[0]).join(""), word);
  const rest = await one.search(word, { conversationId: mine.id, limit: 1, cursor: page.nextCursor });
  assert.equal(rest.results[0].message.serverMsgId, ids[0]);
  const links = await mine.media("link", { limit: 5 });
  assert.deepEqual(links.messages.map((link) => link.content), ["see https://nexo.example/"]);
  assert.equal(await mine.at(0), 1);
  assert.equal(await mine.at(4_000_000_000_000), null);
  assert.ok(await other.report(ids[0], "spam"));
});

test("contacts, links and members", async () => {
  const [ann, ben, cid, dan] = names("ann", "ben", "cid", "dan");
  const one = await people.connect(ann);
  const other = await people.connect(ben);
  await people.ensure(cid);
  const fourth = await people.connect(dan);
  const asked = next(other, "contactRequest");
  const decided = next(one, "contactDecision");
  assert.equal((await one.contacts.request(ben, "It is me")).status, "pending");
  const request = await asked;
  assert.deepEqual([request.userId, request.message], [ann, "It is me"]);
  assert.deepEqual((await other.contacts.requests()).requests.map(({ userId }) => userId), [ann]);
  assert.deepEqual((await one.contacts.requests({ sent: true })).requests.map(({ userId }) => userId), [ben]);
  assert.equal((await other.contacts.decide(ann, true)).status, "accepted");
  const decision = await decided;
  assert.deepEqual([decision.userId, decision.accepted], [ben, true]);
  assert.equal((await one.contacts.remark(ben, "Benny")).remark, "Benny");
  assert.deepEqual((await one.contacts.list()).contacts.map(({ userId, remark }) => [userId, remark]), [[ben, "Benny"]]);
  await one.contacts.remove(ben);
  assert.deepEqual((await other.contacts.list()).contacts, []);

  const { groupId } = await one.groups.create({ name: "Team", memberIds: [ben, cid], joinPolicy: "approval" });
  const joining = next(one, "joinRequest");
  assert.equal((await fourth.groups.join(groupId, "let me in")).status, "pending");
  const wish = await joining;
  assert.deepEqual([wish.groupId, wish.userId, wish.message], [groupId, dan, "let me in"]);
  const { code } = await one.groups.createLink(groupId, { expiresS: 3600, uses: 2 });
  assert.deepEqual((await one.groups.links(groupId)).map((link) => link.code), [code]);
  assert.equal((await fourth.groups.linkInfo(code)).name, "Team");
  assert.equal(await fourth.groups.joinByCode(code), groupId);
  await one.groups.revokeLink(code);
  await assert.rejects(fourth.groups.linkInfo(code), refused("link_expired"));
  const member = await fourth.groups.updateMember(groupId, { groupNickname: "D", extra: { a: 1 } });
  assert.deepEqual([member.groupNickname, member.extra], ["D", { a: 1 }]);
  assert.equal((await one.groups.update(groupId, { extra: { b: 2 }, groupType: 7 })).groupType, 7);
});

test("devices, privacy, export and leaving", async () => {
  const [ann, ben] = names("ann", "ben");
  const one = await people.connect(ann, { deviceId: "first" });
  const other = await people.connect(ben);
  const device = await people.connect(ann, { deviceId: "second" });
  await said(one.chatWith(ben), "remember me");
  assert.deepEqual((await one.users.update({ privacy: { lastSeen: "nobody" } })).privacy, { lastSeen: "nobody" });
  assert.equal((await other.users.info(ann)).lastSeenAt, undefined);
  const listed = await one.devices.list();
  assert.deepEqual(listed.filter(({ current }) => current).map(({ deviceId }) => deviceId), ["first"]);
  await one.devices.revoke(listed.find(({ deviceId }) => deviceId === "second").sessionId);
  await until(device, () => device.state === "closed");
  assert.equal(await one.devices.revokeOthers(), listed.length - 2);

  const password = "correct horse";
  assert.ok(["running", "done"].includes((await one.account.export({ password })).status));
  while ((await one.account.exportStatus()).status === "running");
  const file = await one.account.exportFile();
  assert.match(gunzipSync(Buffer.from(await file.arrayBuffer())).toString(), /remember me/);
  await one.account.close({ password, eraseMessages: true });
  assert.deepEqual([one.session, one.userId], [null, null]);
  assert.equal((await other.users.info(ann)).deleted, true);
});
