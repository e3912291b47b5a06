/** A picture of a few colours from a BlurHash: what stands in a picture's place until it has come. */

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~";
const SIDE = 24;

function number(text) {
  let value = 0;
  for (const char of text) {
    const digit = DIGITS.indexOf(char);
    if (digit < 0) return -1;
    value = value * 83 + digit;
  }
  return value;
}

const toLinear = (value) => (value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
const toByte = (value) => {
  const v = Math.max(0, Math.min(1, value));
  return Math.round(255 * (v <= 0.0031308 ? v * 12.92 : 1.055 * v ** (1 / 2.4) - 0.055));
};
const signedSquare = (value) => Math.sign(value) * value * value;

/** @param {any} hash @returns {number[][] | null} the colours of its components, and how many there are across */
function components(hash) {
  if (typeof hash !== "string" || hash.length < 6 || hash.length > 170) return null;
  const size = number(hash[0]);
  const [across, down] = [(size % 9) + 1, Math.floor(size / 9) + 1];
  if (size < 0 || hash.length !== 4 + 2 * across * down) return null;
  const most = (number(hash[1]) + 1) / 166;
  const first = number(hash.slice(2, 6));
  const colours = [[toLinear(first >> 16), toLinear((first >> 8) & 255), toLinear(first & 255)]];
  for (let at = 6; at < hash.length; at += 2) {
    const value = number(hash.slice(at, at + 2));
    const part = (v) => signedSquare((v - 9) / 9) * most;
    colours.push([part(Math.floor(value / 361)), part(Math.floor(value / 19) % 19), part(value % 19)]);
  }
  return [[across, down], ...colours];
}

/** @param {any} hash @returns {HTMLCanvasElement | null} null: it is none */
export function placeholder(hash) {
  const found = components(hash);
  if (!found) return null;
  const [[across, down], ...colours] = found;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIDE;
  const context = canvas.getContext("2d");
  if (!context) return null;
  const image = context.createImageData(SIDE, SIDE);
  const waves = Array.from({ length: Math.max(across, down) }, (_, n) => Array.from({ length: SIDE }, (__, at) => Math.cos((Math.PI * n * at) / SIDE)));
  for (let y = 0; y < SIDE; y += 1) {
    for (let x = 0; x < SIDE; x += 1) {
      let [r, g, b] = [0, 0, 0];
      for (let j = 0; j < down; j += 1) {
        for (let i = 0; i < across; i += 1) {
          const weight = waves[i][x] * waves[j][y];
          const colour = colours[j * across + i];
          r += colour[0] * weight;
          g += colour[1] * weight;
          b += colour[2] * weight;
        }
      }
      image.data.set([toByte(r), toByte(g), toByte(b), 255], 4 * (y * SIDE + x));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
