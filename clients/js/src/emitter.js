// Named events with typed payloads. A handler that throws does not keep the others from being called.

/**
 * @template {Record<string, any>} Events
 */
export class Emitter {
  constructor() {
    /** @type {Map<keyof Events, Set<(payload: any) => void>>} */
    this._handlers = new Map();
  }

  /**
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {(payload: Events[Name]) => void} handler
   * @returns {() => void} ends it
   */
  on(name, handler) {
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
