// The scenarios that every SDK has to pass, played against the scripted server. See tests/conformance/README.md.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import WebSocket from "ws";

import { MemoryStorage, NexoClient } from "../src/index.js";
import { ScriptedServer } from "./support/scripted.js";

const SCENARIOS = new URL("../../../tests/conformance/scenarios/", import.meta.url);
const SHORT_TIMES = {
  gapWaitMs: 20,
  ackDelayMs: 10,
  ackTimeoutMs: 300,
  backoffMinMs: 10,
  backoffMaxMs: 40,
  connectTimeoutMs: 1000,
};
const PATIENCE_MS = 5000;

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Runner {
  constructor(server, given) {
    this.server = server;
    this.given = given;
    const options = Object.fromEntries(Object.entries(given.options ?? {}).map(([name, value]) => [camel(name), value]));
    this.options = { url: server.url, WebSocket, ...SHORT_TIMES, ...options };
    this.storage = new MemoryStorage();
    this.sent = new Map();
    this.restarted = false;
    this.client = null;
    this.takesFromInbox = false;
    this.inbox = null;
    this.givesTokens = false;
  }

  // -- steps ------------------------------------------------------------------------------------------------

  async run(scenario) {
    for (const step of scenario.steps) {
      const [[verb, params]] = Object.entries(step);
      if (verb === "server") await this.server.control("step", params);
      else if (verb === "wait") await this.wait(params);
      else if (verb in STEPS) await STEPS[verb](this, params);
      else throw new Error(`a step that this runner does not know: ${verb}`);
    }
    await this.wait(scenario.end ?? { truth: true, state: "online" });
  }

  async wait(want) {
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      const view = this.view();
      const { differences } = await this.server.control("check", { view, want });
      if (differences.length === 0) return;
      if (Date.now() > until) {
        assert.fail(`wanted ${JSON.stringify(want)}\n${differences.join("\n")}\n${JSON.stringify(view, null, 1)}`);
      }
      await sleep(10);
    }
  }

  async connect() {
    if (!this.client) {
      const getToken = this.givesTokens ? () => this.getToken() : undefined;
      this.client = new NexoClient({ ...this.options, getToken, storage: this.storage });
      this.events = [];
      if (this.takesFromInbox) this.inbox = this.client.inbox();
      else this.client.on("message", (event) => this.note(event));
      if (!this.givesTokens && !(await this.client.restore())) await this.login();
      for (const [label, sent] of this.sent) {
        const found = this.client.pending.find((outgoing) => outgoing.clientMsgId === sent.clientMsgId);
        if (found) this.sent.set(label, found);
      }
    } else if (!this.client.session && !this.givesTokens) await this.login();
    this.client.connect().catch(() => {}); // how it ended is in the view
  }

  async login() {
    await this.client.login({ userId: this.given.user_id, password: this.given.password });
  }

  note({ message, conversation }) {
    this.events.push([conversation.id, message.seq]);
  }

  async getToken() {
    const body = JSON.stringify({ user_id: this.given.user_id, password: this.given.password, platform_id: 7 });
    const answer = await fetch(`${this.server.url}/auth/login`, { method: "POST", body });
    return (await answer.json()).data.access_token;
  }

  async take(count) {
    for (let taken = 0; taken < count; taken++) this.note((await this.inbox.next()).value);
  }

  takeAll() {
    void (async () => {
      for await (const event of this.inbox) this.note(event);
    })();
  }

  async flush(reason) {
    if (reason) await assert.rejects(this.client.flush(50), (error) => error.reason === reason);
    else await this.client.flush(5000);
  }

  kill() {
    this.client._forgetUser();
    this.client._tokenRefresh.stop();
    this.client = null;
    this.restarted = true;
  }

  async end() {
    await this.client?.close();
  }

  message(conversation, text) {
    const found = conversation.messages.find((message) => message.content === text);
    assert.ok(found, `no message ${text} is shown`);
    return found;
  }

  // -- the view ---------------------------------------------------------------------------------------------

  view() {
    const client = this.client;
    return {
      state: client?.state ?? "offline",
      reason: client?.stateChange.reason ?? null,
      conversations: Object.fromEntries((client?.conversations ?? []).map((conversation) => [conversation.id, row(conversation)])),
      sent: Object.fromEntries([...this.sent].map(([label, outgoing]) => [label, outgoingRow(outgoing)])),
      pending: (client?.pending ?? []).map((outgoing) => outgoing.clientMsgId),
      events: this.events ?? [],
      presence: Object.fromEntries((client?.presence.watched ?? []).map((id) => [id, client.presence.of(id)?.online ?? null])),
      restarted: this.restarted,
    };
  }
}

