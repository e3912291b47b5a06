/** What pointers and keys do in the log: pressing a part of a message, its menu, moving from message to message. */

import { pointerIsFine } from "../dom.js";
import { openMerged } from "../dialogs/merged.js";
import { openReceipts } from "../dialogs/receipts.js";
import { openViewer } from "../dialogs/viewer.js";
import { toast } from "../components/toast.js";
import { fetchFile } from "../files.js";
import { t } from "../i18n.js";
import { askDelete, copyText, openMessageMenu } from "./actions.js";
import { openEmoji } from "./emoji.js";
import { listenToHold } from "./press.js";
import { openWhoReacted, react } from "./reactions.js";
import { canBeSelected } from "./selection.js";

/** @param {any} chat @returns {() => void} end */
export function listenToMessages(chat) {
  const { list, element } = chat.log;
  list.addEventListener("click", (event) => clicked(chat, event));
  list.addEventListener("contextmenu", (event) => contextMenu(chat, event));
  element.addEventListener("keydown", (event) => key(chat, event));
  return listenToHold(list, (target) => held(chat, target));
}

const canAct = (row) => row?.kind === "message" && row.message.status !== 1;

function clicked(chat, event) {
  const { target } = event;
  const row = chat.log.rowOf(target);
  if (!row) return;
  if (chat.isSelecting) {
    event.preventDefault();
    if (canBeSelected(row)) chat.selection.toggle(row.key, event.shiftKey);
    return;
  }
  const quoted = target.closest("[data-quoted]");
  const pressed = target.closest("[data-act]");
  if (quoted) chat.jumping.toQuoted(quoted.dataset.quoted);
  else if (pressed) act(chat, pressed.dataset.act, row, pressed, event);
}

/** @param {any} chat @param {string} name @param {any} row @param {HTMLElement} anchor @param {Event} [event] */
export function act(chat, name, row, anchor, event) {
  const { conversation, model } = chat;
  const { message } = row;
  const isStored = Boolean(message.serverMsgId) && !message.provisional;
  if (name === "reply" && isStored) chat.composer.replyTo(message);
  else if (name === "react" && isStored) openEmoji(anchor, (emoji) => react(conversation, message, emoji, true), () => chat.log.focusRow(row.key));
  else if (name === "reaction") react(conversation, message, anchor.dataset.emoji ?? "");
  else if (name === "more") openMessageMenu(chat, row, anchor);
  else if (name === "receipts") openReceipts(chat, row, anchor);
  else if (name === "retry") for (const one of row.messages) one.outgoing?.retry();
  else if (name === "delete") cancel(row);
  else if (name === "unfold") chat.unfold(row.key);
  else if (name === "merged") openMerged(model, message);
  else if (name === "view") openViewer(chat, anchor.dataset.shot ?? "");
  else if (name === "reload") chat.log.redraw(row.key);
  else if (name === "download") download(chat, message, event);
  else if (name === "callback") model.emit("call", { userId: conversation.peerId, kind: message.content?.kind ?? "audio" });
}

async function cancel(row) {
  for (const one of row.messages) if (one.outgoing && (await one.outgoing.cancel()) === false) toast(t("delete_refused"), { bad: true });
}

/** An address whose time is over is asked for anew. */
async function download(chat, message, event) {
  const exp = Number(/[?&]exp=(\d+)/.exec(message.content?.url ?? "")?.[1] ?? 0);
  if (exp === 0 || exp * 1000 > Date.now()) return;
  event?.preventDefault();
  try {
    const url = URL.createObjectURL(await fetchFile(chat.model, message.content.url));
    const link = document.createElement("a");
    link.href = url;
    link.download = message.content.name ?? "";
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch {
    toast(t("file_gone"), { bad: true });
  }
}

/** The browser's own menu where it has something to offer: on links, on a selected text, or with Shift. */
function contextMenu(chat, event) {
  const row = chat.log.rowOf(event.target);
  if (event.pointerType === "touch") return;
  if (!canAct(row) || event.shiftKey || chat.isSelecting || event.target.closest("a") || String(getSelection() ?? "").trim()) return;
  event.preventDefault();
  openMessageMenu(chat, row, chat.log.elementOf(row.key) ?? event.target, { x: event.clientX, y: event.clientY });
}

function held(chat, target) {
  const row = chat.log.rowOf(target);
  if (!canAct(row) || chat.isSelecting) return;
  const reaction = target.closest?.("[data-act=reaction]");
  if (reaction) openWhoReacted(chat, row.message, chat.log.elementOf(row.key));
  else openMessageMenu(chat, row, chat.log.elementOf(row.key) ?? target);
}

// -- keys --------------------------------------------------------------------------------------------------

function key(chat, event) {
  const { log } = chat;
  const element = event.target.closest?.(".msg");
  if (event.target !== element && event.target !== log.element) return;
  const row = element ? log.rowOf(element) : null;
  const isCommand = event.ctrlKey || event.metaKey;
  if (event.altKey) return;
  if (isCommand) {
    if (event.key.toLowerCase() !== "c" || !row || String(getSelection() ?? "")) return;
    copyText(row.message);
  } else if (!move(chat, event, element) && !(row && onMessage(chat, event, row, element))) return;
  event.preventDefault();
  event.stopPropagation();
}

const STEPS = { ArrowUp: -1, ArrowDown: 1 };

function move(chat, event, element) {
  const { log, composer, selection } = chat;
  const step = STEPS[event.key];
  if (step) {
    const moved = log.moveFocus(step, element);
    if (!moved && step === 1) composer.focus();
    if (moved && event.shiftKey && chat.isSelecting) {
      const row = log.rowOf(document.activeElement);
      if (row && canBeSelected(row)) selection.toggle(row.key, true);
    }
  } else if (event.key === "End") chat.jumpToNewest();
  else if (event.key === "Home" && log.rows.length) log.moveFocus(1, log.list.firstElementChild);
  else if (event.key === "Escape" && chat.isSelecting) selection.stop();
  else if (event.key === "Escape") composer.focus();
  else return false;
  return true;
}

function onMessage(chat, event, row, element) {
  if (event.key === " " && chat.isSelecting) {
    if (canBeSelected(row)) chat.selection.toggle(row.key, event.shiftKey);
  } else if (event.key === " ") openContent(element);
  else if (event.key === "Delete") askDelete(chat, row);
  else if (event.key === "Enter" && canAct(row) && !chat.isSelecting) openMessageMenu(chat, row, element);
  else if (event.key === "ContextMenu" && canAct(row)) openMessageMenu(chat, row, element);
  else return false;
  return true;
}

/** Space plays or opens what is in a message; it never starts a text. */
function openContent(element) {
  const inner = element.querySelector(".play, .shot, .merged, .unfold, .filecard a");
  inner?.click();
  if (!inner && !pointerIsFine()) element.focus();
}
