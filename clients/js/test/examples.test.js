// The examples and the README's code, run as they stand.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { NexoBackend } from "../src/backend.js";
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

test("the echo bot answers, goes on after a kill, and ends when asked to, or with the reason", async () => {
  assert.ok(readFileSync(join(EXAMPLES, "echo-bot.mjs"), "utf8").split("\n").length <= 25);
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
  const third = new Program("echo-bot.mjs", server.url, "echo", "correct horse");
  await third.says("echo listens");
  await new NexoBackend(server.url, server.addKey("bots", "tokens")).sessions.revoke("echo");
  assert.equal(await third.ends(), 1);
  assert.match(third.said, /echo-bot: session_invalid/);
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

const PAGE = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
const BLOCKS = [...PAGE.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
const SIGNS = ["sent.whenSaved()", ".forward(", "getToken }", ".inbox()", "users.put", "backend.events(", "verifyWebhook("];

/** A program of a block of the page about clients; `before` and `after` are lines of the test. */
function pageProgram(name, sign, { replace = {}, before = "", after = "" } = {}) {
  const found = BLOCKS.filter((code) => code.includes(sign));
  assert.equal(found.length, 1, sign);
  let [code] = found;
  for (const [there, here] of Object.entries({ "http://127.0.0.1:8900": server.url, ...replace })) code = code.replaceAll(there, here);
  const lines = ['import WebSocket from "ws";', "globalThis.WebSocket = WebSocket;", before, code, after];
  writeFileSync(join(folder, `${name}.mjs`), lines.join("\n"));
  return new Program(`${name}.mjs`);
}

test("every block of the page about clients is run", () => {
  assert.equal(new Set(SIGNS.flatMap((sign) => BLOCKS.filter((code) => code.includes(sign)))).size, BLOCKS.length);
});

test("the code of the page about clients runs as it stands", async () => {
  for (const id of ["alice", "bob"]) await people.ensure(id);
  const program = pageProgram("page", "sent.whenSaved()", { after: "console.log(sent.state);\nawait client.close();" });
  assert.equal(await program.ends(), 0, program.said);
  assert.match(program.said, /saved/);
});

test("the changes of messages of the page run as they stand", async () => {
  for (const id of ["alice", "bob", "carol"]) await people.ensure(id);
  const program = pageProgram("page-changes", ".forward(", { after: "await client.close();" });
  assert.equal(await program.ends(), 0, program.said);
  assert.match(program.said, /^\d+$/m);
});

test("the bot of the page runs as it stands", async () => {
  await people.ensure("echo.bot");
  const bot = pageProgram("page-bot", ".inbox()");
  const amy = await people.connect("amy");
  const answers = amy.events("message");
  amy.chatWith("echo.bot").send("Is there an echo?");
  assert.equal((await answers.next()).value.message.content, "Is there an echo?");
  bot.child.kill();
});

test("the backend, the tokens, the events and the webhook of the page run as they stand", async () => {
  const key = server.addKey("page", "users,tokens,act,events");
  const replace = { "nexo_sk_…": key };
  const backend = pageProgram("page-backend", "users.put", { replace });
  assert.equal(await backend.ends(), 0, backend.said);
  assert.match(backend.said, /alice Order 7 1/);

  const { accessToken } = await new NexoBackend(server.url, key).tokens.create("alice");
  const event = { event_id: "1", type: "message.saved", at: 1, data: { content: "Hello" } };
  const shop = createServer((request, response) => {
    const data = { events: [event], next_cursor: "c1" };
    response.end(request.url.startsWith("/server/events?cursor=stored") ? JSON.stringify({ err_code: 0, data }) : accessToken);
  }).listen(0, "127.0.0.1");
  await once(shop, "listening");
  const address = `http://127.0.0.1:${shop.address().port}`;

  const client = pageProgram("page-tokens", "getToken }", { replace: { "https://shop.example": address }, after: "await client.close();" });
  assert.equal(await client.ends(), 0, client.said);
  assert.match(client.said, /signed in as alice/);

  const before = 'const loadCursor = () => "stored";\nconst storeCursor = (cursor) => (console.log(cursor), process.exit(0));';
  const events = pageProgram("page-events", "backend.events(", { replace: { ...replace, [server.url]: address }, before });
  assert.equal(await events.ends(), 0, events.said);
  assert.match(events.said, /message\.saved \{ content: 'Hello' \}\nc1/);
  shop.closeAllConnections();
  shop.close();

  const body = JSON.stringify({ events: [{ type: "message.saved", data: 7 }] });
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", "old secret").update(`1.${timestamp}.${body}`).digest("base64");
  const headers = { "webhook-id": "1", "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
  const hook = pageProgram("page-hook", "verifyWebhook(", { after: `onWebhook(${JSON.stringify(headers)}, ${JSON.stringify(body)});` });
  assert.equal(await hook.ends(), 0, hook.said);
  assert.match(hook.said, /message\.saved 7/);
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
