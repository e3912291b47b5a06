// The engine with a recorded host and a clock that is set by hand: connecting, ending, and what frames do.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, describe, test } from "node:test";

import { Engine } from "../src/core/engine.js";
import { sendFrame } from "../src/core/frames.js";
import { FakeHost, OPTIONS } from "./support/world.js";

const GOLDEN = new URL("../../../tests/golden/envelope/", import.meta.url);
const CHAT = "si_ann:ben";

let now;
let host;
let engine;

beforeEach(() => {
  now = 1_000_000;
  host = new FakeHost();
  engine = new Engine("ann", host, { ...OPTIONS, random: () => 0.5 }, () => now);
});

const states = () => host.events.filter(([name]) => name === "state").map(([, { state, reason }]) => `${state} ${reason}`);
const events = (name) => host.events.filter(([event]) => event === name).map(([, payload]) => payload);
const pass = (ms) => {
  now += ms;
  engine.tick();
};
const signIn = (conversations = []) => {
  engine.start();
  engine.connection.tokenReady(now);
  engine.connection.opened(now);
  engine.receive({ type: "AUTH_OK", userId: "ann", connId: "c1", heartbeatMs: 30_000 });
  engine.receive({ type: "SYNC", conversations, hasMore: false });
  return host.take();
};
const entry = (more = {}) => ({ conversationId: CHAT, headSeq: 0, minSeq: 1, readSeq: 0, deliveredSeq: 0, unread: 0, ...more });
const push = (msgSeq, more = {}) => ({ type: "SINGLE_CHAT", serverMsgId: `m${msgSeq}`, clientMsgId: `c${msgSeq}`, conversationId: CHAT, msgSeq, from: "ben", to: "ann", msgType: 1, body: `text ${msgSeq}`, mentions: [], replyToServerMsgId: null, extra: null, status: 0, ts: now, ...more });
const seqs = () => engine.conversation(CHAT).window.messages.map((message) => message.seq);

