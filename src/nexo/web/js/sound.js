/** One short, soft tone for a message that is not being looked at. Browsers allow it once the page was used. */

import { remembered } from "./prefs.js";

const REST_MS = 2000;
let last = 0;

export function chime() {
  if (remembered("sound") === false || Date.now() - last < REST_MS || !window.AudioContext) return;
  last = Date.now();
  const context = new AudioContext();
  if (context.state !== "running") return void context.close();
  const gain = context.createGain();
  const note = context.createOscillator();
  gain.gain.setValueAtTime(0.06, context.currentTime);
  gain.gain.exponentialRampToValueAtTime(0.001, context.currentTime + 0.3);
  note.frequency.value = 784;
  note.connect(gain).connect(context.destination);
  note.start();
  note.stop(context.currentTime + 0.3);
  note.onended = () => context.close();
}
