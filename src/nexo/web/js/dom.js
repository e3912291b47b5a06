/** Making and changing elements. Text only ever becomes text: nothing here parses markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node | string | number | null | undefined | false | any[]} Child
 */

/**
 * An element. `class` and attributes as given (true: present, false, null and undefined: absent), `on…` listeners,
 * `dataset` and `style` as objects, `prop:name` for properties.
 * @param {string} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "style") for (const [key, given] of Object.entries(value)) element.style.setProperty(key, given);
  else if (name.startsWith("prop:")) element[name.slice(5)] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** @param {Element | DocumentFragment} parent @param {Child[]} children */
export function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

/** Everything inside becomes this. @param {Element} parent @param {...Child} children */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * An icon of the sprite. With a label it is an image of its own, without one decoration.
 * @param {string} name @param {string} [classes] @param {string} [label]
 */
export function icon(name, classes = "", label = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `i ${classes}`.trim());
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  if (label) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    const title = document.createElementNS(SVG, "title");
    title.textContent = label;
    svg.append(title);
  } else {
    svg.setAttribute("aria-hidden", "true");
  }
  svg.append(use);
  return svg;
}

/** Nexo's own sign. */
export function mark() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "mark");
  svg.setAttribute("viewBox", "0 0 32 32");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", "#mark");
  svg.append(use);
  return svg;
}

/**
 * A button that shows an icon only.
 * @param {string} name @param {string} label @param {Record<string, any>} [attributes] @param {string} [size]
 */
export function iconButton(name, label, attributes = {}, size = "") {
  const { class: more = "", ...rest } = attributes;
  const given = { type: "button", class: `iconbtn ${more}`.trim(), "aria-label": label, title: label, ...rest };
  return /** @type {HTMLButtonElement} */ (h("button", given, icon(name, size)));
}

/** @param {string} text @param {Record<string, any>} [attributes] @param {string} [iconName] */
export function button(text, attributes = {}, iconName = "") {
  const { class: more = "", ...rest } = attributes;
  const given = { type: "button", class: `btn ${more}`.trim(), ...rest };
  return /** @type {HTMLButtonElement} */ (h("button", given, iconName && icon(iconName, "s"), text));
}

let lastId = 0;

/** An id that nothing else on the page has. @param {string} [prefix] */
export function newId(prefix = "n") {
  lastId += 1;
  return `${prefix}${lastId}`;
}

/** Children in this order, moving as few as possible. @param {Element} parent @param {Element[]} wanted */
export function arrange(parent, wanted) {
  const keep = new Set(wanted);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  let next = parent.firstElementChild;
  for (const element of wanted) {
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
}

/** @param {EventTarget | null} target */
export function isTextField(target) {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

/** A mouse or another pointer that hits small things; fingers get no keyboard they did not ask for. */
export const pointerIsFine = () => matchMedia("(pointer: fine)").matches;
export const isNarrow = () => matchMedia("(max-width: 720px)").matches;

/**
 * Holds a redrawing back while something inside is pressed: a browser makes no click of a press whose target is gone,
 * and a selection that is being made would be lost.
 * @param {HTMLElement} element @param {() => void} redraw
 * @returns {() => boolean} call it before drawing: true means not now, `redraw` is called afterwards
 */
export function holdWhilePressed(element, redraw) {
  let isPressed = false;
  let isWanted = false;
  const release = () => {
    if (!isPressed) return;
    // the click comes after this
    setTimeout(() => {
      isPressed = false;
      if (isWanted) redraw();
      isWanted = false;
    });
  };
  element.addEventListener("pointerdown", () => {
    isPressed = true;
    for (const name of ["pointerup", "pointercancel", "blur"]) window.addEventListener(name, release, { once: true });
  });
  return () => {
    isWanted ||= isPressed;
    return isPressed;
  };
}
