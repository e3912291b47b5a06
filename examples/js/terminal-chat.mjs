// Chat with a user in a terminal. Usage: node terminal-chat.mjs URL USER PASSWORD PEER
import { createInterface } from "node:readline";
import { NexoClient } from "nexo-im-client";
import WebSocket from "ws";

const [url, userId, password, peerId] = process.argv.slice(2);
const client = new NexoClient({ url, WebSocket, platformId: 7 });
const marks = { sending: "…", accepted: "…", saved: "✓", delivered: "✓✓", read: "✓✓ read", failed: "✗" };

function line(message) {
  const time = new Date(message.sendAt).toTimeString().slice(0, 5);
  return `${time} ${message.senderId}: ${message.status === 1 ? "(recalled)" : message.content}`;
}

client.on("state", ({ state, reason }) => console.log(`-- ${state}${reason ? ` (${reason})` : ""}`));
await client.login({ userId, password });
await client.connect();

const chat = client.chatWith(peerId);
await chat.loadLatest(20);
for (const message of chat.messages) if (message.msgType < 100) console.log(line(message));
chat.markRead();

client.on("message", ({ message, conversation }) => {
  if (conversation !== chat) return console.log(`-- ${message.senderId} wrote to you in another chat`);
  console.log(line(message));
  chat.markRead();
});
client.on("recalled", ({ by }) => console.log(`-- ${by} took a message back`));
client.on("receipt", ({ type, conversation }) => conversation === chat && console.log(`   ${marks[type]}`));
client.on("outgoing", (sent) => console.log(`   ${marks[sent.state]} ${sent.error?.reason ?? ""}`));

const input = createInterface({ input: process.stdin });
input.on("line", (text) => {
  if (text === "/undo") {
    const last = chat.messages.findLast((message) => message.senderId === userId && message.status === 0);
    if (last) chat.recall(last.serverMsgId).catch((error) => console.log(`-- ${error.reason}`));
  } else if (text !== "") chat.send(text);
});
input.on("close", async () => {
  await client.flush(5000).catch((error) => console.log(`-- not sent: ${error.message}`));
  await client.close();
});
