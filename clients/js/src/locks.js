// Locks between the tabs of a browser: Web Locks where they exist. Node has one process and needs none.

export class Locks {
  /** @param {LockManager | undefined} [manager] */
  constructor(manager = globalThis.navigator?.locks) {
    this._manager = manager;
  }

  /** Whether there may be other tabs. */
  get isShared() {
    return this._manager !== undefined;
  }

  /**
   * Runs `work` while no other tab does.
   * @template T
   * @param {string} name
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async run(name, work) {
    return this._manager ? /** @type {T} */ (await this._manager.request(name, work)) : work();
  }

  /**
   * Hold it until the function that is given back is called, or the tab is gone.
   * @param {string} name
   * @returns {Promise<() => void>}
   */
  hold(name) {
    const manager = this._manager;
    if (!manager) return Promise.resolve(() => {});
    return new Promise((resolve) => {
      void manager.request(name, () => new Promise((release) => resolve(() => release(undefined)))).catch(() => {});
    });
  }

  /** The names of all that are held now. @returns {Promise<Set<string | undefined>>} */
  async held() {
    const { held } = (await this._manager?.query()) ?? {};
    return new Set((held ?? []).map((lock) => lock.name));
  }
}
