/** A new version is ready: it takes over when the user wants it, or at the next start. */

import { fill, h, icon } from "../dom.js";
import { t } from "../i18n.js";
import { onUpdate, takeUpdate } from "../worker.js";

export class UpdateBar {
  constructor() {
    this.element = h("div");
    this.end = onUpdate(() => this.#show());
  }

  #show() {
    const bar = h(
      "div",
      { class: "connbar good", role: "status" },
      icon("sync", "s"),
      h("span", null, h("span", { class: "what" }, t("update_ready")), " ", h("span", { class: "more" }, t("update_keeps"))),
      h("button", { type: "button", class: "link", onclick: () => takeUpdate() }, t("update_reload")),
      h("button", { type: "button", class: "link", onclick: () => bar.remove() }, t("update_later")),
    );
    fill(this.element, bar);
  }
}
