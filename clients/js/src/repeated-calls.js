// Calls that are repeated while the server cannot be reached: those about one message one after the other, in the order in which
// they were made, so that an earlier edit never overwrites a later one.

import { Backoff } from "./core/backoff.js";
import { NexoError } from "./errors.js";

export class RepeatedCalls {
  /**
   * @param {object} options
   * @param {number} options.backoffMinMs
   * @param {number} options.backoffMaxMs
   * @param {number} options.maxPending
   * @param {() => number} options.random
   */
  constructor(options) {
    this._options = options;
    /** What is under way or waits, by lane. @type {Map<string, Promise<any>>} */
    this._lanes = new Map();
    this._count = 0;
    this._round = 0;
    /** @type {Set<() => void>} */
    this._sleeping = new Set();
  }

  /**
   * @template R
   * @param {string} lane
   * @param {() => Promise<R>} call is the same each time: the server knows a repetition by its id
   * @returns {Promise<R>}
   */
  async run(lane, call) {
    if (this._count >= this._options.maxPending) throw new NexoError("outbox_full", "Too many calls wait for the server");
    this._count += 1;
    const round = this._round;
    const before = this._lanes.get(lane);
    const work = (before ?? Promise.resolve()).then(() => this._repeat(call, round));
    const settled = work.catch(() => {});
    this._lanes.set(lane, settled);
    try {
      return await work;
    } finally {
      this._count -= 1;
      if (this._lanes.get(lane) === settled) this._lanes.delete(lane);
    }
  }

  /** The connection is back: tries at once. */
  wake() {
    for (const wake of [...this._sleeping]) wake();
  }

  /** Gives up all calls that wait: they fail with `closed`. */
  stop() {
    this._round += 1;
    this.wake();
  }

  /**
   * @template R
   * @param {() => Promise<R>} call
   * @param {number} round
   * @returns {Promise<R>}
   */
  async _repeat(call, round) {
    const { backoffMinMs, backoffMaxMs, random } = this._options;
    const backoff = new Backoff(backoffMinMs, backoffMaxMs, random);
    for (;;) {
      if (round !== this._round) throw new NexoError("closed", "The client was closed before the server had answered");
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof NexoError) || !error.isTransient) throw error;
        await this._sleep(backoff.next(error.retryAfterMs), round);
      }
    }
  }

  /** @param {number} ms @param {number} round @returns {Promise<void>} */
  _sleep(ms, round) {
    if (round !== this._round) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this._sleeping.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this._sleeping.add(wake);
    });
  }
}
