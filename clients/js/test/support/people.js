// Clients of a real server, and waiting for what they show.

import assert from "node:assert/strict";
import WebSocket from "ws";

import { NexoClient } from "../../src/index.js";

export const SHORT_TIMES = { backoffMinMs: 20, backoffMaxMs: 200, ackTimeoutMs: 2000, connectTimeoutMs: 3000 };

export class People {
  constructor(url) {
    this.url = url;
    this._clients = [];
  }

  /** A client that is signed in and connected. */
  async connect(userId, options = {}) {
    const client = await this.signIn(userId, options);
    await client.connect();
    return client;
  }

  async signIn(userId, options = {}) {
    const client = this.make(options);
    await this.ensure(userId, client);
    await client.login({ userId, password: "correct horse" });
    return client;
  }

  make(options = {}) {
    const client = new NexoClient({ url: this.url, WebSocket, ...SHORT_TIMES, ...options });
    this._clients.push(client);
    return client;
  }

  async ensure(userId, client = this.make()) {
    await client.register({ userId, password: "correct horse", nickname: userId }).catch((error) => {
      if (error.reason !== "user_exists") throw error;
    });
  }

  async end() {
    await Promise.all(this._clients.map((client) => client.close()));
  }
}

/** Until it is so; looked at after each event and change of the client. */
export async function until(client, isSo, what = String(isSo), patienceMs = 15_000) {
  if (isSo()) return;
  await new Promise((resolve, reject) => {
    const names = ["state", "message", "sent", "groupEvent", "recalled", "outgoing", "receipt", "typing", "presence", "conversations", "provisional", "session"];
    const look = () => {
      if (!isSo()) return;
      clearTimeout(timer);
      ends.forEach((end) => end());
      resolve();
    };
    const ends = names.map((name) => client.on(name, look));
    const timer = setTimeout(() => {
      ends.forEach((end) => end());
      reject(new assert.AssertionError({ message: `never came: ${what}` }));
    }, patienceMs);
  });
}

export const texts = (conversation) => conversation.messages.filter((message) => message.msgType < 100).map((message) => message.content);
