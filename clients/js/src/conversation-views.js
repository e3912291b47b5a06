// The conversations as the application sees them: one object for each, the sorted list, and one event for all changes.

import { sortConversations } from "./conversation-list.js";
import { Conversation } from "./conversation.js";

/** @import { NexoClient } from "./client.js" */
/** @import { ConversationState } from "./core/conversation-state.js" */

export class ConversationViews {
  /** @param {NexoClient} client @param {() => Iterable<ConversationState>} states */
  constructor(client, states) {
    this._client = client;
    this._states = states;
    /** @type {Map<string, Conversation>} */
    this._views = new Map();
    /** @type {Set<ConversationState>} */
    this._dirty = new Set();
    /** @type {Conversation[] | null} */
    this._list = null;
  }

  /** Pinned first, then the newest activity. */
  get list() {
    this._list ??= sortConversations(this._states()).map((state) => this.of(state));
    return this._list;
  }

  /** @param {ConversationState} state */
  of(state) {
    let view = this._views.get(state.id);
    if (!view) {
      view = new Conversation(this._client, state);
      this._views.set(state.id, view);
    }
    return view;
  }

  /** Emits the changes once, at the end of the microtask. @param {ConversationState} state */
  changed(state) {
    this._views.get(state.id)?._invalidate();
    this._list = null;
    if (this._dirty.size === 0) queueMicrotask(() => this._emitChanges());
    this._dirty.add(state);
  }

  _emitChanges() {
    const dirty = [...this._dirty];
    this._dirty.clear();
    if (dirty.length === 0) return;
    for (const state of dirty) {
      const view = this._views.get(state.id);
      view?._emit("change", view);
    }
    this._client._emit("conversations", this.list);
  }

  clear() {
    this._views.clear();
    this._dirty.clear();
    this._list = null;
  }
}
