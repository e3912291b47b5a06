// Files with a real server: progress, cut connections, a restart of either side, order.

import assert from "node:assert/strict";
import { File } from "node:buffer";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { MemoryStorage } from "../src/index.js";
import { FileStorage } from "../src/storage/file.js";
import { People, until } from "./support/people.js";
import { CuttingProxy } from "./support/proxy.js";
import { NexoServer } from "./support/server.js";

const BIG_BYTES = 3_000_000;
const FIRST_BYTES = 128 * 1024; // of the first request
// one pixel
const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

let server;
let proxy;
let people;
let direct;
let folder;
let count = 0;

const names = (...stems) => {
  count += 1;
  return stems.map((stem) => `${stem}${count}`);
};

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "nexo-files-"));
  server = await NexoServer.start();
  proxy = await CuttingProxy.start(server.port);
  people = new People(proxy.url);
  direct = new People(server.url);
});
after(async () => {
  await people?.end();
  await direct?.end();
  await proxy?.stop();
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

async function downloaded(url) {
  const answer = await fetch(url);
  assert.equal(answer.status, 200);
  return { bytes: Buffer.from(await answer.arrayBuffer()), type: answer.headers.get("content-type") };
}

test("a picture is uploaded and sent with its caption", async () => {
  const [ann, ben] = names("ann", "ben");
  const one = await direct.connect(ann);
  const other = await direct.connect(ben);
  const seen = [];
  const file = new File([PNG], "holiday.png", { type: "image/png" });
  const sent = one.chatWith(ben).sendFile(file, { caption: "At the sea", onProgress: (...numbers) => seen.push(numbers) });
  assert.equal(sent.state, "uploading");
  const message = await sent.whenSaved();
  assert.deepEqual(seen.at(-1), [PNG.length, PNG.length]);
  assert.deepEqual(sent.progress, { uploaded: PNG.length, size: PNG.length });
  const theirs = other.chatWith(ann);
  await until(other, () => theirs.messages.length === 1);
  const got = theirs.messages[0];
  assert.deepEqual([got.msgType, got.content.text, got.content.name], [2, "At the sea", "holiday.png"]);
  assert.deepEqual([got.content.width, got.content.height], [1, 1]);
  assert.deepEqual((await downloaded(other.fileUrl(got))).bytes, PNG);
  assert.equal((await downloaded(other.fileUrl(got, "small"))).type, "image/webp");
  assert.equal((await downloaded(one.fileUrl(message, "medium"))).type, "image/webp");
  assert.deepEqual(one.chatWith(ben).pending, []);
});

test("an upload continues after cut connections, and texts do not wait for it", async () => {
  const [ann, ben] = names("ann", "ben");
  const one = await people.connect(ann);
  const other = await direct.connect(ben);
  const content = randomBytes(BIG_BYTES);
  const offsets = [];
  const onProgress = (uploaded) => {
    if (offsets.length === 0) one.chatWith(ben).send("a text");
    offsets.push(uploaded);
    if (offsets.length <= 4) proxy.cutAll();
  };
  const sent = one.chatWith(ben).sendFile(content, { name: "big.bin", onProgress });
  await sent.whenSaved();
  assert.ok(offsets.length > 4);
  assert.deepEqual(offsets, [...offsets].sort((one, other) => one - other)); // it never begins again
  const theirs = other.chatWith(ann);
  await until(other, () => theirs.messages.length === 2);
  assert.deepEqual(theirs.messages.map((message) => message.msgType), [1, 5]);
  assert.deepEqual((await downloaded(other.fileUrl(theirs.messages[1]))).bytes, content);
});

test("an upload continues after a restart of the client and of the server, from a path and from bytes", async () => {
  const [ann, ben] = names("ann", "ben");
  const content = randomBytes(BIG_BYTES);
  const path = join(folder, "big.bin");
  writeFileSync(path, content);
  const place = join(folder, "storage");
  const first = await direct.connect(ann, { storage: new FileStorage(place) });
  await direct.ensure(ben);
  let begun;
  const halfway = new Promise((resolve) => (begun = resolve));
  const onProgress = (uploaded) => uploaded > FIRST_BYTES && begun();
  first.chatWith(ben).sendFile(path, { onProgress });
  first.chatWith(ben).sendFile(content, { name: "bytes.bin", onProgress });
  await halfway;
  assert.equal((await first.close()).length, 2);
  await server.kill();
  await server.run();
  const second = direct.make({ storage: new FileStorage(place) });
  assert.ok(await second.restore());
  const firstOf = new Map();
  for (const { clientMsgId } of second.pending) firstOf.set(clientMsgId, 0);
  for (const outgoing of second.pending) {
    outgoing.onProgress = (uploaded) => firstOf.get(outgoing.clientMsgId) || firstOf.set(outgoing.clientMsgId, uploaded);
  }
  await second.connect();
  await second.flush();
  assert.equal(firstOf.size, 2);
  assert.ok(Math.max(...firstOf.values()) > FIRST_BYTES); // one of them was halfway, and continues there
  assert.deepEqual(await second.storage.entries("uploads/"), []);
  const other = await direct.connect(ben);
  const theirs = other.chatWith(ann);
  await theirs.loadLatest();
  assert.deepEqual(theirs.messages.map((message) => message.content.name).sort(), ["big.bin", "bytes.bin"]);
  for (const message of theirs.messages) assert.deepEqual((await downloaded(other.fileUrl(message))).bytes, content);
});

test("a file that is refused fails its message, which can be cancelled", async () => {
  const [ann, ben] = names("ann", "ben");
  const one = await direct.connect(ann);
  await direct.ensure(ben);
  const chat = one.chatWith(ben);
  const sent = chat.sendFile(PNG.subarray(0, 40), { name: "broken.png" });
  await assert.rejects(sent.whenSaved(), { reason: "bad_file" });
  assert.deepEqual(chat.pending, [sent]);
  assert.ok(sent.cancel());
  assert.deepEqual(chat.pending, []);
  assert.throws(() => chat.sendFile(new Uint8Array(0)), { reason: "bad_file" });
});

test("an upload that is cancelled leaves nothing", async () => {
  const [ann, ben] = names("ann", "ben");
  const storage = new MemoryStorage();
  const one = await direct.connect(ann, { storage });
  await direct.ensure(ben);
  let begun;
  const started = new Promise((resolve) => (begun = resolve));
  const sent = one.chatWith(ben).sendFile(randomBytes(BIG_BYTES), { onProgress: () => begun() });
  await started;
  assert.ok(sent.cancel());
  assert.equal(sent.state, "failed");
  await one.chatWith(ben).send("after it").whenSaved();
  assert.deepEqual(await storage.entries("uploads/"), []);
  assert.deepEqual(await storage.entries("outbox/"), []);
});

test("a file that was removed before it was uploaded fails its message", async () => {
  const [ann, ben] = names("ann", "ben");
  const one = await direct.connect(ann);
  await direct.ensure(ben);
  const sent = one.chatWith(ben).sendFile(join(folder, "nowhere.txt"));
  await assert.rejects(sent.whenSaved(), { reason: "file_changed" });
});
