// A small model of the server and of a bad network, on a simulated clock, around one engine.

import { Engine } from "../../src/core/engine.js";

export const ME = "ann";
export const OPTIONS = {
  gapWaitMs: 150,
  ackDelayMs: 50,
  ackTimeoutMs: 10_000,
  heartbeatMs: 0,
  connectTimeoutMs: 10_000,
  backoffMinMs: 500,
  backoffMaxMs: 30_000,
  provisionalMs: 60_000,
  windowSize: 500,
  maxConversations: 200,
  maxInFlight: 32,
};

/** Frames and effects are recorded; nothing happens by itself. */
export class FakeHost {
  constructor() {
    this.frames = [];
    this.events = [];
    this.calls = [];
    this.stored = new Map();
    this.saved = [];
    this.pages = 0;
  }
  open() { this.calls.push("open"); }
  drop(code) { this.calls.push(`drop ${code}`); }
  needToken(isExpired) { this.calls.push(isExpired ? "refresh" : "token"); }
  credentials() { return { token: "t", deviceId: "d" }; }
  send(frame) { this.frames.push(frame); }
  emit(name, payload) { this.events.push([name, payload]); }
  changed() {}
  itemChanged() {}
  itemSaved(item) { this.saved.push(item.clientMsgId); }
  itemGiven() {}
  storeBaselines(baselines) { for (const [id, seq] of baselines) this.stored.set(id, seq); }
  ended(reason, forget) { this.calls.push(`ended ${reason}${forget ? " forget" : ""}`); }
  loadList() { this.calls.push("list"); }
  take() { return this.frames.splice(0); }
}

export class World {
  constructor(random, options = {}) {
    this.random = random;
    this.now = 1_000_000;
    this.host = new FakeHost();
    this.options = { ...OPTIONS, ...options, random };
    this.rooms = new Map();
    this.ids = 0;
    /** To the client, in order: {at, frame}; thrown away when the connection is cut. */
    this.wire = [];
    this.isConnected = false;
    this.wakes = 0;
    this.lastWake = 0;
    this.engine = this.newEngine();
  }

  newEngine() {
    const engine = new Engine(ME, this.host, this.options, () => this.now);
    this.host.open = () => (this.opening = true);
    this.host.needToken = () => (this.needsToken = true);
    this.host.drop = () => this.disconnect();
    this.host.send = (frame) => this.fromClient(frame);
    return engine;
  }

  room(id) {
    if (!this.rooms.has(id)) this.rooms.set(id, { id, messages: [], read: 0, delivered: 0, peerGot: 0 });
    return this.rooms.get(id);
  }

  // -- the server -------------------------------------------------------------------------------------------

  store(id, from, text, clientMsgId = null) {
    const room = this.room(id);
    const seq = room.messages.length + 1;
    this.ids += 1;
    const message = { type: "SINGLE_CHAT", serverMsgId: String(this.ids), clientMsgId, conversationId: id, msgSeq: seq, from, to: "x", msgType: 1, body: text, mentions: [], status: 0, ts: this.now };
    room.messages.push(message);
    if (from === ME) {
      if (room.read === seq - 1) room.read = seq;
      if (room.delivered === seq - 1) room.delivered = seq;
    }
    return message;
  }

  unread(id) {
    const room = this.room(id);
    return room.messages.filter((message) => message.from !== ME && message.msgSeq > room.read).length;
  }

  entry(id) {
    const room = this.room(id);
    return { conversationId: id, headSeq: room.messages.length, minSeq: 1, readSeq: room.read, deliveredSeq: room.delivered, unread: this.unread(id) };
  }

  /** Somebody else writes. The push is lost at times; then RESYNC follows. */
  say(id, text) {
    const message = this.store(id, "ben", text);
    if (!this.isSignedIn) return;
    if (this.random.chance(0.1)) this.toClient({ type: "RESYNC", reason: "push_lost", afterMs: 100 }, 200);
    else {
      this.toClient(message, this.random.below(40), true);
      if (this.random.chance(0.1)) this.toClient(message, this.random.below(400), true);
    }
  }

  fromClient(frame) {
    if (!this.isConnected) return;
    const isLost = this.random.chance(this.cutChance ?? 0);
    if (!isLost || this.random.chance(0.5)) this.handle(frame); // done, and the answer is lost; or not done
    if (isLost) this.cut();
  }