describe("the connection", () => {
  test("shows its token and what it has, then syncs, then is online", () => {
    engine.inbox.baselines.load(CHAT, 7);
    const [auth] = signIn();
    assert.deepEqual(auth, { type: "AUTH", token: "t", deviceId: "d", baselines: { [CHAT]: 7 } });
    assert.deepEqual(states(), ["connecting null", "syncing null", "online null"]);
    assert.ok(host.calls.includes("list"));
  });

  test("comes back with growing pauses, and at once where a new token is all it takes", () => {
    signIn();
    engine.connection.lost(now, 1006);
    assert.deepEqual(engine.stateChange, { state: "offline", reason: "network", retryAt: now + 250 });
    pass(250);
    assert.equal(engine.state, "connecting");
    engine.connection.tokenReady(now);
    engine.connection.lost(now, 1006);
    assert.equal(engine.stateChange.retryAt, now + 500);
    pass(500);
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    engine.receive({ type: "SYNC", conversations: [], hasMore: false });
    pass(10_000);
    engine.receive({ type: "ERROR", reason: "token_expired", detail: "" });
    engine.connection.lost(now, 4603);
    assert.equal(engine.state, "connecting");
    assert.equal(host.calls.at(-1), "refresh");
  });

  for (const reason of ["server_shutdown", "network"]) {
    test(`is back within seconds after three restarts in half a minute (${reason})`, () => {
      signIn();
      for (let restart = 0; restart < 4; restart += 1) {
        pass(1500);
        if (reason !== "network") engine.receive({ type: "ERROR", reason, detail: "", retryAfterMs: 100 });
        engine.connection.lost(now, reason === "network" ? 1006 : 4905);
        const backAt = now + 3000;
        while (engine.stateChange.retryAt < backAt) {
          pass(engine.stateChange.retryAt - now);
          engine.connection.tokenReady(now);
          engine.connection.lost(now, 1006);
        }
        assert.ok(engine.stateChange.retryAt - backAt <= 4100, `${engine.stateChange.retryAt - backAt} ms`);
        pass(engine.stateChange.retryAt - now);
        engine.connection.tokenReady(now);
        engine.connection.opened(now);
        engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
        engine.receive({ type: "SYNC", conversations: [], hasMore: false });
        assert.equal(engine.state, "online");
      }
    });
  }

  test("asks a server that closes every connection at once less and less", () => {
    signIn();
    const pauses = [];
    for (let number = 0; number < 40; number += 1) {
      engine.connection.lost(now, 1006);
      pauses.push(engine.stateChange.retryAt - now);
      pass(engine.stateChange.retryAt - now);
      engine.connection.tokenReady(now);
      engine.connection.opened(now);
    }
    assert.ok(Math.max(...pauses.slice(0, 5)) <= 4000);
    assert.ok(Math.max(...pauses) >= 15_000);
  });

  test("waits as long as a server that stops asks for, and forgets old explanations", () => {
    signIn();
    engine.receive({ type: "ERROR", reason: "server_shutdown", detail: "", retryAfterMs: 4000 });
    engine.connection.lost(now, 4905);
    assert.deepEqual(engine.stateChange, { state: "offline", reason: "server_shutdown", retryAt: now + 4250 });
    pass(4250);
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    engine.receive({ type: "ERROR", reason: "too_many_requests", detail: "", retryAfterMs: 60_000 });
    pass(3000);
    engine.receive({ type: "PONG" });
    engine.connection.lost(now, 1006);
    assert.equal(engine.stateChange.reason, "network");
    assert.ok(engine.stateChange.retryAt < now + 5000);
  });

  for (const [code, reason, forgets] of [[4107, "kicked", false], [4108, "replaced", false], [4104, "session_invalid", true], [4101, "unauthorized", true]]) {
    test(`${code} ${reason} is the end${forgets ? " of the session" : ""}`, () => {
      signIn();
      engine.receive({ type: "ERROR", reason, detail: "" });
      engine.connection.lost(now, code);
      assert.equal(engine.state, "closed");
      assert.equal(host.calls.at(-1), `ended ${reason}${forgets ? " forget" : ""}`);
      pass(600_000);
      assert.equal(engine.state, "closed");
      assert.equal(engine.deadline, Infinity);
    });
  }

  test("AUTH_FAIL that may be tried again is tried again", () => {
    engine.start();
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_FAIL", reason: "server_busy", retryAfterMs: 250 });
    engine.connection.lost(now, 4901);
    assert.equal(engine.stateChange.retryAt, now + 500);
  });

  test("is given up when nothing is heard although something was asked", () => {
    signIn();
    pass(30_000);
    assert.deepEqual(host.take(), [{ type: "PING" }]);
    engine.receive({ type: "PONG" });
    pass(30_000);
    assert.deepEqual(host.take(), [{ type: "PING" }]);
    pass(10_000);
    assert.equal(engine.state, "offline");
    assert.equal(engine.stateChange.reason, "timeout");
    assert.ok(host.calls.includes("drop 4900"));
  });

  test("waits while the device is offline, and wakes at once", () => {
    signIn();
    engine.connection.networkDown(now);
    assert.deepEqual(engine.stateChange, { state: "offline", reason: "offline", retryAt: null });
    assert.equal(engine.deadline, Infinity);
    engine.connection.networkUp(now);
    assert.equal(engine.state, "connecting");
  });

  test("is probed when the user comes back to it", () => {
    signIn();
    engine.connection.wake(now);
    assert.deepEqual(host.take(), []);
    now += 6000;
    engine.connection.wake(now);
    assert.deepEqual(host.take(), [{ type: "PING" }]);
  });

  test("stops cleanly, and starts again", () => {
    signIn([entry({ headSeq: 1 })]);
    engine.receive(push(1));
    engine.stop();
    assert.deepEqual(host.take(), [{ type: "ACK", ackType: "delivered", conversationId: CHAT, msgSeq: 1 }]);
    assert.equal(host.stored.get(CHAT), 1);
    assert.equal(engine.deadline, Infinity);
    assert.equal(engine.state, "offline");
    assert.equal(signIn([entry({ headSeq: 1, deliveredSeq: 1, unread: 1 })])[0].baselines[CHAT], 1);
    assert.equal(engine.state, "online");
  });
});

