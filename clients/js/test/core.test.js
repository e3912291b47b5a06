// The parts of the engine by themselves.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Backoff } from "../src/core/backoff.js";
import { UnreadCounter } from "../src/core/unread-counter.js";
import { MessageIds, groupOf, peerOf, singleConversationId } from "../src/core/ids.js";
import { Outbox } from "../src/core/outbox.js";
import { SendRate } from "../src/core/send-rate.js";
import { Timeline } from "../src/core/timeline.js";
import { Timers } from "../src/core/timers.js";
import { Window } from "../src/core/window.js";
import { seeded } from "./support/random.js";

const at = (seq, more = {}) => ({ seq, serverMsgId: `m${seq}`, conversationId: "si_a:b", senderId: "b", msgType: 1, status: 0, ...more });
const seqs = (messages) => messages.map((message) => message.seq);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe("ids", () => {
  test("conversations are named in byte order and read back", () => {
    assert.equal(singleConversationId("b", "B"), "si_B:b");
    assert.equal(singleConversationId("a_b", "c"), singleConversationId("c", "a_b"));
    assert.equal(peerOf("si_a_b:c", "a_b"), "c");
    assert.equal(peerOf("si_a_b:c", "x"), null);
    assert.equal(groupOf("sg_g_abcdefghijkl"), "g_abcdefghijkl");
  });

  test("ids of messages sort by when they were made, also when the clock goes back", () => {
    const ids = new MessageIds(seeded(1));
    const made = [5.2, 5.9, 6, 4, 4, 6.5, 1000].map((now) => ids.next(now));
    assert.deepEqual([...made].sort(), made);
    assert.equal(new Set(made).size, made.length);
    for (const id of made) assert.match(id, /^[!-~]{1,64}$/);
  });
});

describe("the timeline", () => {
  test("gives everything once and in order, whatever comes when and how often", () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = seeded(seed);
      const timeline = new Timeline();
      const start = random.below(5);
      timeline.place(start);
      const coming = range(1, 30).flatMap((seq) => (random.chance(0.3) ? [seq, seq] : [seq]));
      coming.sort(() => random() - 0.5);
      const given = coming.flatMap((seq) => timeline.accept(at(seq)));
      assert.deepEqual(seqs(given), range(start + 1, 30), `seed ${seed}`);
      assert.equal(timeline.isBehind, false);
    }
  });

  test("steps over what a pull says does not exist", () => {
    const timeline = new Timeline();
    timeline.place(3);
    timeline.accept(at(9));
    assert.equal(timeline.isBehind, true);
    assert.deepEqual(seqs([...timeline.accept(at(6)), ...timeline.stepTo(9)]), [6, 9]);
    assert.equal(timeline.syncedSeq, 9);
  });

  test("a message that came before its conversation was known is given, even if another device acknowledged it", () => {
    const timeline = new Timeline();
    timeline.accept(at(8));
    assert.deepEqual(seqs(timeline.place(9)), [8]);
  });

  test("keeps a bounded number above a hole", () => {
    const timeline = new Timeline();
    timeline.place(0);
    for (const seq of range(2, 3000)) timeline.accept(at(seq));
    assert.equal(timeline._ahead.size, 1000);
    assert.equal(timeline.headSeq, 3000);
    assert.equal(seqs(timeline.accept(at(1))).at(-1), 1001);
    assert.equal(timeline.isBehind, true);
  });

  test("a final copy replaces the provisional one", () => {
    const timeline = new Timeline();
    timeline.place(0);
    timeline.holdProvisional({ ...at(null), serverMsgId: "m1" }, 100);
    assert.equal(timeline.provisional.length, 1);
    timeline.accept(at(1));
    assert.equal(timeline.provisional.length, 0);
    timeline.holdProvisional({ ...at(null), serverMsgId: "m7" }, 100);
    assert.equal(timeline.expireProvisional(99), false);
    assert.equal(timeline.expireProvisional(100), true);
  });
});