  handle(frame) {
    switch (frame.type) {
      case "AUTH": {
        this.isSignedIn = true;
        this.toClient({ type: "AUTH_OK", userId: ME, connId: "c", heartbeatMs: 30_000 });
        this.toClient({ type: "SYNC", conversations: [...this.rooms.keys()].map((id) => this.entry(id)), hasMore: false });
        for (const room of this.rooms.values()) {
          const from = frame.baselines?.[room.id] ?? room.delivered;
          for (const message of room.messages.slice(from, from + 20)) this.toClient({ ...message, resend: true });
        }
        return this.toClient({ type: "RESEND_DONE", hasMore: true });
      }
      case "SYNC": {
        const ids = frame.conversations ?? [...this.rooms.keys()];
        return this.toClient({ type: "SYNC", conversations: ids.filter((id) => this.rooms.has(id)).map((id) => this.entry(id)), hasMore: false });
      }
      case "PULL": {
        const { messages } = this.room(frame.conversationId);
        const page = messages.slice(frame.beginSeq - 1, frame.beginSeq - 1 + 7);
        const nextSeq = frame.beginSeq + page.length;
        return this.toClient({ type: "PULL_OK", conversationId: frame.conversationId, messages: page, headSeq: messages.length, nextSeq, hasMore: nextSeq <= messages.length });
      }
      case "SINGLE_CHAT":
        return this.sent(frame);
      case "ACK": {
        const room = this.room(frame.conversationId);
        if (frame.msgSeq > room.messages.length) throw new Error("acknowledged what does not exist");
        if (frame.msgSeq > this.engine.conversation(room.id).syncedSeq) throw new Error("acknowledged beyond the contiguous point");
        room.delivered = Math.max(room.delivered, frame.msgSeq);
        if (frame.ackType === "read") room.read = Math.max(room.read, frame.msgSeq);
        for (const cursor of ["read", "delivered"]) while (room.messages[room[cursor]]?.from === ME) room[cursor] += 1;
        return undefined;
      }
      case "PING":
        return this.toClient({ type: "PONG" });
      default:
        throw new Error(`the client sent ${frame.type}`);
    }
  }

  sent(frame) {
    const id = `si_${ME}:${frame.to}`;
    const room = this.room(id);
    if (room.refusing && this.now > room.refusingUntil) room.refusing = null;
    if (!room.refusing && this.random.chance(this.busy ?? 0)) {
      room.refusing = frame.clientMsgId;
      room.refusingUntil = this.now + 5000;
    }
    if (room.refusing === frame.clientMsgId && !this.random.chance(this.busy ?? 0)) room.refusing = null;
    if (room.refusing) return this.toClient({ type: "ERROR", reason: "server_busy", clientMsgId: frame.clientMsgId, retryAfterMs: 50 });
    const found = room.messages.find((message) => message.clientMsgId === frame.clientMsgId);
    const message = found ?? this.store(id, ME, frame.body, frame.clientMsgId);
    return this.toClient({ type: "ACK", ackType: "saved", clientMsgId: frame.clientMsgId, serverMsgId: message.serverMsgId, conversationId: id, msgSeq: message.msgSeq, ts: message.ts });
  }

  // -- the network ------------------------------------------------------------------------------------------

  /** Frames keep their order, except pushes, which may come late. */
  toClient(frame, delay = 5, isFree = false) {
    const at = isFree ? this.now + 5 + delay : Math.max(this.now + delay, this.lastAt ?? 0);
    if (!isFree) this.lastAt = at;
    this.wire.push({ at, frame });
  }

  disconnect() {
    this.isConnected = false;
    this.isSignedIn = false;
    this.wire = [];
    this.lastAt = 0;
  }

  cut() {
    if (!this.isConnected) return;
    this.disconnect();
    this.cutPending = true;
  }

  // -- time -------------------------------------------------------------------------------------------------

  /** Let so much time pass. */
  run(ms) {
    const end = this.now + ms;
    for (;;) {
      this.settle();
      const next = Math.min(this.engine.deadline, ...this.wire.map((item) => item.at));
      if (next > end) break;
      this.now = Math.max(this.now, next);
      this.wakes = next > this.lastWake ? 0 : this.wakes + 1;
      this.lastWake = this.now;
      if (this.wakes > 50) throw new Error("it asks to be woken again and again");
      const due = this.wire.filter((item) => item.at <= this.now);
      this.wire = this.wire.filter((item) => item.at > this.now);
      for (const { frame } of due.sort((one, other) => one.at - other.at)) {
        if (this.isConnected) this.engine.receive(frame);
      }
      this.engine.tick();
    }
    this.now = end;
  }

  settle() {
    while (this.needsToken || this.opening || this.cutPending) {
      if (this.cutPending) {
        this.cutPending = false;
        this.engine.connection.lost(this.now, 1006);
      } else if (this.needsToken) {
        this.needsToken = false;
        this.engine.connection.tokenReady(this.now);
      } else {
        this.opening = false;
        this.isConnected = true;
        this.engine.connection.opened(this.now);
      }
    }
  }
}