function row(conversation) {
  return {
    head_seq: conversation.headSeq,
    min_seq: conversation.minSeq,
    read_seq: conversation.readSeq,
    synced_seq: conversation.syncedSeq,
    unread: conversation.unread,
    unread_mentions: conversation.unreadMentions,
    has_earlier: conversation.hasEarlier,
    has_later: conversation.hasLater,
    typists: conversation.typists,
    pinned: conversation.pinned,
    archived: conversation.archived,
    marked_unread: conversation.markedUnread,
    draft: conversation.draft && { text: conversation.draft.text },
    last_seq: conversation.lastMessage?.seq ?? null,
    messages: conversation.messages.map(messageRow),
  };
}

function messageRow(message) {
  const quote = message.quote;
  return {
    server_msg_id: message.serverMsgId,
    client_msg_id: message.clientMsgId,
    conversation_id: message.conversationId,
    seq: message.seq,
    sender_id: message.senderId,
    msg_type: message.msgType,
    content: message.content,
    mentions: message.mentions,
    reply_to: message.replyTo,
    quote: quote && {
      server_msg_id: quote.serverMsgId,
      sender_id: quote.senderId,
      msg_type: quote.msgType,
      text: quote.text,
    },
    status: message.status,
    edited_at: message.editedAt,
    expires_at: message.expiresAt,
    reactions: message.reactions,
    send_at: message.sendAt,
    provisional: message.provisional,
  };
}

function outgoingRow(outgoing) {
  const { clientMsgId, state, error, seq } = outgoing;
  return { client_msg_id: clientMsgId, state, reason: error?.reason ?? null, seq };
}

const STEPS = {
  connect: (runner) => runner.connect(),
  give_tokens: (runner) => void (runner.givesTokens = true),
  use_inbox: (runner) => void (runner.takesFromInbox = true),
  take: (runner, { count }) => runner.take(count),
  take_all: (runner) => runner.takeAll(),
  flush: (runner, { reason }) => runner.flush(reason),
  close: (runner) => runner.client.close(),
  kill: (runner) => runner.kill(),
  send: (runner, { to, group, text, as = text, mentions, reply_to }) => {
    const conversation = to ? runner.client.chatWith(to) : runner.client.group(group);
    const replyTo = reply_to && runner.message(conversation, reply_to).serverMsgId;
    runner.sent.set(as, conversation.send(text, { mentions, replyTo }));
  },
  retry: (runner, { message }) => assert.equal(runner.sent.get(message).retry(), true),
  cancel: (runner, { message }) => void runner.sent.get(message).cancel(),
  mark_read: (runner, { in: id, seq }) => runner.client.conversation(id).markRead(seq),
  load_earlier: (runner, { in: id, limit }) => runner.client.conversation(id).loadEarlier(limit),
  load_later: (runner, { in: id, limit }) => runner.client.conversation(id).loadLater(limit),
  load_latest: (runner, { in: id, limit }) => runner.client.conversation(id).loadLatest(limit),
  load_around: (runner, { in: id, seq, limit }) => runner.client.conversation(id).loadAround(seq, limit),
  recall: (runner, { in: id, text }) => {
    const conversation = runner.client.conversation(id);
    return conversation.recall(runner.message(conversation, text).serverMsgId);
  },
  edit: (runner, { in: id, text, to, mentions }) => {
    const conversation = runner.client.conversation(id);
    return conversation.edit(runner.message(conversation, text), to, { mentions });
  },
  react: (runner, { in: id, text, emoji, on }) => {
    const conversation = runner.client.conversation(id);
    return conversation.react(runner.message(conversation, text), emoji, on);
  },
  pin: (runner, { in: id, text, on }) => {
    const conversation = runner.client.conversation(id);
    return conversation.pin(runner.message(conversation, text), on);
  },
  delete_for_me: (runner, { in: id, texts }) => {
    const conversation = runner.client.conversation(id);
    return conversation.deleteForMe(texts.map((text) => runner.message(conversation, text)));
  },
  clear: (runner, { in: id }) => runner.client.conversation(id).clear(),
  update: (runner, { in: id, ...settings }) => {
    const named = Object.fromEntries(Object.entries(settings).map(([name, value]) => [camel(name), value]));
    return runner.client.conversation(id).update(named);
  },
  subscribe_presence: (runner, { users }) => runner.client.presence.subscribe(users),
  typing: (runner, { in: id, on }) => runner.client.conversation(id).typing(on),
  create_group: (runner, { name, members }) => runner.client.groups.create({ name, memberIds: members }),
  pause: (runner, { ms }) => sleep(ms),
};

describe("conformance", () => {
  let server;
  before(async () => {
    server = await ScriptedServer.start();
  });
  after(() => server.stop());

  for (const file of readdirSync(SCENARIOS).filter((name) => name.endsWith(".json")).sort()) {
    test(file.replace(/\.json$/, "").replaceAll("_", " "), async () => {
      const scenario = JSON.parse(readFileSync(new URL(file, SCENARIOS), "utf8"));
      const runner = new Runner(server, await server.control("load", scenario));
      try {
        await runner.run(scenario);
      } finally {
        await runner.end();
      }
    });
  }
});
