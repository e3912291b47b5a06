// Messages that are handled one after the other, and come again after a restart unless they were: `client.inbox()`.

/** @import { Conversation } from "./conversation.js" */
/** @import { EventStream } from "./emitter.js" */
/** @import { PlacedMessage } from "./types.js" */

/** @typedef {{message: PlacedMessage, conversation: Conversation}} Received */

/** A message of another user, to be handled. */
export class InboxMessage {
  /** @param {Received} event @param {(conversationId: string, seq: number) => void} handled */
  constructor(event, handled) {
    this.message = event.message;
    this.conversation = event.conversation;
    this._event = event;
    this._handled = handled;
    this._isDone = false;
  }

  /** Counts it as handled. Otherwise that happens when the next one is requested. */
  done() {
    if (this._isDone) return;
    this._isDone = true;
    this._handled(this.conversation.id, this.message.seq);
  }
}

/**
 * Messages in the order of their conversations. One counts as handled when the next is requested or `done` was called; only then
 * is it acknowledged and stored that this device has it. It ends as an iterator of events does.
 */
export class InboxStream {
  /**
   * @param {EventStream<any>} stream
   * @param {(conversationId: string, seq: number) => void} handled
   * @param {(conversationId: string) => Promise<void>} keep stores that a conversation has messages that are not handled
   * @param {() => Promise<void>} ended stores what was handled
   */
  constructor(stream, handled, keep, ended) {
    this._stream = stream;
    this._handled = handled;
    this._keep = keep;
    this._ended = ended;
    /** @type {InboxMessage | null} */
    this._current = null;
    /** @type {Set<string>} */
    this._kept = new Set();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  get isOver() {
    return this._stream.isOver;
  }

  /** @returns {Promise<IteratorResult<InboxMessage, undefined>>} */
  async next() {
    this._current?.done();
    this._current = null;
    const { value: event } = await this._stream.next().catch(async (error) => {
      await this._ended();
      throw error;
    });
    if (!event) {
      await this._ended();
      return { done: true, value: undefined };
    }
    const { id } = event.conversation;
    // before the application has it, so that nothing that it does (marking it as read) makes it appear as handled
    if (!this._kept.has(id)) await this._keep(id);
    this._kept.add(id);
    this._current = new InboxMessage(event, this._handled);
    return { done: false, value: this._current };
  }

  /** Ends it; the current message is not handled. @returns {Promise<IteratorResult<InboxMessage, undefined>>} */
  async return() {
    this._stream.end();
    return { done: true, value: undefined };
  }

  /** The messages that this iterator leaves to the next one. @returns {Received[]} */
  takeUnhandled() {
    const held = this._current && !this._current._isDone ? [this._current._event] : [];
    this._current = null;
    return [...held, ...this._stream.takeWaiting()];
  }
}
