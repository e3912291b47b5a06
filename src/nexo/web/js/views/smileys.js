/** Signs of the keyboard become emoji once a space follows them, where that is switched on. */

import { remembered } from "../prefs.js";

const SMILEYS = { ":)": "🙂", ":-)": "🙂", ":(": "🙁", ":-(": "🙁", ":D": "😃", ":-D": "😃", ";)": "😉", ";-)": "😉", ":P": "😛", ":-P": "😛", ":O": "😮", "<3": "❤️" };
const LAST = /(?:^|\s)([:;]-?[)(DPO]|<3)\s$/;

/** @param {HTMLTextAreaElement} field @param {InputEvent} event */
export function smile(field, event) {
  if (event.isComposing || event.inputType !== "insertText" || remembered("smileys") !== true) return;
  const end = field.selectionStart;
  const found = LAST.exec(field.value.slice(Math.max(0, end - 8), end));
  const emoji = found && SMILEYS[found[1]];
  if (!emoji) return;
  field.setSelectionRange(end - found[1].length - 1, end);
  document.execCommand("insertText", false, `${emoji} `); // undo takes it back
}
