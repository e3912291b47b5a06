/** QR codes of short texts: bytes, versions 1 to 6 (up to 106 bytes), error correction M, always mask 0. */

/** For each version: blocks, data bytes of a block, correction bytes of a block. */
const VERSIONS = [[1, 16, 10], [1, 28, 16], [1, 44, 26], [2, 32, 18], [2, 43, 24], [4, 27, 16]];
const FORMAT_M_MASK_0 = 0b101010000010010;

const EXP = new Uint8Array(510);
const LOG = new Uint8Array(256);
for (let i = 0, value = 1; i < 255; i += 1) {
  EXP[i] = EXP[i + 255] = value;
  LOG[value] = i;
  value = value & 128 ? (value << 1) ^ 0x11d : value << 1;
}
const multiply = (a, b) => (a && b ? EXP[LOG[a] + LOG[b]] : 0);

/** The remainder of the block divided by the generator polynomial. */
function correction(block, count) {
  let generator = [1];
  for (let i = 0; i < count; i += 1) {
    const next = [...generator, 0];
    generator.forEach((factor, at) => (next[at + 1] ^= multiply(factor, EXP[i])));
    generator = next;
  }
  const rest = new Uint8Array(count);
  for (const byte of block) {
    const factor = byte ^ rest[0];
    rest.copyWithin(0, 1);
    rest[count - 1] = 0;
    for (let at = 0; at < count; at += 1) rest[at] ^= multiply(generator[at + 1], factor);
  }
  return rest;
}

function codewords(bytes, [blocks, size, extra]) {
  const total = blocks * size;
  const data = new Uint8Array(total);
  const bits = [0, 1, 0, 0, ...toBits(bytes.length, 8), ...[...bytes].flatMap((byte) => toBits(byte, 8))];
  bits.forEach((bit, at) => (data[at >> 3] |= bit << (7 - (at & 7))));
  for (let at = Math.ceil((bits.length + 4) / 8), pad = 0; at < total; at += 1, pad ^= 1) data[at] = pad ? 0x11 : 0xec;
  const parts = Array.from({ length: blocks }, (_, at) => data.slice(at * size, (at + 1) * size));
  const checks = parts.map((part) => correction(part, extra));
  const result = [];
  for (let at = 0; at < size; at += 1) for (const part of parts) result.push(part[at]);
  for (let at = 0; at < extra; at += 1) for (const check of checks) result.push(check[at]);
  return result;
}

const toBits = (value, count) => Array.from({ length: count }, (_, at) => (value >> (count - 1 - at)) & 1);

/** @param {string} text @returns {boolean[][] | null} rows of dark modules; null: too long */
export function qrCode(text) {
  const bytes = new TextEncoder().encode(text);
  const version = VERSIONS.findIndex(([blocks, size]) => bytes.length + 2 <= blocks * size);
  if (version < 0) return null;
  const size = 21 + 4 * version;
  const dark = Array.from({ length: size }, () => new Array(size).fill(false));
  const fixed = Array.from({ length: size }, () => new Array(size).fill(false));
  const set = (row, column, isDark) => {
    if (row < 0 || column < 0 || row >= size || column >= size) return;
    dark[row][column] = isDark;
    fixed[row][column] = true;
  };
  const square = (row, column, reach, isDark) => {
    for (let y = -reach; y <= reach; y += 1) for (let x = -reach; x <= reach; x += 1) set(row + y, column + x, isDark(Math.max(Math.abs(x), Math.abs(y))));
  };
  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [row, column] of [[3, 3], [3, size - 4], [size - 4, 3]]) square(row, column, 4, (ring) => ring !== 2 && ring !== 4);
  if (version > 0) square(size - 7, size - 7, 2, (ring) => ring !== 1);
  for (let at = 0; at < 15; at += 1) {
    const isDark = ((FORMAT_M_MASK_0 >> at) & 1) === 1;
    set(at < 6 ? at : at < 8 ? at + 1 : size - 15 + at, 8, isDark);
    set(8, at < 8 ? size - 1 - at : at === 8 ? 7 : 14 - at, isDark);
  }
  set(size - 8, 8, true);
  const bits = codewords(bytes, VERSIONS[version]).flatMap((byte) => toBits(byte, 8));
  let next = 0;
  for (let right = size - 1, up = true; right > 0; right -= 2, up = !up) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) {
      const row = up ? size - 1 - step : step;
      for (const column of [right, right - 1]) {
        if (fixed[row][column]) continue;
        dark[row][column] = ((bits[next] ?? 0) === 1) !== ((row + column) % 2 === 0);
        next += 1;
      }
    }
  }
  return dark;
}

const SVG = "http://www.w3.org/2000/svg";

/** As a picture, dark on white in both themes. @param {string} text @param {string} label @returns {SVGElement | null} */
export function qrPicture(text, label) {
  const rows = qrCode(text);
  if (!rows) return null;
  const picture = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ class: "qr", viewBox: `0 0 ${rows.length} ${rows.length}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" })) picture.setAttribute(name, value);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join(""));
  picture.append(path);
  return picture;
}
