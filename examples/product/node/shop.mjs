// A shop with its own login that has chat. Usage: node shop.mjs http://127.0.0.1:8900 nexo_sk_… 8000 [https://shop.example]
//
// The key is made by `nexo key add shop --scope users,tokens,act,events`. Customers sign in to the shop; the shop makes them users
// of Nexo and gives their page a token. Staff answer as the user `support`. Nexo reports messages to `/nexo-webhook`, which the
// shop adds by itself, at its own address or the one named last: so it knows which customers wait for an answer. The secret is
// kept in the file `shop-webhook`.
import { timingSafeEqual, createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { NexoBackend, NexoError, verifyWebhook } from "nexo-im-client/backend";

const SUPPORT = "support";
const SECRET_FILE = "shop-webhook";
const PAGE = new URL("../page/", import.meta.url);
const FILES = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/shop.js": ["shop.js", "text/javascript; charset=utf-8"],
  "/shop.css": ["shop.css", "text/css; charset=utf-8"],
};
// `chatId` is the user in Nexo: the shop's own key, which never changes. A real shop has hashes of passwords.
const ACCOUNTS = new Map([
  ["ann", { name: "ann", password: "ann loves tea", chatId: "customer-1001", staff: false }],
  ["ben", { name: "ben", password: "ben loves tea", chatId: "customer-1002", staff: false }],
  ["sam", { name: "sam", password: "sam sells tea", chatId: SUPPORT, staff: true }],
]);

const [nexo, key, port, publicUrl] = process.argv.slice(2);
const backend = new NexoBackend(nexo, key);
const sessions = new Map(); // accounts by cookie
const waiting = new Map(); // the last question of each customer without an answer
let secret = existsSync(SECRET_FILE) ? readFileSync(SECRET_FILE, "utf8") : null;

/** Makes a customer a user, and greets: the same clientMsgId is never stored twice. */
async function enter({ name, chatId, staff }) {
  if (staff) return;
  const nickname = name[0].toUpperCase() + name.slice(1);
  await backend.users.put([{ userId: chatId, nickname }]);
  const greeting = `Hello ${nickname}! Ask us anything about tea.`;
  await backend.act(SUPPORT).send(greeting, { to: chatId, clientMsgId: `welcome-${chatId}` });
}

/** Keeps who waits for an answer. The same event twice changes nothing. */
function note({ type, data }) {
  if (type !== "message.saved") return; // hook.test
  if (data.sender_id === SUPPORT) waiting.delete(data.recv_id);
  else if (data.recv_id === SUPPORT) {
    waiting.set(data.sender_id, data.content);
    console.log(`${data.sender_id} asks: ${data.content}`);
  }
}

function isPassword(account, given) {
  const digest = (text) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(account.password), digest(`${given}`));
}

async function signIn(body) {
  const { name, password } = JSON.parse(body);
  const account = ACCOUNTS.get(name);
  if (!account || !isPassword(account, password)) return [403, "This name and password do not fit"];
  await enter(account);
  const cookie = randomBytes(32).toString("base64url");
  sessions.set(cookie, account);
  return [200, "{}", "application/json", { "set-cookie": `shop=${cookie}; HttpOnly; SameSite=Lax; Path=/` }];
}

async function answer(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const cookie = /(?:^|; )shop=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1];
  const account = sessions.get(cookie) ?? null;
  if (request.method === "GET" && request.url in FILES) {
    const [name, kind] = FILES[request.url];
    return [200, readFileSync(new URL(name, PAGE)), kind];
  }
  switch (`${request.method} ${request.url}`) {
    case "GET /session": {
      const user = account && { name: account.name, staff: account.staff };
      return [200, JSON.stringify({ user, nexo, support: SUPPORT }), "application/json"];
    }
    case "GET /waiting":
      if (!account?.staff) break;
      return [200, JSON.stringify({ waiting: Object.fromEntries(waiting) }), "application/json"];
    case "POST /login":
      return signIn(body);
    case "POST /logout":
      sessions.delete(cookie);
      return [200, "{}", "application/json"];
    case "POST /chat-token":
      if (!account) return [401, "sign in to the shop first"];
      return [200, (await backend.tokens.create(account.chatId)).accessToken];
    case "POST /nexo-webhook":
      if (secret === null) return [503, "not ready"]; // it is repeated
      verifyWebhook(secret, request.headers, body).events.forEach(note);
      return [200, "taken"];
  }
  return [404, "not found"];
}

function refusal(error) {
  console.error(error.reason ?? error.message);
  if (!(error instanceof NexoError)) return [400, "bad request"];
  return ["bad_signature", "webhook_expired"].includes(error.reason) ? [401, error.reason] : [503, "the chat is not available now"];
}

const server = createServer(async (request, response) => {
  const [status, body, kind = "text/plain; charset=utf-8", headers = {}] = await answer(request).catch(refusal);
  response.writeHead(status, { "content-type": kind, "cache-control": "no-store", ...headers }).end(body);
});

await backend.users.put([{ userId: SUPPORT, nickname: "The tea shop" }]);
await new Promise((resolve) => server.listen(Number(port), "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}`;
if (secret === null) {
  const url = `${publicUrl ?? address}/nexo-webhook`;
  secret = (await backend.call("POST", "/server/hooks", { url, types: ["message.saved"], name: "shop" })).secret;
  writeFileSync(SECRET_FILE, secret, { mode: 0o600 });
}
console.log(`the shop runs at ${address}`);
