/** Going to another place of a conversation: the newest, a message by its seq, a message that is quoted. */

import { toast } from "../components/toast.js";
import { t } from "../i18n.js";

const PAGE = 100;
const NEAR = 40;

export class Jumping {
  /** Each jump ends the one before: the last thing that was asked for counts. */
  #turn = 0;

  /** @param {any} chat @param {(which: string, work: () => Promise<any>) => Promise<void>} load */
  constructor(chat, load) {
    this.chat = chat;
    this.load = load;
  }

  async toNewest() {
    const turn = ++this.#turn;
    const { conversation, log, composer } = this.chat;
    if (conversation.hasLater) await this.load("latest", () => conversation.loadLatest());
    if (turn !== this.#turn) return;
    log.toNewest();
    composer.focus();
  }

  /** @param {number} seq @param {string} [serverMsgId] @returns {Promise<boolean>} whether it is there */
  async to(seq, serverMsgId) {
    const turn = ++this.#turn;
    const { conversation } = this.chat;
    const find = () => conversation.messages.find((one) => (serverMsgId ? one.serverMsgId === serverMsgId : one.seq === seq));
    let target = find();
    if (!target && seq) {
      await this.load("around", () => conversation.loadAround(seq, PAGE));
      target = find();
    }
    if (turn !== this.#turn) return false;
    return this.#show(target);
  }

  #show(target) {
    const { log, keyFor } = this.chat;
    const element = target && log.reveal(keyFor(target));
    if (!element) {
      toast(t("quote_gone"), { bad: true });
      return false;
    }
    element.classList.add("flash");
    element.addEventListener("animationend", () => element.classList.remove("flash"), { once: true });
    log.mark(element);
    return true;
  }

  /** A quote has no seq. Ids are ordered by time, so its place is found by halving. @param {string} serverMsgId */
  async toQuoted(serverMsgId) {
    const { conversation } = this.chat;
    const known = conversation.messages.find((one) => one.serverMsgId === serverMsgId);
    if (known) return this.to(known.seq, serverMsgId);
    const turn = ++this.#turn;
    let seq = 0;
    try {
      seq = await this.#find(serverMsgId, () => turn === this.#turn);
    } catch {
      if (turn === this.#turn) toast(t("load_failed"), { bad: true });
      return false;
    }
    return turn === this.#turn && seq > 0 ? this.to(seq, serverMsgId) : false;
  }

  async #find(serverMsgId, isWanted) {
    const { conversation, model } = this.chat;
    const wanted = BigInt(serverMsgId);
    let low = Math.max(1, conversation.minSeq || 1);
    let high = conversation.headSeq;
    while (high - low > NEAR && isWanted()) {
      const middle = Math.floor((low + high) / 2);
      const page = await model.client.call("GET", "/msg/history", { conversation_id: conversation.id, before_seq: middle + 1, limit: 1 });
      const found = page.messages[0];
      if (!found || found.seq < low) low = middle + 1;
      else if (BigInt(found.server_msg_id) === wanted) return found.seq;
      else if (BigInt(found.server_msg_id) < wanted) low = middle + 1;
      else high = found.seq - 1;
    }
    return Math.floor((low + high) / 2);
  }
}
