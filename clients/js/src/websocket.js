// One WebSocket connection: JSON frames in and out, and no events after it was dropped.

/**
 * @typedef {object} SocketEvents
 * @property {() => void} opened
 * @property {(frame: any) => void} frame
 * @property {(code: number) => void} lost
 */

const OPEN = 1;

export class Socket {
  /**
   * @param {string} url
   * @param {typeof WebSocket} WebSocketClass
   * @param {SocketEvents} events
   */
  constructor(url, WebSocketClass, events) {
    this._isDropped = false;
    const socket = new WebSocketClass(url, ["nexo.envelope.v1"]);
    this._socket = socket;
    socket.onopen = () => {
      if (!this._isDropped) events.opened();
    };
    socket.onmessage = (event) => {
      if (this._isDropped) return;
      const frame = parse(event.data);
      if (frame !== null) events.frame(frame);
    };
    socket.onclose = (event) => {
      if (this._isDropped) return;
      this._isDropped = true;
      events.lost(event.code);
    };
    socket.onerror = () => {}; // a close follows
  }

  /** @param {object} frame */
  send(frame) {
    if (!this._isDropped && this._socket.readyState === OPEN) this._socket.send(JSON.stringify(frame));
  }

  /** @param {number} code */
  drop(code) {
    if (this._isDropped) return;
    this._isDropped = true;
    try {
      this._socket.close(code);
    } catch {
      // an implementation that refuses to close before it is open
    }
  }
}

/** @param {unknown} data */
function parse(data) {
  try {
    const frame = JSON.parse(String(data));
    return frame !== null && typeof frame === "object" ? frame : null;
  } catch {
    return null;
  }
}
