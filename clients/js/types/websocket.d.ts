export class Socket {
    /**
     * @param {string} url
     * @param {typeof WebSocket} WebSocketClass
     * @param {SocketEvents} events
     */
    constructor(url: string, WebSocketClass: typeof WebSocket, events: SocketEvents);
    _isDropped: boolean;
    _socket: WebSocket;
    /** @param {object} frame */
    send(frame: object): void;
    /** @param {number} code */
    drop(code: number): void;
}
export type SocketEvents = {
    opened: () => void;
    frame: (frame: any) => void;
    lost: (code: number) => void;
};
