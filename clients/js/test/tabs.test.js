// Several tabs of one user on one storage: who sends what, who refreshes, and what a closed tab leaves behind.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { NexoClient } from "../src/client.js";
import { MemoryStorage } from "../src/index.js";
import { Locks } from "../src/locks.js";

/** Web Locks, as far as they are used. */
class LockManager {
  constructor() {
    this.queues = new Map();
  }
  request(name, work) {
    const run = (this.queues.get(name)?.last ?? Promise.resolve()).then(async () => {
      this.queues.get(name).held = true;
      try {
        return await work();
      } finally {
        this.queues.get(name).held = false;
      }
    });
    this.queues.set(name, { held: this.queues.get(name)?.held ?? false, last: run.catch(() => {}) });
    return run;
  }
  async query() {
    return { held: [...this.queues].filter(([, queue]) => queue.held).map(([name]) => ({ name })) };
  }
}

/** A socket that signs in and records what is sent; `answers` are given to sends. */
function fakeSockets() {
  const sent = [];
  class FakeSocket {
    constructor() {
      this.readyState = 0;
      setTimeout(() => {
        this.readyState = 1;
        this.onopen();
      });
    }
    send(text) {
      const frame = JSON.parse(text);
      sent.push(frame);
      if (frame.type === "AUTH") {
        this.tell({ type: "AUTH_OK", userId: "ann", connId: "c", heartbeatMs: 30_000 });
        this.tell({ type: "SYNC", conversations: [], hasMore: false });
      }
      if (frame.type === "SINGLE_CHAT" && FakeSocket.answers) {
        this.tell({ type: "ACK", ackType: "saved", clientMsgId: frame.clientMsgId, serverMsgId: `s${sent.length}`, conversationId: `si_ann:${frame.to}`, msgSeq: (FakeSocket.seq += 1), ts: 1 });
      }
    }
    tell(frame) {
      setTimeout(() => this.readyState === 1 && this.onmessage({ data: JSON.stringify(frame) }));
    }
    close() {
      this.readyState = 3;
    }
  }
  FakeSocket.seq = 0;
  FakeSocket.answers = true;
  return { FakeSocket, sent };
}

let manager;
let storage;
let tokens;
let refreshed;

beforeEach(() => {
  manager = new LockManager();
  storage = new MemoryStorage();
  tokens = 0;
  refreshed = [];
});

