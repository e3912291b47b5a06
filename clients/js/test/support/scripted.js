// The scripted server of the conformance suite, in a process of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

export class ScriptedServer {
  static async start() {
    const child = spawn(`${ROOT}.venv/bin/python`, ["-m", "harness.scripted_server"], {
      cwd: `${ROOT}tests`,
      stdio: ["pipe", "pipe", "inherit"],
    });
    let text = "";
    while (!text.includes("\n")) {
      const [chunk] = await Promise.race([once(child.stdout, "data"), once(child, "exit").then(() => [null])]);
      if (chunk === null) throw new Error("the scripted server did not start");
      text += chunk;
    }
    return new ScriptedServer(child, JSON.parse(text).port);
  }

  constructor(child, port) {
    this._child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  async control(what, body) {
    const response = await fetch(`${this.url}/control/${what}`, { method: "POST", body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${what} ${JSON.stringify(body)}: HTTP ${response.status} ${text}`);
    const reply = JSON.parse(text);
    return reply.data ?? reply;
  }

  async stop() {
    const gone = once(this._child, "exit");
    this._child.stdin.end();
    await gone;
  }
}
