// Answers every text with the same words, once, also after a crash. Usage: node echo-bot.mjs URL USER PASSWORD
// When the server ends its session, it ends with the reason and the exit code 1.
import { NexoClient } from "nexo-im-client";
import { FileStorage } from "nexo-im-client/file";
import WebSocket from "ws";

const [url, userId, password] = process.argv.slice(2);
const client = new NexoClient({ url, WebSocket, platformId: 7, storage: new FileStorage(`${userId}.nexo`) });
process.once("SIGINT", () => client.close());
try {
  const inbox = client.inbox();
  if (!(await client.restore({ expectUser: userId }))) await client.login({ userId, password });
  await client.connect();
  console.log(`${userId} listens`);
  for await (const { message, conversation } of inbox) {
    if (message.msgType === 1) conversation.send(message.content, { clientMsgId: `echo-${message.serverMsgId}` });
    conversation.markRead(message.seq);
  }
} catch (error) {
  console.error(`echo-bot: ${error.message}`);
  process.exit(1);
}