describe("receiving", () => {
  test("a hole is waited for, then pulled; nothing beyond it is acknowledged", () => {
    signIn([entry()]);
    engine.receive(push(1));
    engine.receive(push(3));
    pass(50);
    assert.deepEqual(host.take(), [{ type: "ACK", ackType: "delivered", conversationId: CHAT, msgSeq: 1 }]);
    assert.deepEqual(seqs(), [1]);
    pass(187 - 50);
    assert.deepEqual(host.take(), []);
    pass(2);
    const [pull] = host.take();
    assert.deepEqual({ ...pull, clientMsgId: "" }, { type: "PULL", conversationId: CHAT, beginSeq: 2, limit: 200, clientMsgId: "" });
    engine.receive({ type: "PULL_OK", conversationId: CHAT, messages: [push(2), push(3)], headSeq: 3, nextSeq: 4, hasMore: false });
    assert.deepEqual(seqs(), [1, 2, 3]);
    assert.deepEqual(events("message").map(({ message }) => message.seq), [1, 2, 3]);
    pass(50);
    assert.deepEqual(host.take(), [{ type: "ACK", ackType: "delivered", conversationId: CHAT, msgSeq: 3 }]);
  });

  test("a hole that fills by itself costs no pull", () => {
    signIn([entry()]);
    engine.receive(push(2));
    pass(100);
    engine.receive(push(1));
    pass(1000);
    assert.deepEqual(host.take().map((frame) => frame.type), ["ACK"]);
  });

  test("while messages are coming, nothing is pulled", () => {
    signIn([entry({ headSeq: 20 })]);
    for (let seq = 1; seq <= 19; seq += 1) {
      pass(140);
      engine.receive(push(seq, { resend: true }));
    }
    assert.deepEqual(host.take().filter((frame) => frame.type === "PULL"), []);
    pass(230);
    assert.deepEqual(host.take().filter((frame) => frame.type === "PULL").map((frame) => frame.beginSeq), [20]);
  });

  test("a page that was asked for before a recall does not bring the words back", () => {
    signIn([entry()]);
    engine.receive({ type: "MESSAGE_REVOKED", serverMsgId: "m7", conversationId: CHAT, msgSeq: 1, from: "ben", ts: now });
    const page = [{ serverMsgId: "m7", content: "secret", status: 0 }, { serverMsgId: "m8", content: "fine", status: 0 }];
    assert.deepEqual(engine.conversation(CHAT).correct(page).map((message) => message.content), ["", "fine"]);
  });

  test("who typed and what was provisional is forgotten with the connection; presence is asked for again", () => {
    signIn([entry()]);
    engine.watchPresence(["ben"]);
    engine.receive({ ...push(1), serverMsgId: "p1", provisional: true, msgSeq: undefined });
    engine.receive({ type: "TYPING", from: "ben", conversationId: CHAT, on: true });
    assert.deepEqual(engine.inbox.typists.in(CHAT), ["ben"]);
    engine.connection.lost(now, 1006);
    assert.deepEqual(engine.inbox.typists.in(CHAT), []);
    assert.equal(engine.conversation(CHAT).timeline.provisional.length, 0);
    host.take();
    pass(60_000);
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    assert.deepEqual(host.take().find((frame) => frame.type === "PRESENCE"), { type: "PRESENCE", subscribe: ["ben"] });
  });

  test("typing ends by itself, and with the message", () => {
    signIn([entry()]);
    const type = () => engine.receive({ type: "TYPING", from: "ben", conversationId: CHAT, on: true });
    type();
    pass(6000);
    assert.deepEqual(engine.inbox.typists.in(CHAT), []);
    type();
    engine.receive(push(1));
    assert.deepEqual(engine.inbox.typists.in(CHAT), []);
    assert.deepEqual(events("typing").map(({ on }) => on), [true, false, true, false]);
  });

  test("a pull that is refused for the moment is repeated, one that is refused for good is not", () => {
    signIn([entry({ headSeq: 2 })]);
    pass(200);
    const [first] = host.take();
    engine.receive({ type: "ERROR", reason: "server_busy", detail: "", clientMsgId: first.clientMsgId, retryAfterMs: 1000 });
    pass(999);
    assert.deepEqual(host.take(), []);
    pass(500);
    const [second] = host.take();
    assert.equal(second.type, "PULL");
    assert.equal(engine.state, "syncing");
    engine.receive({ type: "ERROR", reason: "not_group_member", detail: "", clientMsgId: second.clientMsgId });
    assert.equal(engine.state, "online");
    pass(20_000);
    assert.ok(host.take().every((frame) => frame.type !== "PULL"));
  });

  test("is not online before what SYNC told of is here, page after page", () => {
    engine.start();
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 1, unread: 1 })], hasMore: true, cursor: "next" });
    assert.deepEqual(host.take().slice(1).map(({ type, cursor }) => ({ type, cursor })), [{ type: "SYNC", cursor: "next" }]);
    engine.receive({ type: "SYNC", conversations: [entry({ conversationId: "si_ann:cid" })], hasMore: false });
    assert.equal(engine.state, "syncing");
    engine.receive(push(1, { resend: true }));
    assert.equal(engine.state, "online");
  });

  test("SYNC that never comes is asked for", () => {
    engine.start();
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    engine.receive({ type: "RESYNC", reason: "sync_failed", afterMs: 300 });
    host.take();
    pass(300);
    assert.deepEqual(host.take().map((frame) => frame.type), ["SYNC"]);
    engine.receive({ type: "SYNC", conversations: [], hasMore: false });
    assert.equal(engine.state, "online");
  });

  test("RESYNC asks for what it names, after its pause, and drops provisional copies", () => {
    signIn([entry({ headSeq: 1, deliveredSeq: 1 })]);
    engine.receive({ ...push(1), serverMsgId: "p1", provisional: true, msgSeq: undefined });
    assert.equal(engine.conversation(CHAT).timeline.provisional.length, 1);
    engine.receive({ type: "RESYNC", reason: "push_lost", afterMs: 400, conversations: [CHAT] });
    assert.equal(engine.conversation(CHAT).timeline.provisional.length, 0);
    pass(399);
    assert.deepEqual(host.take(), []);
    pass(1);
    assert.deepEqual(host.take()[0].conversations, [CHAT]);
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 2, deliveredSeq: 1, unread: 1 })], hasMore: false });
    pass(250);
    assert.equal(host.take()[0].beginSeq, 2);
  });

  test("a RESYNC that waits is neither put off nor narrowed by a later one", () => {
    signIn([entry({ headSeq: 1, deliveredSeq: 1 })]);
    engine.receive({ type: "RESYNC", reason: "instance_lost", afterMs: 8000 });
    engine.receive({ type: "RESYNC", reason: "push_lost", afterMs: 9000, conversations: [CHAT] });
    pass(8000);
    const asked = host.take().filter((frame) => frame.type === "SYNC");
    assert.deepEqual(asked.map((frame) => frame.conversations), [undefined]);
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 1, deliveredSeq: 1 })], hasMore: false });
    engine.receive({ type: "RESYNC", reason: "push_lost", afterMs: 400, conversations: [CHAT] });
    engine.receive({ type: "RESYNC", reason: "push_lost", afterMs: 900, conversations: ["si_ann:cid"] });
    pass(400);
    assert.deepEqual(host.take()[0].conversations, [CHAT, "si_ann:cid"]);
  });

  test("who has sent does not type any more, also before it is saved", () => {
    signIn([entry()]);
    engine.receive({ type: "TYPING", conversationId: CHAT, from: "ben", on: true });
    assert.deepEqual(engine.inbox.typists.in(CHAT), ["ben"]);
    engine.receive({ ...push(1), serverMsgId: "p1", provisional: true, msgSeq: undefined });
    assert.deepEqual(engine.inbox.typists.in(CHAT), []);
  });

  test("a provisional copy is shown, never acknowledged, and goes by withdrawal or in time", () => {
    signIn([entry()]);
    const copy = (id) => ({ ...push(1), serverMsgId: id, provisional: true, msgSeq: undefined });
    engine.receive(copy("p1"));
    engine.receive(copy("p2"));
    engine.receive({ type: "MESSAGE_WITHDRAWN", serverMsgId: "p1", conversationId: CHAT, reason: "blocked" });
    assert.deepEqual(engine.conversation(CHAT).timeline.provisional.map((message) => message.serverMsgId), ["p2"]);
    assert.equal(events("withdrawn").length, 1);
    pass(20_000);
    assert.deepEqual(host.take(), []);
    pass(40_000);
    assert.equal(engine.conversation(CHAT).timeline.provisional.length, 0);
    engine.receive(push(1, { serverMsgId: "p3" }));
    engine.receive(copy("p3"));
    assert.equal(engine.conversation(CHAT).timeline.provisional.length, 0, "the final copy came first");
  });

  test("notices and heads are pulled at once", () => {
    signIn([entry({ conversationId: "sg_g_abcdefghijkl", headSeq: 3, deliveredSeq: 3 }), entry({ headSeq: 1, deliveredSeq: 1 })]);
    engine.receive({ type: "GROUP_NOTIFY", conversationId: "sg_g_abcdefghijkl", groupId: "g_abcdefghijkl", headSeq: 5 });
    engine.receive({ type: "HEADS", conversations: [{ conversationId: CHAT, headSeq: 1 }] });
    assert.deepEqual(host.take().map((frame) => frame.beginSeq), [4]);
  });

  test("a conversation that is not known is asked for before its messages are given", () => {
    signIn();
    engine.receive(push(7));
    assert.deepEqual(events("message"), []);
    pass(0);
    assert.deepEqual(host.take()[0].conversations, [CHAT]);
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 7, minSeq: 1, readSeq: 5, deliveredSeq: 6, unread: 1 })], hasMore: false });
    assert.deepEqual(events("message").map(({ message }) => message.seq), [7]);
    assert.equal(engine.conversation(CHAT).unread.value, 1);
  });

  test("joining again begins at the new span", () => {
    const room = "sg_g_abcdefghijkl";
    const inRoom = (seq, more = {}) => push(seq, { type: "GROUP_CHAT", conversationId: room, groupId: "g_abcdefghijkl", to: undefined, ...more });
    signIn([entry({ conversationId: room, headSeq: 2, deliveredSeq: 2 })]);
    engine.receive(inRoom(3, { type: "GROUP_EVENT", msgType: 104, body: { user_ids: ["ann"], by: "ben" } }));
    engine.receive({ type: "SYNC", conversations: [entry({ conversationId: room, headSeq: 9, minSeq: 9, readSeq: 8, deliveredSeq: 8 })], hasMore: false });
    engine.receive(inRoom(9, { type: "GROUP_EVENT", msgType: 102, body: { user_ids: ["ann"], by: "ben" } }));
    engine.receive(inRoom(10));
    assert.deepEqual(events("groupEvent").map(({ message }) => message.seq), [3, 9]);
    assert.equal(engine.conversation(room).syncedSeq, 10);
    assert.equal(engine.conversation(room).unread.value, 1);
    pass(400);
    assert.deepEqual(host.take().filter((frame) => frame.type === "PULL"), []);
  });

  test("a server that lost its end is followed", () => {
    engine.inbox.baselines.load(CHAT, 40);
    signIn([entry({ headSeq: 40, deliveredSeq: 40, readSeq: 40 })]);
    engine.connection.lost(now, 1006);
    pass(60_000);
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 3, deliveredSeq: 3, readSeq: 3 })], hasMore: false });
    engine.receive(push(4));
    assert.deepEqual(events("message").map(({ message }) => message.seq), [4]);
    assert.equal(engine.conversation(CHAT).unread.value, 1);
  });

  test("a recall blanks the message and the quotes of it", () => {
    signIn([entry()]);
    engine.receive(push(1, { extra: { k: 1 } }));
    engine.receive(push(2, { replyToServerMsgId: "m1", quote: { serverMsgId: "m1", from: "ben", msgType: 1, text: "text 1" } }));
    engine.receive({ type: "MESSAGE_REVOKED", serverMsgId: "m1", conversationId: CHAT, msgSeq: 3, from: "ben", ts: now });
    const [first, second] = engine.conversation(CHAT).window.messages;
    assert.deepEqual([first.status, first.content, first.extra, second.quote], [1, "", null, null]);
    assert.equal(engine.conversation(CHAT).unread.value, 2, "recalling does not change the count");
    assert.equal(events("recalled")[0].serverMsgId, "m1");
  });

  test("unread is asked for where it cannot be known", () => {
    signIn([entry({ headSeq: 100, deliveredSeq: 100, readSeq: 10, unread: 60 })]);
    engine.markRead(engine.conversation(CHAT), 50);
    pass(1000);
    const frames = host.take();
    assert.deepEqual(frames.map((frame) => frame.type), ["ACK", "SYNC"]);
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 100, deliveredSeq: 100, readSeq: 50, unread: 33 })], hasMore: false });
    assert.equal(engine.conversation(CHAT).unread.value, 33);
    engine.markRead(engine.conversation(CHAT), 1000);
    assert.equal(engine.conversation(CHAT).unread.value, 0);
    assert.equal(engine.conversation(CHAT).readSeq, 100, "never beyond what was given");
  });

  test("what was read while offline is told after the reconnect", () => {
    signIn([entry({ headSeq: 4, deliveredSeq: 4, unread: 4 })]);
    engine.connection.lost(now, 1006);
    engine.markRead(engine.conversation(CHAT), 4);
    pass(10_000);
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 4, deliveredSeq: 4, unread: 4 })], hasMore: false });
    assert.equal(engine.conversation(CHAT).unread.value, 0);
    pass(50);
    assert.deepEqual(host.take().at(-1), { type: "ACK", ackType: "read", conversationId: CHAT, msgSeq: 4 });
  });

  test("messages in memory are bounded: the least recently used conversation is let go", () => {
    engine = new Engine("ann", host, { ...OPTIONS, windowSize: 3, maxConversations: 2, random: () => 0.5 }, () => now);
    signIn();
    for (const peer of ["ben", "cid", "dan"]) {
      for (let seq = 1; seq <= 5; seq += 1) engine.receive(push(seq, { conversationId: `si_ann:${peer}`, from: peer }));
    }
    assert.deepEqual(["ben", "cid", "dan"].map((peer) => engine.conversation(`si_ann:${peer}`).window.messages.length), [1, 3, 3]);
    assert.equal(engine.conversation(CHAT).unread.value, 5);
  });
});

