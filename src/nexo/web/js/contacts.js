/** The user's contacts and the requests between them: asked for when connected, and again when the server reports a change. */

import { Emitter } from "./emitter.js";

const PAGE = 200;

export class ContactBook extends Emitter {
  list = [];
  received = [];
  sent = [];
  isLoaded = false;

  /** @param {any} model */
  constructor(model) {
    super();
    this.model = model;
    this.ends = ["contactRequest", "contactDecision"].map((name) => model.client.on(name, () => this.load()));
  }

  /** What has to be known at once: the requests of others. */
  async loadReceived() {
    this.received = (await this.model.client.contacts.requests({ limit: PAGE })).requests;
    this.model.emit("contacts");
  }

  /** For what shows relations. */
  async loadOnce() {
    if (!this.isLoaded) await this.load();
  }

  async load() {
    const { contacts } = this.model.client;
    const [list, received, sent] = await Promise.allSettled([contacts.list({ limit: PAGE }), contacts.requests({ limit: PAGE }), contacts.requests({ sent: true, limit: PAGE })]);
    if (list.status === "fulfilled") this.list = list.value.contacts;
    if (received.status === "fulfilled") this.received = received.value.requests;
    if (sent.status === "fulfilled") this.sent = sent.value.requests;
    this.isLoaded = list.status === "fulfilled";
    for (const one of this.list) this.model.people.learn(one);
    this.model.emit("contacts");
  }

  stop() {
    for (const end of this.ends) end();
  }

  /** @param {string} userId */
  of(userId) {
    return this.list.find((one) => one.userId === userId) ?? null;
  }

  /** @param {string} userId @returns {"contact" | "asked" | "asks" | ""} */
  relation(userId) {
    if (this.of(userId)) return "contact";
    if (this.sent.some((one) => one.userId === userId)) return "asked";
    return this.received.some((one) => one.userId === userId) ? "asks" : "";
  }

  /** Runs a change, then asks again. @param {() => Promise<any>} work */
  async change(work) {
    await work();
    await this.load();
  }
}
