// Calls against a real server: states and events of both sides.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { People, until } from "./support/people.js";
import { NexoServer } from "./support/server.js";

let server;
let people;

before(async () => {
  server = await NexoServer.start();
  people = new People(server.url);
});
after(async () => {
  await people?.end();
  await server?.end();
});

/** The next incoming call. */
const incoming = (client) => new Promise((resolve) => client.calls.once("incoming", resolve));

test("a call is answered on one of two devices, candidates cross, and it ends on both sides", async () => {
  const [ann, phone, desk] = [await people.connect("ann"), await people.connect("ben"), await people.connect("ben")];
  const rings = Promise.all([incoming(phone), incoming(desk)]);
  const outgoing = await ann.calls.invite("ben", { kind: "video", sdp: "v=0 offer" });
  assert.deepEqual([outgoing.direction, outgoing.state, outgoing.userId, outgoing.kind], ["outgoing", "ringing", "ben", "video"]);
  assert.equal(ann.calls.current, outgoing);
  const [onPhone, onDesk] = await rings;
  assert.deepEqual([onPhone.callId, onPhone.sdp, onPhone.userId], [outgoing.callId, "v=0 offer", "ann"]);
  const seen = [];
  outgoing.on("accepted", (sdp) => seen.push(sdp));
  outgoing.on("ice", (candidate) => seen.push(candidate));
  onPhone.accept("v=0 answer");
  onPhone.ice({ candidate: "candidate:1", sdpMid: "0", sdpMLineIndex: 0, usernameFragment: null });
  onPhone.describe({ type: "offer", sdp: "v=0 again" });
  const described = new Promise((resolve) => outgoing.once("description", resolve));
  assert.deepEqual(await described, { type: "offer", sdp: "v=0 again" });
  assert.deepEqual(seen, ["v=0 answer", { candidate: "candidate:1", sdpMid: "0", sdpMLineIndex: 0 }]);
  assert.deepEqual(outgoing.candidates, [{ candidate: "candidate:1", sdpMid: "0", sdpMLineIndex: 0 }]);
  assert.deepEqual([outgoing.state, outgoing.sdp, onPhone.state], ["active", "v=0 answer", "active"]);
  if (onDesk.state !== "ended") await new Promise((resolve) => onDesk.once("ended", resolve));
  assert.equal(onDesk.reason, "answered_elsewhere");
  const ended = new Promise((resolve) => onPhone.once("ended", resolve));
  outgoing.end();
  const { reason, durationMs } = await ended;
  assert.equal(reason, "ended");
  assert.ok(durationMs >= 0);
  await until(desk, () => desk.chatWith("ann").lastMessage?.msgType === 120);
  const { outcome, kind } = desk.chatWith("ann").lastMessage.content;
  assert.deepEqual([outcome, kind, desk.chatWith("ann").unread], ["completed", "video", 0]);
  const { calls } = await ann.calls.list();
  assert.deepEqual(calls.map((call) => [call.callId, call.outcome]), [[outgoing.callId, "completed"]]);
  assert.deepEqual(await ann.calls.iceServers(), []);
});

test("reject, cancel, and an invitation that is refused", async () => {
  const [cid, dan] = [await people.connect("cid"), await people.connect("dan")];
  for (const how of ["reject", "cancel"]) {
    const ring = incoming(dan);
    const outgoing = await cid.calls.invite("dan", { kind: "audio", sdp: "v=0" });
    const call = await ring;
    await assert.rejects(cid.calls.invite("dan", { kind: "audio", sdp: "v=0" }), { reason: "busy" });
    const [actor, other] = how === "reject" ? [call, outgoing] : [outgoing, call];
    const ended = other.state === "ended" ? null : new Promise((resolve) => other.once("ended", resolve));
    actor[how]();
    await ended;
    assert.equal(other.reason, how === "reject" ? "rejected" : "canceled");
    assert.throws(() => call.accept("v=0"), { reason: "call_not_ringing" });
  }
  await until(dan, () => dan.chatWith("cid").unread === 1); // only the canceled one counts
  await people.ensure("eve");
  await assert.rejects(cid.calls.invite("eve", { kind: "audio", sdp: "v=0" }), { reason: "callee_offline" });
  assert.equal(cid.calls.current, null);
});

test("two who call each other share one call", async () => {
  const [fay, gus] = [await people.connect("fay"), await people.connect("gus")];
  const unexpected = [];
  for (const client of [fay, gus]) client.calls.on("incoming", (call) => unexpected.push(call));
  const calls = await Promise.all([
    fay.calls.invite("gus", { kind: "audio", sdp: "v=0" }),
    gus.calls.invite("fay", { kind: "audio", sdp: "v=0" }),
  ]);
  assert.equal(calls[0].callId, calls[1].callId);
  assert.deepEqual(calls.map((call) => call.direction).sort(), ["incoming", "outgoing"]);
  const callee = calls.find((call) => call.direction === "incoming");
  const caller = calls.find((call) => call.direction === "outgoing");
  const accepted = new Promise((resolve) => caller.once("accepted", resolve));
  callee.accept("v=0 answer");
  assert.equal(await accepted, "v=0 answer");
  const ended = new Promise((resolve) => callee.once("ended", resolve));
  caller.end();
  await ended;
  assert.equal(callee.state, "ended");
  assert.deepEqual(unexpected, []);
});

test("a call goes on when the connection of the caller breaks, and its end is reported afterwards", async () => {
  const [hal, ida] = [await people.connect("hal"), await people.connect("ida")];
  const ring = incoming(ida);
  const outgoing = await hal.calls.invite("ida", { kind: "audio", sdp: "v=0" });
  const call = await ring;
  await hal.close();
  const accepted = new Promise((resolve) => outgoing.once("accepted", resolve));
  call.accept("v=0 answer");
  await hal.connect();
  assert.equal(await accepted, "v=0 answer"); // it was kept for the device
  outgoing.end();
  if (call.state !== "ended") await new Promise((resolve) => call.once("ended", resolve));
});
