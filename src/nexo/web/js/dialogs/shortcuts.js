/** The keys, on one sheet. */

import { openDialog } from "../components/dialog.js";
import { h } from "../dom.js";
import { t } from "../i18n.js";

const KEYS = [
  ["Ctrl K", "key_find"],
  ["Alt ↑ / Alt ↓", "key_next"],
  ["Alt Shift ↑ / ↓", "key_next_unread"],
  ["Enter", "key_send"],
  ["Shift Enter", "key_newline"],
  ["↑", "key_up"],
  ["Enter", "key_menu"],
  ["Space", "key_open"],
  ["Ctrl C", "key_copy"],
  ["Delete", "key_recall"],
  ["End", "key_end"],
  ["Ctrl B / I / E", "key_format"],
  ["Ctrl .", "key_details"],
  ["Esc", "key_esc"],
  ["Ctrl /", "key_sheet"],
];

export function openShortcuts() {
  const rows = KEYS.map(([keys, text]) => h("li", null, h("kbd", null, keys), h("span", null, t(text))));
  openDialog({ title: t("shortcuts"), body: [h("ul", { class: "keysheet" }, rows)] });
}
