/** Invite links: made, shown as a QR code, copied, ended. */

import { busyWhile, openDialog } from "../components/dialog.js";
import { toast } from "../components/toast.js";
import { button, fill, h, icon } from "../dom.js";
import { tellFailure, trying } from "../failures.js";
import { fullTime } from "../format.js";
import { t } from "../i18n.js";
import { qrPicture } from "../qr.js";

const DAYS = { "1": 86_400, "7": 604_800, "30": 2_592_000, "0": undefined };
const PLACES = { "1": 1, "10": 10, "50": 50, "0": undefined };

/** @param {any} model @param {string} groupId */
export async function openInviteLink(model, groupId) {
  const body = h("div");
  const footer = h("div", { class: "linkfoot" });
  const dialog = openDialog({ title: t("invite_link"), body: [body], footer: [footer] });
  const { groups } = model.client;

  const show = (link) => {
    const address = `${location.origin}/j/${link.code}`;
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(address);
        toast(t("copied"));
      } catch {
        toast(t("copy_failed"), { bad: true });
      }
    };
    const row = (iconName, text, end) => h("div", { class: "prow" }, icon(iconName), h("span", null, text), h("span", { class: "end" }, end));
    fill(
      body,
      h("div", { class: "pgroup" }, qrPicture(address, t("qr_label")), h("p", null, t("link_hint"))),
      h("div", { class: "input" }, h("input", { value: address, readonly: true, "aria-label": t("link") }), button(t("copy"), { class: "small", onclick: copy })),
      h("div", { class: "cardlist" }, row("clock", t("link_until"), link.expiresAt ? fullTime(link.expiresAt) : t("link_no_end")), row("users", t("link_places"), link.uses ? t("link_left", { n: link.uses - link.used, m: link.uses }) : t("link_no_end"))),
    );
    const revoke = button(t("revoke"), { class: "quiet" });
    revoke.addEventListener("click", () => busyWhile(revoke, async () => (await trying(() => groups.revokeLink(link.code))) && make()));
    const share = navigator.share ? () => navigator.share({ url: address }).catch(() => {}) : copy;
    fill(footer, revoke, h("span", { class: "grow" }), button(t("share"), { class: "primary", onclick: share }));
  };

  const make = () => {
    const select = (label, name, options, chosen) => h("label", { class: "prow" }, h("span", null, label), h("select", { class: "end", name }, options.map(([key, text]) => h("option", { value: key, selected: key === chosen }, text))));
    const days = Object.keys(DAYS).map((key) => [key, t(`link_days_${key}`)]);
    const places = Object.keys(PLACES).map((key) => [key, t(`link_uses_${key}`)]);
    const form = h("div", { class: "cardlist" }, select(t("link_until"), "days", days, "7"), select(t("link_places"), "uses", places, "0"));
    fill(body, h("p", { class: "gap" }, t("link_hint")), form);
    const create = button(t("link_make"), { class: "primary" });
    create.addEventListener("click", () =>
      busyWhile(create, async () => {
        const value = (name) => /** @type {HTMLSelectElement} */ (form.querySelector(`[name=${name}]`)).value;
        try {
          show(await groups.createLink(groupId, { expiresS: DAYS[value("days")], uses: PLACES[value("uses")] }));
        } catch (error) {
          tellFailure(error);
        }
      }),
    );
    fill(footer, h("span", { class: "grow" }), button(t("cancel"), { onclick: () => dialog.close() }), create);
  };

  try {
    const [open] = await groups.links(groupId);
    if (open) show(open);
    else make();
  } catch (error) {
    dialog.close();
    tellFailure(error);
  }
}
