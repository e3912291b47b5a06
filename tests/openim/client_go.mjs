// A client of the Go core (through koffi), driven by lines as `client_js.mjs`. One user per process; `login` takes the
// folder of its database as `dataDir`.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import path from "node:path";

const require = createRequire(import.meta.url);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
let invoke;
Object.assign(require("electron"), {
  powerMonitor: { on() {} },
  ipcMain: { handle: (_, handler) => (invoke = (method, ...args) => handler(null, method, ...args)) },
});
const Main = require("@openim/electron-client-sdk").default ?? require("@openim/electron-client-sdk");
const library = path.join(
  path.dirname(require.resolve("@openim/electron-client-sdk/package.json")), "assets", "linux_x64", "libopenimsdk.so",
);
const plain = (data) => {
  try {
    return typeof data === "string" && /^[\[{]/.test(data) ? JSON.parse(data) : data;
  } catch {
    return data;
  }
};
new Main(library, {
  send: (_, event, response) => say({ event, data: plain(response?.data ?? response), errCode: response?.errCode }),
  isDestroyed: () => false,
});

const checked = (answer) => {
  if (answer?.errCode) throw answer;
  return answer;
};

const own = {
  async login({ dataDir, logLevel = 1, ...account }) {
    await invoke("initSDK", {
      platformID: account.platformID, apiAddr: account.apiAddr, wsAddr: account.wsAddr, dataDir,
      logFilePath: dataDir, logLevel, isLogStandardOutput: false, systemType: "electron",
    });
    return invoke("login", { userID: account.userID, token: account.token });
  },
  async sendText({ text, recvID = "", groupID = "" }) {
    const { data: message } = await invoke("createTextMessage", text);
    return invoke("sendMessage", { recvID, groupID, message });
  },
  // one message after another; what is refused is sent again as it is, until it is taken
  async sendMany({ prefix, count, recvID = "", groupID = "" }) {
    for (let number = 0; number < count; number++) {
      const { data: message } = await invoke("createTextMessage", `${prefix}${number}`);
      for (;;) {
        try {
          await checked(await invoke("sendMessage", { recvID, groupID, message }));
          break;
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 300));
        }
      }
      say({ event: "Saved", data: { text: `${prefix}${number}`, clientMsgID: message.clientMsgID } });
    }
    return { data: count };
  },
  async sendCreated({ create, argument, recvID = "", groupID = "" }) {
    const { data: message } = await invoke(create, argument);
    return invoke("sendMessage", { recvID, groupID, message });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, call, args } = JSON.parse(line);
  (async () => (own[call] ?? ((...given) => invoke(call, ...given)))(...args))().then(
    (answer) => (answer?.errCode ? Promise.reject(answer) : say({ id, data: plain(answer?.data ?? null) })),
  ).catch(
    (error) => say({ id, error: { errCode: error?.errCode ?? -1, errMsg: error?.errMsg ?? String(error) } }),
  );
}
process.exit(0);
