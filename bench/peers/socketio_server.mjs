// The same server on socket.io for Node. Usage: node socketio_server.mjs PORT sqlite:PATH | postgresql://…
import { createRequire } from "node:module";
const require = createRequire(`${process.cwd()}/package.json`);
const { Server } = require("socket.io");
const [port, url] = process.argv.slice(2);

async function openStore() {
  const index = "CREATE INDEX IF NOT EXISTS by_target ON messages (target, id)";
  if (url.startsWith("sqlite:")) {
    const Database = require("better-sqlite3");
    const database = new Database(url.slice(7));
    database.pragma("journal_mode = WAL");
    database.pragma("synchronous = FULL");
    database.exec("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, sender TEXT, target TEXT, body TEXT)");
    database.exec(index);
    const add = database.prepare("INSERT INTO messages (sender, target, body) VALUES (?, ?, ?)");
    const since = database
      .prepare("SELECT id, sender, body FROM messages WHERE target = ? AND id > ? ORDER BY id LIMIT 200").raw();
    return {
      add: async (...values) => Number(add.run(...values).lastInsertRowid),
      since: async (target, after) => since.all(target, after),
    };
  }
  const { Pool } = require("pg");
  const pool = new Pool({ connectionString: url, max: 8 });
  await pool.query("CREATE TABLE IF NOT EXISTS messages (id BIGSERIAL PRIMARY KEY, sender TEXT, target TEXT, body TEXT)");
  await pool.query(index);
  const query = {
    add: "INSERT INTO messages (sender, target, body) VALUES ($1, $2, $3) RETURNING id",
    since: "SELECT id, sender, body FROM messages WHERE target = $1 AND id > $2 ORDER BY id LIMIT 200",
  };
  return {
    add: async (...values) => Number((await pool.query({ name: "add", text: query.add, values })).rows[0].id),
    since: async (target, after) => {
      const found = await pool.query({ name: "since", text: query.since, values: [target, after], rowMode: "array" });
      return found.rows.map(([id, sender, body]) => [Number(id), sender, body]);
    },
  };
}

const store = await openStore();
const io = new Server(Number(port), { transports: ["websocket"], serveClient: false });
io.on("connection", (socket) => {
  const user = socket.handshake.auth.user;
  socket.join(user);
  socket.on("enter", (room, done) => {
    socket.join(room);
    done(true);
  });
  socket.on("say", async (target, body, done) => {
    const id = await store.add(user, target, body);
    io.to(target).emit("message", id, user, body);
    done(id);
  });
  socket.on("since", async (after, done) => done(await store.since(user, after)));
});
console.log("ready");