const session = () => {
  tokens += 1;
  return { user_id: "ann", access_token: `a${tokens}`, refresh_token: `r${tokens}`, expires_at: Date.now() + 1_800_000, platform_id: 5, device_id: "d" };
};
const fetch = async (url, init) => {
  const path = new URL(url).pathname;
  const data = path === "/conversation/list" ? { conversations: [], next_cursor: "", has_more: false } : session();
  if (path === "/auth/refresh") {
    const { refresh_token } = JSON.parse(init.body);
    refreshed.push(refresh_token);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return new Response(JSON.stringify({ err_code: 0, err_msg: "", data }));
};
const tab = (WebSocket, more = {}) => {
  const client = new NexoClient({ url: "http://nexo.test", storage, fetch, WebSocket, ackTimeoutMs: 60_000, ...more });
  client._locks = new Locks(manager);
  client._sessions._locks = client._locks;
  return client;
};

test("each tab sends its own; a tab that lives is not robbed", async () => {
  const { FakeSocket, sent } = fakeSockets();
  FakeSocket.answers = false;
  const one = tab(FakeSocket);
  await one.login({ userId: "ann", password: "x" });
  await one.connect();
  one.chatWith("ben").send("from one");
  await one._driver._writes;
  const other = tab(FakeSocket);
  await other.restore();
  await other.connect();
  assert.deepEqual(other.pending, []);
  assert.equal(sent.filter((frame) => frame.type === "SINGLE_CHAT").length, 1);
  await one.close();
  await other.close();
});

test("what a closed tab left is sent by another, in order, and leaves the storage", async () => {
  const { FakeSocket, sent } = fakeSockets();
  const one = tab(FakeSocket);
  await one.login({ userId: "ann", password: "x" });
  for (const text of ["1", "2", "3"]) one.chatWith("ben").send(text);
  await one._driver._writes;
  one._driver.abandon();
  const other = tab(FakeSocket);
  await other.restore();
  assert.deepEqual(other.pending.map((outgoing) => outgoing.content), ["1", "2", "3"]);
  await other.connect();
  await Promise.all(other.pending.map((outgoing) => outgoing.whenSaved()));
  await other._driver._writes;
  assert.deepEqual(sent.filter((frame) => frame.type === "SINGLE_CHAT").map((frame) => frame.body), ["1", "2", "3"]);
  assert.deepEqual(await storage.entries("outbox/"), []);
  await other.close();
});

test("of a tab that goes while others look, nothing is taken over out of order", async () => {
  const { FakeSocket, sent } = fakeSockets();
  const one = tab(FakeSocket);
  await one.login({ userId: "ann", password: "x" });
  ["1", "2", "3"].forEach((text, at) => one.chatWith("ben").send(text, { clientMsgId: `chosen-${9 - at}` }));
  await one._driver._writes;
  const other = tab(FakeSocket);
  const query = manager.query.bind(manager);
  manager.query = async () => {
    const found = await query();
    one._driver.abandon(); // just after the first look
    return found;
  };
  await other.restore();
  await other.connect();
  await other._driver._adopt();
  await Promise.all(other.pending.map((outgoing) => outgoing.whenSaved()));
  assert.deepEqual(sent.filter((frame) => frame.type === "SINGLE_CHAT").map((frame) => frame.body), ["1", "2", "3"]);
  await other.close();
});

test("two tabs refresh once between them", async () => {
  const { FakeSocket } = fakeSockets();
  const one = tab(FakeSocket);
  await one.login({ userId: "ann", password: "x" });
  const other = tab(FakeSocket);
  await other.restore();
  const stale = one.session;
  await Promise.all([one._sessions.refresh(stale), one._sessions.refresh(stale), other._sessions.refresh(stale)]);
  assert.deepEqual(refreshed, ["r1"]);
  assert.equal(one.session.accessToken, other.session.accessToken);
});

test("an outgoing message is in `pending` or in `messages`, never in both or neither", async () => {
  const { FakeSocket } = fakeSockets();
  const client = tab(FakeSocket);
  await client.login({ userId: "ann", password: "x" });
  await client.connect();
  const chat = client.chatWith("ben");
  const sent = chat.send("hello");
  const seen = [];
  const look = () => seen.push([chat.pending.length, chat.messages.length].join());
  chat.on("change", look);
  client.on("outgoing", look);
  client.on("sent", look);
  await sent.whenSaved();
  look();
  assert.ok(seen.every((pair) => pair === "1,0" || pair === "0,1"), seen.join(" "));
  assert.equal(seen.at(-1), "0,1");
  await client.close();
});

test("a handler that throws harms nobody, and is told", async () => {
  const { FakeSocket } = fakeSockets();
  const client = tab(FakeSocket);
  const told = [];
  client.on("error", (error) => told.push(error.message));
  client.on("sent", () => {
    throw new Error("oops");
  });
  client.on("sent", async () => {
    throw new Error("later");
  });
  await client.login({ userId: "ann", password: "x" });
  await client.connect();
  await client.chatWith("ben").send("hello").whenSaved();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(told.length, 2);
  await client.close();
});

test("nothing goes on after close, also when the list could not be had", async () => {
  const { FakeSocket } = fakeSockets();
  let asked = 0;
  let refuse;
  const failing = (url, init) => {
    if (new URL(url).pathname !== "/conversation/list") return fetch(url, init);
    asked += 1;
    return new Promise((_, reject) => (refuse = () => reject(new TypeError("gone"))));
  };
  const client = tab(FakeSocket, { fetch: failing });
  await client.login({ userId: "ann", password: "x" });
  await client.connect();
  await client.close();
  refuse(); // asked once more, as any GET on a connection that has gone
  await new Promise((resolve) => setImmediate(resolve));
  refuse();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked, 2);
  assert.equal(client._conversationList._retry, null, "no timer keeps the process alive");
});

test("without a WebSocket the error says what to do", async () => {
  const client = tab(null);
  await assert.rejects(client.connect(), (error) => error.reason === "no_websocket" && /option WebSocket/.test(error.message));
});
