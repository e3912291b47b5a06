// Answers every text with the same words, once, also after a crash. Usage: node echo-bot.mjs URL USER PASSWORD
import { NexoClient } from "nexo-im-client";
import { FileStorage } from "nexo-im-client/file";
import WebSocket from "ws";

const [url, userId, password] = process.argv.slice(2);
const client = new NexoClient({ url, WebSocket, platformId: 7, storage: new FileStorage(`${userId}.nexo`) });

client.on("message", ({ message, conversation }) => {
  conversation.markRead();
  if (message.msgType === 1) conversation.send(message.content, { clientMsgId: `echo-${message.serverMsgId}` });
});

if (!(await client.restore())) await client.login({ userId, password });
await client.connect();
console.log(`${userId} listens`);
process.once("SIGINT", () => client.close());
