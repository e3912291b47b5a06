/** Small charts: all geometry is in SVG attributes, axes begin at zero, and where nothing was measured there is no line. */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
export const WINDOW_MS = 15 * 60_000;

/** @param {string} tag @param {Record<string, string | number>} attributes @param {...Element} children */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** The points of a value over time, in pieces: a missing value, or a long pause, ends a piece. */
function pieces(points, now, height, top) {
  const found = [];
  let piece = [];
  let last = 0;
  for (const [at, value] of points) {
    if (value === null || at - last > 30_000) {
      if (piece.length) found.push(piece);
      piece = [];
    }
    last = at;
    if (value === null) continue;
    const x = WIDTH * (1 - (now - at) / WINDOW_MS);
    if (x < 0) continue;
    piece.push([x.toFixed(1), (height * (1 - Math.min(value / top, 1))).toFixed(1)]);
  }
  if (piece.length) found.push(piece);
  return found;
}

/** A single point is a short line: round ends make a dot of it. */
const drawn = (piece) => (piece.length === 1 ? `M${piece[0][0]} ${piece[0][1]}h0.8` : `M${piece.map(([x, y]) => `${x} ${y}`).join("L")}`);

function line(points, now, height, top, classes) {
  const d = pieces(points, now, height, top).map(drawn).join("");
  return svg("path", { class: `line ${classes}`.trim(), d });
}

function area(points, now, height, top, classes) {
  const d = pieces(points, now, height, top)
    .filter((piece) => piece.length > 1)
    .map((piece) => `${drawn(piece)}L${piece.at(-1)[0]} ${height}L${piece[0][0]} ${height}Z`)
    .join("");
  return svg("path", { class: `area ${classes}`.trim(), d });
}

/** The smallest of 1, 2, 3, 5 times a power of ten that is not below. @param {number} value */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999) ?? 10 * power;
}

/** @param {[number, number | null][]} points @param {number} now @param {string} label */
export function spark(points, now, label, classes = "") {
  const top = Math.max(1e-9, ...points.map(([, value]) => value ?? 0)) * 1.15;
  return svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} 40`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    area(points, now, 40, top, classes),
    line(points, now, 40, top, classes),
  );
}

/** Several lines over one axis; `series` from the lowest to the highest. */
export function lines(series, now, top, label) {
  const grid = [0, 50, 100].map((y) => svg("path", { class: "grid", d: `M0 ${y}H${WIDTH}` }));
  const paths = series.map(({ points, classes }) => line(points, now, 100, top, classes));
  return svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} 100`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    ...grid,
    ...paths,
  );
}

/** What the lines are called, at their ends; too close ones move apart. @param {{text: string, value: number | null}[]} ends */
export function ends(list, top) {
  const GAP = 11;
  let lowest = -GAP;
  const texts = list
    .filter(({ value }) => value !== null)
    .map(({ text, value }) => ({ text, y: 100 * (1 - Math.min(value / top, 1)) }))
    .sort((a, b) => a.y - b.y)
    .map(({ text, y }) => {
      lowest = Math.max(y, lowest + GAP);
      return { text, y: lowest };
    });
  const over = texts.length ? Math.max(0, texts.at(-1).y - 100) : 0;
  return svg(
    "svg",
    { class: "ends", "aria-hidden": "true" },
    ...texts.map(({ text, y }) => {
      const element = svg("text", { x: 0, y: `${(y - over).toFixed(1)}%`, dy: 4 });
      element.textContent = text;
      return element;
    }),
  );
}

/** @param {number} share of 1 @param {string} [classes] */
export function meter(share, classes = "") {
  const width = share > 0 ? Math.max(1, Math.min(100, share * 100)) : 0;
  return svg(
    "svg",
    { class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width: width.toFixed(1), height: 6, class: classes }),
  );
}

/** Three percentiles over each other. @param {Record<string, number | null>} values @param {number} top */
export function stageBar(values, top, label) {
  const bars = ["p99", "p95", "p50"].map((name) => {
    const width = ((values[name] ?? 0) / top) * WIDTH;
    return svg("rect", { class: name, width: Math.min(WIDTH, width).toFixed(1), height: 14, rx: 3 });
  });
  return svg("svg", { viewBox: `0 0 ${WIDTH} 14`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...bars);
}
