// A real `nexo serve`, on a data folder of its own, that can be killed and started again.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

// What costs time and is not what these tests are about.
const SETTINGS = {
  NEXO_AUTH__ARGON2_MEMORY_KIB: "8",
  NEXO_AUTH__ARGON2_TIME_COST: "1",
  NEXO_LIMITS__SENDS_PER_S: "0",
  NEXO_LIMITS__FRAMES_PER_S: "0",
  NEXO_LIMITS__LOGINS_PER_MIN: "0",
  NEXO_LIMITS__REGISTERS_PER_MIN: "0",
  NEXO_LIMITS__GROUP_CREATES_PER_MIN: "0",
};

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

export class NexoServer {
  static async start(settings = {}) {
    const server = new NexoServer(await freePort(), settings);
    await server.run();
    return server;
  }

  constructor(port, settings) {
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this._settings = settings;
    this._data = mkdtempSync(join(tmpdir(), "nexo-js-"));
    this._child = null;
  }

  get _env() {
    const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("NEXO_")));
    return { ...plain, ...SETTINGS, ...this._settings };
  }

  /** The text of a new key of a backend. */
  addKey(name, scopes) {
    const args = ["key", "add", name, "--scope", scopes, "--data", join(this._data, "data")];
    return execFileSync(`${ROOT}.venv/bin/nexo`, args, { env: this._env, stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
  }

  async run() {
    const args = ["serve", "--port", String(this.port), "--data", join(this._data, "data")];
    const env = this._env;
    const child = spawn(`${ROOT}.venv/bin/nexo`, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    this._child = child;
    let said = "";
    const hear = (chunk) => (said = (said + chunk).slice(-20_000));
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    while (!said.includes("Nexo runs at ")) {
      if (child.exitCode !== null) throw new Error(`the server did not start:\n${said}`);
      await Promise.race([once(child.stdout, "data"), once(child.stderr, "data"), once(child, "exit")]);
    }
  }

  async kill(signal = "SIGKILL") {
    const child = this._child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  async end() {
    await this.kill();
    rmSync(this._data, { recursive: true, force: true });
  }
}