describe("the window", () => {
  test("holds the newest and knows that there are earlier ones", () => {
    const window = new Window(5);
    window.append(range(1, 8).map((seq) => at(seq)), 1, 8);
    assert.deepEqual(seqs(window.messages), range(4, 8));
    assert.equal(window.hasEarlier, true);
    assert.equal(window.count(3, 8, () => true), 5);
    assert.equal(window.count(2, 8, () => true), null, "not all of these are here");
    assert.equal(window.count(5, 9, () => true), null);
  });

  test("loses its newer end when one pages back, and takes no new ones until it is back", () => {
    const window = new Window(4);
    window.append(range(5, 8).map((seq) => at(seq)), 5, 8);
    assert.equal(window.prepend(range(1, 4).map((seq) => at(seq)), false), 4);
    assert.deepEqual(seqs(window.messages), range(1, 4));
    assert.deepEqual([window.isAtEnd, window.hasEarlier], [false, false]);
    window.append([at(9)], 9, 9);
    assert.deepEqual(seqs(window.messages), range(1, 4));
    window.extend(range(5, 9).map((seq) => at(seq)), 9, true);
    assert.deepEqual(seqs(window.messages), range(6, 9));
    window.append([at(10)], 10, 10);
    assert.deepEqual(seqs(window.messages), range(7, 10));
  });

  test("keeps its oldest when somebody reads there, and leaves out what comes", () => {
    const window = new Window(4);
    window.keepsPlace = true;
    window.append(range(1, 3).map((seq) => at(seq)), 1, 3);
    window.append(range(4, 6).map((seq) => at(seq)), 4, 6);
    assert.deepEqual(seqs(window.messages), range(1, 4));
    assert.deepEqual([window.isAtEnd, window.toSeq], [false, 4]);
    window.append([at(7)], 7, 7);
    assert.deepEqual(seqs(window.messages), range(1, 4));
    window.keepsPlace = false;
    window.extend(range(5, 7).map((seq) => at(seq)), 7, true);
    assert.deepEqual(seqs(window.messages), range(4, 7));
  });

  test("never shows a hole: what does not follow begins anew", () => {
    const window = new Window(10);
    window.append([at(1), at(2)], 1, 2);
    window.append([at(6)], 6, 6);
    assert.deepEqual(seqs(window.messages), [6]);
    window.append([], 7, 8); // not visible
    window.append([at(9)], 9, 9);
    assert.deepEqual(seqs(window.messages), [6, 9]);
  });
});

describe("the counter", () => {
  test("equals a recount after any history, whenever it is not known to be stale", () => {
    let exact = 0;
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = seeded(seed);
      const counter = new UnreadCounter();
      const counts = range(1, 60).map(() => random.chance(0.7));
      let head = random.below(20);
      let read = random.below(head + 1);
      let windowFrom = head + 1;
      const recount = (low, high) => counts.slice(low, high).filter(Boolean).length;
      const known = (low, high) => (high <= low ? 0 : low + 1 < windowFrom || high > head ? null : recount(low, high));
      counter.set(recount(read, head), read, head, read, known);
      for (let step = 0; step < 40; step += 1) {
        const what = random();
        if (what < 0.6 && head < 60) {
          head += 1;
          counter.given(head, counts[head - 1]);
        } else if (what < 0.8) {
          const to = read + random.below(head - read + 1);
          if (to > read) {
            counter.read(read, to, known);
            read = to;
          }
        } else if (what < 0.9) {
          const oldRead = random.below(read + 1); // the server is behind with either
          const oldHead = Math.max(oldRead, head - random.below(3));
          counter.set(recount(oldRead, oldHead), oldRead, oldHead, read, known);
        } else windowFrom = Math.min(head + 1, windowFrom + random.below(5));
        if (counter.isStale) continue;
        exact += 1;
        assert.equal(counter.value, recount(read, head), `seed ${seed}, step ${step}`);
      }
    }
    assert.ok(exact > 5000, `only ${exact} could be judged`);
  });
});

