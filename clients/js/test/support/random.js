// A seeded generator, so that a failing run can be repeated.

export function seeded(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
  next.below = (limit) => Math.floor(next() * limit);
  next.pick = (list) => list[next.below(list.length)];
  next.chance = (probability) => next() < probability;
  return next;
}
