// Random histories on a simulated clock: whatever is cut, lost, late or doubled, in the end the client shows the truth.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MessageIds } from "../src/core/ids.js";
import { seeded } from "./support/random.js";
import { ME, World } from "./support/world.js";

const SEEDS = process.env.NEXO_LONG_TESTS ? 1000 : 60;
const FIRST = Number(process.env.NEXO_SEED ?? 1);
const PEERS = ["ben", "cid", "dan"];

function play(seed) {
  const random = seeded(seed);
  const world = new World(random);
  const ids = new MessageIds(random);
  const sends = [];
  const rooms = PEERS.map((peer) => `si_${ME}:${peer}`);
  const write = () => {
    const peer = random.pick(PEERS);
    const order = ids.next(world.now);
    const item = { clientMsgId: order, order, conversationId: `si_${ME}:${peer}`, recvId: peer, groupId: null, msgType: 1, content: `mine ${sends.length}`, mentions: [], replyTo: null, extra: null, createdAt: world.now, wasSent: false, error: null };
    sends.push(item);
    world.engine.outbox.add(item, true);
    world.engine.pump();
  };
  for (let before = random.below(30); before > 0; before -= 1) world.store(random.pick(rooms), "ben", `old ${before}`);
  world.busy = random.pick([0, 0, 0.2]);
  world.engine.start();
  for (let step = 0; step < 150; step += 1) {
    world.cutChance = random.pick([0, 0, 0.05]);
    const what = random();
    if (what < 0.45) world.say(random.pick(rooms), `theirs ${step}`);
    else if (what < 0.75) write();
    else if (what < 0.85) world.engine.markRead(world.engine.conversation(random.pick(rooms)), random.below(60));
    else if (what < 0.9) world.cut();
    else if (what < 0.93) {
      world.engine.connection.networkDown(world.now);
      world.run(random.below(2000));
      world.engine.connection.networkUp(world.now);
    }
    world.run(random.below(random.pick([3, 30, 600])));
  }
  world.cutChance = 0;
  world.busy = 0;
  world.run(120_000);
  return { world, sends, rooms };
}

function check({ world, sends, rooms }) {
  const { engine, host } = world;
  assert.equal(engine.state, "online");
  assert.equal(engine.outbox.size, 0, "the outbox is empty");
  for (const id of rooms) {
    const { messages, delivered, read } = world.room(id);
    const chat = engine.conversation(id);
    const own = messages.filter((message) => message.from === ME).map((message) => message.body);
    assert.deepEqual(own, sends.filter((item) => item.conversationId === id).map((item) => item.content), "stored once and in order");
    const given = host.events.filter(([name, payload]) => (name === "message" || name === "sent") && payload.conversation === chat).map(([, payload]) => payload.message.seq);
    const first = given[0] ?? messages.length + 1;
    assert.deepEqual(given, messages.slice(first - 1).map((message) => message.msgSeq), "given once, in order, without holes");
    assert.deepEqual(chat.window.messages.map((message) => message.seq), given, "shown as given");
    if (messages.length > 0) assert.equal(chat.syncedSeq, messages.length);
    assert.equal(chat.unread.value, world.unread(id), "unread is exact");
    assert.equal(chat.readSeq, read, "the read cursor is the server's");
    assert.equal(delivered, messages.length, "everything is acknowledged");
    assert.equal(chat.timeline._ahead.size, 0);
  }
}

test(`${SEEDS} random histories end in the truth`, () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    try {
      check(play(seed));
    } catch (error) {
      error.message = `seed ${seed} (repeat with NEXO_SEED=${seed}): ${error.message}`;
      throw error;
    }
  }
});
