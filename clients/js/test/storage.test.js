// One suite over all storages, and what is special about each.

import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { IDBFactory, IDBKeyRange } from "fake-indexeddb";

import { IndexedDbStorage, MemoryStorage } from "../src/index.js";
import { FallbackStorage } from "../src/storage/fallback.js";
import { FileStorage } from "../src/storage/file.js";

globalThis.IDBKeyRange = IDBKeyRange;
const folder = mkdtempSync(join(tmpdir(), "nexo-storage-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;
const newPath = () => join(folder, `storage-${(files += 1)}`);

const KINDS = {
  memory: () => new MemoryStorage(),
  IndexedDB: () => new IndexedDbStorage("nexo", new IDBFactory()),
  file: () => new FileStorage(newPath()),
  fallback: () => new FallbackStorage(new MemoryStorage(), assert.fail),
};

for (const [kind, make] of Object.entries(KINDS)) {
  describe(kind, () => {
    test("keeps, replaces and deletes values", async () => {
      const storage = make();
      assert.equal(await storage.get("a"), undefined);
      await storage.set("a", { deep: [1, null, "ü"] });
      await storage.set("a", { deep: [2] });
      await storage.set("b", 0);
      assert.deepEqual(await storage.get("a"), { deep: [2] });
      assert.equal(await storage.get("b"), 0);
      await storage.delete("a");
      await storage.delete("never");
      assert.equal(await storage.get("a"), undefined);
    });

    test("lists what begins with a prefix, by key", async () => {
      const storage = make();
      await Promise.all(["x/2", "x/10", "y/1", "x", "x/1"].map((key) => storage.set(key, key)));
      assert.deepEqual(await storage.entries("x/"), [["x/1", "x/1"], ["x/10", "x/10"], ["x/2", "x/2"]]);
      assert.equal((await storage.entries("")).length, 5);
    });
  });
}

test("a file is there after a restart, readable by its owner only, and survives a torn last line", async () => {
  const path = newPath();
  const first = new FileStorage(path);
  await first.set("outbox/1", { text: "hello" });
  await first.set("gone", 1);
  await first.delete("gone");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  appendFileSync(path, '["outbox/2",{"te'); // the process died here
  const second = new FileStorage(path);
  assert.deepEqual(await second.entries(""), [["outbox/1", { text: "hello" }]]);
  await second.set("outbox/3", 3);
  await second.close();
  assert.deepEqual((await new FileStorage(path).entries("")).map(([key]) => key), ["outbox/1", "outbox/3"]);
});

test("a file does not grow without bound", async () => {
  const path = newPath();
  const storage = new FileStorage(path);
  for (let count = 0; count < 1100; count += 1) await storage.set("same", count);
  assert.ok(readFileSync(path, "utf8").split("\n").length < 1000);
  assert.equal(await storage.get("same"), 1099);
  await storage.close();
});

test("a storage that fails is replaced by memory, and that is told once", async () => {
  const broken = { get: () => Promise.reject(new Error("full")), set: () => Promise.reject(new Error("full")), delete: async () => {}, entries: async () => [] };
  const told = [];
  const storage = new FallbackStorage(broken, (error) => told.push(error.message));
  await storage.set("a", 1);
  assert.equal(await storage.get("a"), 1);
  assert.deepEqual(told, ["full"]);
});
