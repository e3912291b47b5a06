/** The page of contacts: requests first, with their words, then the people one knows. */

import { avatar } from "../components/avatar.js";
import { busyWhile, openDialog } from "../components/dialog.js";
import { field } from "../components/field.js";
import { PeoplePicker } from "../components/picker.js";
import { toast } from "../components/toast.js";
import { button, fill, h, icon, iconButton } from "../dom.js";
import { Endings } from "../emitter.js";
import { tellFailure, trying } from "../failures.js";
import { shortTime } from "../format.js";
import { t } from "../i18n.js";
import { addressOf } from "../router.js";

const WORDS_MAX = 256;

export class PeoplePage {
  #ends = new Endings();

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.inner = h("div", { class: "inner" });
    const back = h("a", { class: "iconbtn", href: "#/", "aria-label": t("back_to_list") }, icon("back"));
    const add = iconButton("useradd", t("add_contact"), { onclick: () => openAddContact(model) });
    this.main = h("main", { class: "set", "aria-label": t("contacts") }, h("div", { class: "bar" }, h("span", { class: "narrow-only" }, back), h("h1", { tabindex: "-1" }, t("contacts")), h("span", { class: "grow" }), add), h("div", { class: "scroll" }, this.inner));
    this.elements = [this.main];
    this.#ends.add(model.on("contacts", () => this.#draw()), model.people.on("change", () => this.#draw()), model.on("presence", () => this.#draw()));
  }

  end() {
    this.#ends.run();
  }

  show() {
    document.title = `${t("contacts")} · Nexo`;
    this.#draw();
    this.model.contacts.load();
  }

  #draw() {
    const { received, sent, list } = this.model.contacts;
    const key = JSON.stringify([received, sent, list.map((one) => [one, this.model.personFace(one.userId)])]);
    if (key === this.key) return;
    this.key = key;
    fill(
      this.inner,
      received.length > 0 && [h("h2", null, t("requests_n", { n: received.length })), h("div", { class: "cardlist" }, received.map((one) => this.#request(one)))],
      sent.length > 0 && [h("h2", null, t("you_asked")), h("div", { class: "cardlist" }, sent.map((one) => this.#asked(one)))],
      h("h2", null, t("contacts")),
      list.length > 0 ? h("div", { class: "cardlist" }, list.map((one) => this.#contact(one))) : h("p", { class: "help" }, t("no_contacts")),
    );
  }

  #line(userId, name, under, ...end) {
    return h("div", { class: "dev person" }, avatar(this.model.personFace(userId), "s40"), h("span", { class: "ell" }, h("b", { dir: "auto" }, name), h("small", { dir: "auto" }, under)), h("span", null, end));
  }

  #request(one) {
    const { contacts, client, people } = this.model;
    const name = people.name(one.userId);
    const decide = (accept) => trying(() => contacts.change(() => client.contacts.decide(one.userId, accept)));
    return this.#line(
      one.userId,
      name,
      one.message || shortTime(one.createdAt),
      button(t("decline"), { class: "small", "aria-label": t("decline_x", { name }), onclick: () => decide(false) }),
      button(t("accept"), { class: "small primary", "aria-label": t("accept_x", { name }), onclick: () => decide(true) }),
    );
  }

  #asked(one) {
    return this.#line(one.userId, this.model.people.name(one.userId), one.message || t("waiting_word"), h("span", { class: "tag" }, t("waiting_word")));
  }

  #contact(one) {
    const { model } = this;
    const face = model.personFace(one.userId);
    const write = h("a", { class: "iconbtn", href: addressOf(model.client.chatWith(one.userId).id), "aria-label": t("write_to_x", { name: one.remark || face.name }) }, icon("chat"));
    const under = one.remark ? `${face.name} · ${one.userId}` : one.userId;
    const more = iconButton("edit", t("remark_x", { name: face.name }), { onclick: () => openRemark(model, one.userId) });
    return this.#line(one.userId, one.remark || face.name, under, more, write);
  }
}

/** @param {any} model */
export function openAddContact(model) {
  const picker = new PeoplePicker(model, {
    many: false,
    label: t("people"),
    tags: (id) => (model.contacts.of(id) ? t("is_contact") : ""),
    onpick: (userId) => {
      dialog.close();
      openRequest(model, userId);
    },
  });
  const dialog = openDialog({ title: t("add_contact"), body: [picker.element] });
}

/** @param {any} model @param {string} userId */
export function openRequest(model, userId) {
  const words = field({ label: t("request_words"), help: t("request_help"), attributes: { maxlength: WORDS_MAX, autofocus: true } });
  const send = button(t("send_request"), { class: "primary" });
  send.addEventListener("click", () =>
    busyWhile(send, async () => {
      try {
        const { status } = await model.client.contacts.request(userId, words.input.value.trim() || undefined);
        await model.contacts.load();
        dialog.close();
        toast(t(status === "accepted" ? "contact_added" : "request_sent", { name: model.people.name(userId) }));
      } catch (error) {
        tellFailure(error);
      }
    }),
  );
  const dialog = openDialog({ title: t("request_title", { name: model.people.name(userId) }), body: [words.element], footer: [button(t("cancel"), { onclick: () => dialog.close() }), send] });
}

/** @param {any} model @param {string} userId */
export function openRemark(model, userId) {
  const contact = model.contacts.of(userId);
  const name = field({ label: t("your_name_for_them"), value: contact?.remark ?? "", attributes: { maxlength: 128, autofocus: true } });
  const save = button(t("save"), { class: "primary" });
  save.addEventListener("click", () => busyWhile(save, async () => (await trying(() => model.contacts.change(() => model.client.contacts.remark(userId, name.input.value.trim())))) && dialog.close()));
  const remove = button(t("remove_contact"), { class: "danger" });
  remove.addEventListener("click", () => busyWhile(remove, async () => (await trying(() => model.contacts.change(() => model.client.contacts.remove(userId)))) && dialog.close()));
  const dialog = openDialog({ title: model.people.name(userId), body: [name.element], footer: [remove, h("span", { class: "grow" }), button(t("cancel"), { onclick: () => dialog.close() }), save] });
}