describe("golden frames", () => {
  const blocks = (name) =>
    readFileSync(new URL(name, GOLDEN), "utf8")
      .split("\n\n")
      .map((block) => block.split("\n").filter((line) => !line.startsWith("#")))
      .filter((lines) => lines.length >= 2);

  test("every frame of the server is understood", () => {
    let count = 0;
    for (const [title, line] of blocks("server.txt")) {
      host = new FakeHost();
      engine = new Engine("ann", host, { ...OPTIONS, random: () => 0.5 }, () => now);
      signIn([entry({ headSeq: 6, deliveredSeq: 6 }), entry({ conversationId: "sg_g_abcdefghijkl", headSeq: 0 })]);
      assert.doesNotThrow(() => engine.receive(JSON.parse(line)), title);
      pass(0);
      count += 1;
    }
    assert.ok(count > 25);
  });

  test("what is sent has the form that the server's tests have", () => {
    const frames = new Map(blocks("client.txt").map(([title, line]) => [title, JSON.parse(line)]));
    const { from: _, ...whole } = frames.get("SINGLE_CHAT with everything");
    assert.deepEqual(
      sendFrame({ clientMsgId: "c2", conversationId: CHAT, recvId: "ben", groupId: null, msgType: 7, content: "yes ✓", mentions: ["ben"], replyTo: "123456789012345678", extra: { k: [1, 2.5, null] }, expiresS: 60, createdAt: 1799999999000, wasSent: false, error: null }),
      whole,
    );
    assert.deepEqual(
      sendFrame({ clientMsgId: "c3", conversationId: "sg_g_abcdefghijkl", recvId: null, groupId: "g_abcdefghijkl", msgType: 2, content: { url: "https://x.example/1.png" }, mentions: ["@all"], replyTo: null, extra: null, createdAt: 0, wasSent: false, error: null }),
      frames.get("GROUP_CHAT with an image"),
    );
  });
});