describe("the outbox", () => {
  const item = (clientMsgId, conversationId = "si_a:b") => ({ clientMsgId, order: clientMsgId, conversationId, error: null, wasSent: false, mentions: [] });
  const make = (more = {}) => new Outbox({ maxInFlight: 32, ackTimeoutMs: 1000, backoffMinMs: 100, backoffMaxMs: 1000, random: () => 0.5, ...more });
  const ids = (items) => items.map((taken) => taken.clientMsgId);

  test("a message with a file goes out behind what was sent while it was uploaded", () => {
    const outbox = make();
    const upload = { name: "a.bin", size: 100, path: "/a.bin", modifiedMs: 7, address: "" };
    outbox.add(item("1"), true);
    outbox.add({ ...item("2"), content: { text: "caption" }, upload }, true);
    outbox.add(item("3"), true);
    assert.deepEqual(ids(outbox.take(1)), ["1", "3"]);
    assert.deepEqual(outbox.uploading(), ["2"]);
    assert.equal(outbox.uploadChanged("2", { address: "/files/tus/f_1" }).upload.address, "/files/tus/f_1");
    assert.deepEqual(outbox.uploaded("2", "f_1").content, { file_id: "f_1", text: "caption" });
    assert.deepEqual(ids(outbox.take(2)), []); // it is to be stored first
    outbox.stored("2");
    assert.deepEqual(ids(outbox.take(3)), ["2"]);
    assert.deepEqual(outbox.uploading(), []);
  });

  test("an upload that failed is retried or removed as a whole", () => {
    const outbox = make();
    const upload = { name: "a.bin", size: 100, path: "/a.bin", modifiedMs: 7, address: "" };
    outbox.add({ ...item("1"), content: {}, upload }, true);
    outbox.uploadFailed("1", { reason: "bad_file", detail: "" });
    assert.deepEqual(outbox.uploading(), []);
    assert.ok(outbox.retry("1"));
    assert.deepEqual(outbox.uploading(), ["1"]);
    assert.equal(outbox.remove("1").clientMsgId, "1");
    assert.equal(outbox.size, 0);
  });

  test("sends in order, several at once, and not before it is stored", () => {
    const outbox = make();
    outbox.add(item("1"), true);
    outbox.add(item("2"), false);
    outbox.add(item("3"), true);
    assert.deepEqual(ids(outbox.take(1)), ["1"]);
    outbox.stored("2");
    assert.deepEqual(ids(outbox.take(2)), ["2", "3"]);
    assert.deepEqual(ids(outbox.take(3)), []);
  });

  test("sends everything unanswered again after a reconnect, the same ids in the same order", () => {
    const outbox = make();
    for (const id of ["1", "2", "3"]) outbox.add(item(id), true);
    outbox.take(1);
    outbox.saved("2");
    outbox.disconnected();
    assert.deepEqual(ids(outbox.take(5)), ["1", "3"]);
  });

  test("goes on from what was refused for the moment, one first, and leaves other conversations alone", () => {
    const outbox = make();
    for (const id of ["1", "2", "3"]) outbox.add(item(id), true);
    outbox.take(10);
    for (const id of ["1", "2", "3"]) assert.equal(outbox.refused(id, { reason: "server_busy", detail: "" }, 200, 20), "again");
    outbox.add(item("4", "si_a:c"), true);
    assert.deepEqual(ids(outbox.take(30)), ["4"]);
    outbox.saved("4");
    assert.deepEqual(ids(outbox.take(31)), []);
    assert.equal(outbox.deadline, 20 + 200 + 50);
    assert.deepEqual(ids(outbox.take(outbox.deadline)), ["1"]);
    outbox.saved("1");
    assert.deepEqual(ids(outbox.take(300)), ["2", "3"]);
  });

  test("a final refusal is that message's own matter", () => {
    const outbox = make();
    for (const id of ["1", "2"]) outbox.add(item(id), true);
    outbox.take(1);
    assert.equal(outbox.refused("1", { reason: "blocked", detail: "" }, 0, 2), "failed");
    outbox.disconnected();
    assert.deepEqual(ids(outbox.take(3)), ["2"]);
    assert.equal(outbox.retry("1"), true);
    assert.deepEqual(ids(outbox.take(4)), ["1"]);
    assert.equal(outbox.retry("2"), false);
  });

  test("repeats what is not answered, with more patience once it was accepted", () => {
    const outbox = make();
    outbox.add(item("1"), true);
    outbox.take(1);
    assert.deepEqual(ids(outbox.take(1001)), ["1"]);
    assert.equal(outbox.accepted("1", 1002), true);
    assert.equal(outbox.accepted("1", 1003), false);
    assert.deepEqual(ids(outbox.take(2500)), []);
    assert.deepEqual(ids(outbox.take(4003)), ["1"]);
  });

  test("what an earlier life left goes first", () => {
    const outbox = make();
    outbox.add(item("5"), true);
    outbox.add(item("2"), true);
    outbox.add(item("3"), true);
    assert.deepEqual(ids(outbox.take(1)), ["2", "3", "5"]);
  });

  test("keeps to its limit on the wire", () => {
    const outbox = make({ maxInFlight: 3 });
    for (const number of range(1, 9)) outbox.add(item(String(number), `si_a:${number % 2}`), true);
    assert.equal(outbox.take(1).length, 3);
    outbox.saved("1");
    assert.equal(outbox.take(2).length, 1);
  });

  test("never asks to be woken for nothing", () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const random = seeded(seed);
      const outbox = make({ random, maxInFlight: 4 });
      let now = 1;
      for (let step = 0; step < 200; step += 1) {
        if (random.chance(0.3)) outbox.add(item(String(1000 + step), random.pick(["si_a:b", "si_a:c"])), true);
        const open = outbox.items();
        const one = open.length > 0 ? random.pick(open).clientMsgId : "";
        if (random.chance(0.2)) outbox.saved(one);
        else if (random.chance(0.3)) outbox.refused(one, { reason: random.pick(["server_busy", "too_many_requests", "blocked"]), detail: "" }, 20, now);
        now += random.below(50);
        outbox.take(now);
        assert.ok(outbox.deadline > now, `seed ${seed}, step ${step}`);
      }
    }
  });
});

