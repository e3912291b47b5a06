/** Listeners by name. */
export class Emitter {
  #listeners = new Map();

  /** @param {string} name @param {(payload: any) => void} listener @returns {() => void} ends it */
  on(name, listener) {
    const found = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, found.add(listener));
    return () => found.delete(listener);
  }

  /** @param {string} name @param {any} [payload] */
  emit(name, payload) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(payload);
  }
}

/**
 * A function that runs the given one once, before the next picture is drawn, however often it is called; in a hidden
 * tab, where no pictures are drawn, soon.
 * @param {() => void} work
 */
export function soon(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    const run = () => {
      waiting = false;
      work();
    };
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  };
}

/** Ends all of them at once. */
export class Endings {
  #ends = [];

  /** @param {...(() => any)} ends */
  add(...ends) {
    this.#ends.push(...ends);
  }

  run() {
    for (const end of this.#ends.splice(0).reverse()) end();
  }
}
