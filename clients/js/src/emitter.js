// Delivers named events to handlers and iterators. A handler that throws does not keep other handlers from being called.

import { NexoError } from "./errors.js";

const EVENTS_MAX = 10_000; // that an iterator may have waiting

/**
 * Events in the order in which they happened, for `for await`. When the server has ended the session, the error with its reason
 * is thrown once, after the events that were kept; `slow_consumer` when there were more of them than are kept.
 * @template Item
 */
export class EventStream {
  /** @param {(stream: EventStream<Item>) => void} forget called at its end */
  constructor(forget) {
    this._forget = forget;
    /** @type {Item[]} */
    this._waiting = [];
    /** @type {(() => void)[]} */
    this._readers = [];
    /** @type {NexoError | null} */
    this._error = null;
    this.isOver = false;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @param {Item} item */
  put(item) {
    if (this.isOver) return;
    if (this._waiting.length >= EVENTS_MAX) {
      this.end(new NexoError("slow_consumer", "Events were not consumed as fast as they were emitted"));
      return;
    }
    this._waiting.push(item);
    this._readers.shift()?.();
  }

  /** Ends it after the events that it has; `error` is thrown then. @param {NexoError | null} [error] */
  end(error = null) {
    if (this.isOver) return;
    this.isOver = true;
    this._error = error;
    this._forget(this);
    for (const wake of this._readers.splice(0)) wake();
  }

  /** Removes what was not consumed. @returns {Item[]} */
  takeWaiting() {
    return this._waiting.splice(0);
  }

  /** @returns {Promise<IteratorResult<Item, undefined>>} */
  async next() {
    while (this._waiting.length === 0 && !this.isOver) {
      await new Promise((resolve) => this._readers.push(() => resolve(undefined)));
    }
    const item = this._waiting.shift();
    if (item !== undefined) return { done: false, value: item };
    const error = this._error;
    this._error = null;
    if (error) throw error;
    return { done: true, value: undefined };
  }

  /** @returns {Promise<IteratorResult<Item, undefined>>} */
  async return() {
    this.end();
    return { done: true, value: undefined };
  }
}

/**
 * @template {Record<string, any>} Events
 */
export class Emitter {
  /** @param {readonly (keyof Events & string)[]} names of all events */
  constructor(names) {
    this._names = new Set(names);
    /** @type {Map<keyof Events, Set<(payload: any) => void>>} */
    this._handlers = new Map();
    /** @type {Set<EventStream<any>>} */
    this._streams = new Set();
  }

  /**
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {(payload: Events[Name]) => void} handler
   * @returns {() => void} ends it
   */
  on(name, handler) {
    if (!this._names.has(/** @type {any} */ (name))) {
      throw new NexoError("unknown_event", `There is no event ${JSON.stringify(name)}: ${[...this._names].sort().join(", ")}`);
    }
    const handlers = this._handlers.get(name) ?? new Set();
    handlers.add(handler);
    this._handlers.set(name, handlers);
    return () => this.off(name, handler);
  }

  /**
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {(payload: Events[Name]) => void} handler
   * @returns {() => void}
   */
  once(name, handler) {
    const end = this.on(name, (payload) => {
      end();
      handler(payload);
    });
    return end;
  }

  /**
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {(payload: Events[Name]) => void} handler
   */
  off(name, handler) {
    this._handlers.get(name)?.delete(handler);
  }

  /**
   * An iterator over events from now on.
   * @template {keyof Events} Name
   * @param {readonly Name[]} names
   * @param {(name: Name, payload: Events[Name]) => any} wrap
   */
  _stream(names, wrap) {
    /** @type {(() => void)[]} */
    const ends = [];
    const stream = new EventStream(() => {
      this._streams.delete(stream);
      ends.forEach((end) => end());
    });
    for (const name of names) ends.push(this.on(name, (payload) => stream.put(wrap(name, payload))));
    this._streams.add(stream);
    return stream;
  }

  /** Ends all iterators, after the events that they have. @param {NexoError | null} [error] */
  _endStreams(error = null) {
    for (const stream of [...this._streams]) stream.end(error);
  }

  /**
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {Events[Name]} payload
   */
  _emit(name, payload) {
    for (const handler of [...(this._handlers.get(name) ?? [])]) {
      try {
        const result = /** @type {any} */ (handler(payload));
        // an async handler's failure is one as well
        if (typeof result?.catch === "function") result.catch((/** @type {unknown} */ error) => this._handlerFailed(error));
      } catch (error) {
        this._handlerFailed(error);
      }
    }
  }

  /** @param {unknown} error */
  _handlerFailed(error) {
    console.error("nexo: a handler failed", error);
  }
}