describe("pauses", () => {
  test("grow, are spread, and respect what the server wishes", () => {
    const long = new Backoff(500, 30_000, () => 1);
    assert.deepEqual(range(1, 8).map(() => long.next()), [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    assert.ok(new Backoff(500, 30_000, () => 0).next(700) >= 700);
    long.reset();
    assert.equal(long.next(), 500);
  });

  test("the pace slows at once and recovers bit by bit", () => {
    const pace = new SendRate();
    pace.sent(0);
    assert.equal(pace.mayGo(0), true);
    pace.slowDown(10, 30);
    assert.equal(pace.mayGo(40), false);
    assert.equal(pace.mayGo(50), true);
    pace.sent(50);
    assert.equal(pace.mayGo(60), false);
    for (let count = 0; count < 100; count += 1) pace.worked();
    pace.sent(90);
    assert.equal(pace.mayGo(90), true);
  });

  test("timers run in order, once, and may clear each other", () => {
    const timers = new Timers();
    const ran = [];
    timers.set("b", 20, () => ran.push("b"));
    timers.set("a", 10, () => {
      ran.push("a");
      timers.clear("b");
    });
    timers.set("c", 30, () => ran.push("c"));
    timers.run(9);
    assert.equal(timers.next, 10);
    timers.run(25);
    timers.run(25);
    assert.deepEqual(ran, ["a"]);
    assert.equal(timers.next, 30);
  });
});
