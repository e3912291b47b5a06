// The examples and the README's code, run as they stand.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { People, texts, until } from "./support/people.js";
import { NexoServer } from "./support/server.js";

const PACKAGE = fileURLToPath(new URL("../", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("../../../examples/js/", import.meta.url));

let server;
let people;
let folder;

before(async () => {
  server = await NexoServer.start();
  people = new People(server.url);
  folder = mkdtempSync(join(tmpdir(), "nexo-examples-"));
  cpSync(EXAMPLES, folder, { recursive: true, filter: (path) => !path.includes("node_modules") });
  // what `npm install` would do
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(PACKAGE, join(folder, "node_modules", "nexo-im-client"));
  symlinkSync(join(PACKAGE, "node_modules", "ws"), join(folder, "node_modules", "ws"));
});
after(async () => {
  await people?.end();
  await server?.end();
  if (folder) rmSync(folder, { recursive: true });
});

class Program {
  constructor(file, ...args) {
    this.child = spawn(process.execPath, [file, ...args], { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
    this.said = "";
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on("data", (chunk) => (this.said += chunk));
  }

  async says(text) {
    const timer = setTimeout(() => this.child.kill(), 20_000);
    while (!this.said.includes(text)) {
      assert.equal(this.child.exitCode ?? this.child.signalCode, null, `ended without saying ${text}:\n${this.said}`);
      await Promise.race([once(this.child.stdout, "data"), once(this.child.stderr, "data"), once(this.child, "exit")]);
    }
    clearTimeout(timer);
  }

  async ends() {
    if (this.child.exitCode === null) await once(this.child, "exit");
    return this.child.exitCode;
  }
}

test("the echo bot answers, goes on after a kill, and ends when asked to", async () => {
  assert.ok(readFileSync(join(EXAMPLES, "echo-bot.mjs"), "utf8").split("\n").length <= 20);
  await people.ensure("echo");
  const ann = await people.connect("ann");
  const first = new Program("echo-bot.mjs", server.url, "echo", "correct horse");
  await first.says("echo listens");
  await ann.chatWith("echo").send("hello").whenSaved();
  await until(ann, () => texts(ann.chatWith("echo")).length === 2);
  first.child.kill("SIGKILL");
  await first.ends();
  await ann.chatWith("echo").send("are you there?").whenSaved();
  const second = new Program("echo-bot.mjs", server.url, "echo", "correct horse");
  await until(ann, () => texts(ann.chatWith("echo")).length === 4);
  assert.deepEqual(texts(ann.chatWith("echo")), ["hello", "hello", "are you there?", "are you there?"]);
  await second.says("echo listens");
  second.child.kill("SIGINT");
  assert.equal(await second.ends(), 0);
});

test("the terminal chat shows what was, what comes and what becomes of one's own", async () => {
  const ben = await people.connect("ben");
  await people.ensure("cid");
  await ben.chatWith("cid").send("earlier").whenSaved();
  const chat = new Program("terminal-chat.mjs", server.url, "cid", "correct horse", "ben");
  await chat.says("ben: earlier");
  chat.child.stdin.write("hello ben\n");
  await until(ben, () => texts(ben.chatWith("cid")).includes("hello ben"));
  await chat.says("✓✓");
  ben.chatWith("cid").markRead();
  await chat.says("✓✓ read");
  ben.chatWith("cid").send("hello cid");
  await chat.says("ben: hello cid");
  chat.child.stdin.write("/undo\n");
  await until(ben, () => ben.chatWith("cid").messages.some((message) => message.status === 1));
  chat.child.stdin.end();
  assert.equal(await chat.ends(), 0, chat.said);
});

test("the code of the page about clients runs as it stands", async () => {
  const page = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
  const [, code] = page.match(/^```js\n(.*?)^```$/ms);
  for (const id of ["alice", "bob"]) await people.ensure(id);
  const lines = ['import WebSocket from "ws";', "globalThis.WebSocket = WebSocket;", code.replaceAll("http://127.0.0.1:8900", server.url)];
  writeFileSync(join(folder, "page.mjs"), [...lines, "console.log(sent.state);", "await client.close();"].join("\n"));
  const program = new Program("page.mjs");
  assert.equal(await program.ends(), 0, program.said);
  assert.match(program.said, /saved/);
});

test("the code of the README runs as it stands", async () => {
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
  assert.ok(blocks.length >= 2);
  for (const id of ["alice", "bob"]) await people.ensure(id);
  const bob = await people.connect("bob");
  bob.on("message", ({ conversation }) => conversation.markRead());
  const code = blocks.join("\n").replaceAll("http://127.0.0.1:8900", server.url);
  writeFileSync(join(folder, "readme.mjs"), code);
  const program = new Program("readme.mjs");
  assert.equal(await program.ends(), 0, program.said);
  assert.match(program.said, /saved as number \d/);
  assert.match(program.said, /bob has read it/);
});
