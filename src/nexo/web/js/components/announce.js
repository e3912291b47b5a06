/** Texts that a screen reader announces. */

/** @param {string} text @param {"polite" | "assertive"} [how] */
export function announce(text, how = "polite") {
  const region = document.getElementById(how);
  if (!region) return;
  const line = document.createElement("p");
  line.textContent = text;
  region.replaceChildren(line);
}
