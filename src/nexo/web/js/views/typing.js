/** Lets other members know that something is being written, every few seconds. */

const EVERY_MS = 3000;
const ENDS_MS = 5000;

export class Typing {
  #at = 0;
  #timer = 0;

  /** @param {any} conversation */
  constructor(conversation) {
    this.conversation = conversation;
  }

  /** @param {boolean} on */
  tell(on) {
    const now = Date.now();
    clearTimeout(this.#timer);
    if (!on) {
      if (this.#at) this.conversation.typing(false);
      this.#at = 0;
      return;
    }
    if (now - this.#at > EVERY_MS) {
      this.#at = now;
      this.conversation.typing(true);
    }
    this.#timer = window.setTimeout(() => this.tell(false), ENDS_MS);
  }
}
