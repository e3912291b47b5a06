/** What this browser remembers: settings of the page, drafts, known names. Storage may be closed or full: then it forgets. */

const PREFIX = "nexo.";

/** @param {string} key @returns {any} */
export function remembered(key) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {string} key @param {any} value null forgets */
export function remember(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // nothing depends on it
  }
}

/** @param {string} prefix */
export function forgetAll(prefix) {
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX + prefix)) localStorage.removeItem(key);
  } catch {
    // nothing depends on it
  }
}

/** @returns {"system" | "light" | "dark"} */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** @param {"system" | "light" | "dark"} chosen */
export function setTheme(chosen) {
  const root = document.documentElement;
  try {
    if (chosen === "system") localStorage.removeItem(PREFIX + "theme");
    else localStorage.setItem(PREFIX + "theme", chosen); // as it is: theme.js reads it before anything else runs
  } catch {
    // for this page only, then
  }
  if (chosen === "system") delete root.dataset.theme;
  else root.dataset.theme = chosen;
}

/** How the page looks beside its theme, by attributes of the document that style sheets know. @param {"size" | "motion"} what */
export const look = (what) => document.documentElement.dataset[what] ?? null;

/** @param {"size" | "motion"} what @param {string | null} value null: as usual */
export function setLook(what, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + what);
    else localStorage.setItem(PREFIX + what, value); // as it is: theme.js reads it before anything else runs
  } catch {
    // for this page only, then
  }
  if (value === null) delete document.documentElement.dataset[what];
  else document.documentElement.dataset[what] = value;
}
