// A TCP proxy that breaks connections: all at once, or after some bytes, in the middle of whatever they carry.

import { once } from "node:events";
import { connect, createServer } from "node:net";

export class CuttingProxy {
  static async start(targetPort) {
    const proxy = new CuttingProxy(targetPort);
    proxy._server.listen(0, "127.0.0.1");
    await once(proxy._server, "listening");
    proxy.url = `http://127.0.0.1:${proxy._server.address().port}`;
    return proxy;
  }

  constructor(targetPort) {
    this._pairs = new Set();
    this._cutAfterBytes = Infinity;
    this.cuts = 0;
    this._server = createServer((socket) => this._pass(socket, connect(targetPort, "127.0.0.1")));
  }

  /** From now on each connection ends after about so many bytes, in either direction. */
  cutAfter(bytes) {
    this._cutAfterBytes = bytes;
  }

  cutAll() {
    for (const pair of this._pairs) pair.cut();
  }

  _pass(near, far) {
    let left = this._cutAfterBytes * (0.5 + Math.random());
    const pair = {
      cut: () => {
        if (this._pairs.delete(pair)) this.cuts += 1;
        near.destroy();
        far.destroy();
      },
    };
    this._pairs.add(pair);
    const forward = (from, to) => {
      from.on("data", (chunk) => {
        const part = chunk.subarray(0, Math.max(0, left));
        left -= chunk.length;
        if (part.length > 0 && !to.destroyed) to.write(part);
        if (left <= 0) setImmediate(() => pair.cut()); // part of a frame has gone through
      });
      from.on("error", () => pair.cut());
      from.on("close", () => {
        this._pairs.delete(pair);
        to.destroy();
      });
    };
    forward(near, far);
    forward(far, near);
  }

  async stop() {
    this.cutAll();
    this._server.close();
    await once(this._server, "close");
  }
}
