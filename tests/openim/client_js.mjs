// A client of the JavaScript SDK, driven by lines: {"id", "call", "args"} in; {"id", "data"}, {"id", "error"} and
// {"event", "data"} out. One user per process.

import { createInterface } from "node:readline";
import { CbEvents, getSDK } from "@openim/client-sdk/lib/index.modern.mjs";

for (const name of ["log", "debug", "info", "warn", "error"]) console[name] = () => {};
const sdk = getSDK();
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

for (const event of Object.values(CbEvents)) {
  sdk.on(event, ({ data, errCode, errMsg, operationID }) => say({ event, data, errCode, errMsg, operationID }));
}

// what an application does around a call of the SDK
const own = {
  async sendText({ text, recvID = "", groupID = "" }) {
    const { data: message } = await sdk.createTextMessage(text);
    return sdk.sendMessage({ recvID, groupID, message });
  },
  async sendCreated({ create, argument, recvID = "", groupID = "" }) {
    const { data: message } = await sdk[create](argument);
    return sdk.sendMessageNotOss({ recvID, groupID, message });
  },
  // one message after another; what is refused is sent again as it is, until it is taken
  async sendMany({ prefix, count, recvID = "", groupID = "" }) {
    for (let number = 0; number < count; number++) {
      const { data: message } = await sdk.createTextMessage(`${prefix}${number}`);
      for (;;) {
        try {
          await sdk.sendMessage({ recvID, groupID, message });
          break;
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 300));
        }
      }
      say({ event: "Saved", data: { text: `${prefix}${number}`, clientMsgID: message.clientMsgID } });
    }
    return { data: count };
  },
  async uploadText({ name, text }) {
    return sdk.uploadFile({ file: new File([text], name) });
  },
};

// the SDK reads files as browsers do
globalThis.FileReader = class {
  readAsArrayBuffer(blob) {
    blob.arrayBuffer().then((result) => this.onload({ target: { result } }));
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, call, args } = JSON.parse(line);
  (async () => (own[call] ?? sdk[call].bind(sdk))(...args))().then(
    (answer) => say({ id, data: answer?.data ?? null }),
    (error) => say({ id, error: { errCode: error?.errCode ?? -1, errMsg: error?.errMsg ?? String(error) } }),
  );
}
process.exit(0);