describe("sending", () => {
  const item = (clientMsgId) => ({ clientMsgId, order: clientMsgId, conversationId: CHAT, recvId: "ben", groupId: null, msgType: 1, content: "hello", mentions: [], replyTo: null, extra: null, createdAt: 0, wasSent: false, error: null });
  const send = (clientMsgId) => {
    engine.inbox.beginIfNew(engine.conversation(CHAT));
    engine.outbox.add(item(clientMsgId), true);
    engine.pump();
  };
  const saved = (clientMsgId, msgSeq) => engine.receive({ type: "ACK", ackType: "saved", clientMsgId, serverMsgId: `s${msgSeq}`, conversationId: CHAT, msgSeq, ts: now });

  test("one's own message takes its place, behind what crossed it", () => {
    signIn([entry()]);
    send("a");
    saved("a", 2);
    assert.deepEqual(seqs(), []);
    assert.equal(engine.inbox.savedAhead.size, 1, "still pending to those who look");
    engine.receive(push(1));
    assert.deepEqual(seqs(), [1, 2]);
    assert.equal(engine.inbox.savedAhead.size, 0);
    assert.equal(engine.conversation(CHAT).unread.value, 1);
    assert.equal(engine.conversation(CHAT).readSeq, 0, "what crossed it is not read");
  });

  test("the first message of a chat is shown also when its answer was lost", () => {
    signIn();
    send("a");
    engine.connection.lost(now, 1006);
    host.take();
    pass(60_000);
    engine.connection.tokenReady(now);
    engine.connection.opened(now);
    assert.deepEqual(host.take()[0].baselines, { [CHAT]: 0 });
    engine.receive({ type: "AUTH_OK", heartbeatMs: 30_000 });
    assert.deepEqual(host.take().map((frame) => frame.clientMsgId), ["a"], "again, with the same id");
    engine.receive({ type: "SYNC", conversations: [entry({ headSeq: 1, readSeq: 1, deliveredSeq: 1 })], hasMore: false });
    saved("a", 1);
    assert.deepEqual(seqs(), [1]);
    assert.equal(engine.outbox.size, 0);
  });

  test("a copy that comes by itself is as good as the answer", () => {
    signIn([entry()]);
    send("a");
    engine.receive(push(1, { from: "ann", clientMsgId: "a" }));
    assert.equal(engine.outbox.size, 0);
    assert.deepEqual(events("sent").map(({ message }) => message.seq), [1]);
    saved("a", 1);
    assert.deepEqual(events("sent").length, 1);
  });

  test("the text that the filter left is what is shown", () => {
    signIn([entry()]);
    send("a");
    engine.receive({ type: "ACK", ackType: "saved", clientMsgId: "a", serverMsgId: "s1", conversationId: CHAT, msgSeq: 1, ts: now, body: "***" });
    assert.equal(engine.conversation(CHAT).window.messages[0].content, "***");
  });

  test("receipts move the peer's cursors, forwards only", () => {
    signIn([entry()]);
    send("a");
    saved("a", 1);
    const chat = engine.conversation(CHAT);
    assert.equal(chat.stateOf(1), "saved");
    const receipt = (ackType, msgSeq) => engine.receive({ type: "ACK", ackType, conversationId: CHAT, serverMsgId: "s1", msgSeq, from: "ben" });
    receipt("read", 1);
    receipt("delivered", 1);
    assert.equal(chat.stateOf(1), "read");
    receipt("read", 0);
    assert.equal(chat.stateOf(1), "read");
    engine.receive({ type: "ACK", ackType: "read", conversationId: CHAT, msgSeq: 1, from: "ann" });
    assert.equal(chat.readSeq, 1);
  });
});
