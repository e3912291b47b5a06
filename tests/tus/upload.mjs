// Uploads a file with tus-js-client as an application does: `node upload.mjs ENDPOINT TOKEN FILE CHUNK_BYTES`. It goes
// on by itself after every failure, and says the address of the upload at the end.

import { createReadStream, statSync } from "node:fs";
import { basename } from "node:path";
import { Upload } from "tus-js-client";

const [endpoint, token, path, chunk] = process.argv.slice(2);
const say = (...words) => process.stdout.write(words.join(" ") + "\n");

const upload = new Upload(createReadStream(path), {
  endpoint,
  chunkSize: Number(chunk),
  uploadSize: statSync(path).size,
  headers: { Authorization: `Bearer ${token}` },
  metadata: { filename: basename(path) },
  retryDelays: Array(400).fill(50),
  onShouldRetry: () => true,
  onError: (error) => {
    say("failed", JSON.stringify(String(error)));
    process.exit(1);
  },
  onSuccess: () => say("done", upload.url),
});
upload.start();
