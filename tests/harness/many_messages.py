"""Thousands of messages by one connection, as fast as they are saved."""

from __future__ import annotations

import json

from websockets.sync.client import connect

from harness.server_process import ServerProcess

IN_FLIGHT = 200


def write_many(server: ServerProcess, token: str, to: str, count: int, mark: str = "") -> None:
    """`Line 1 of many` to `Line count of many`; the mark tells the messages of several calls apart."""
    with connect(server.ws_address, max_size=None) as socket:
        socket.send(json.dumps({"type": "AUTH", "token": token}))
        while json.loads(socket.recv())["type"] != "RESEND_DONE":
            pass
        for start in range(0, count, IN_FLIGHT):
            numbers = range(start + 1, min(start + IN_FLIGHT, count) + 1)
            for number in numbers:
                body = f"Line {number} of many"
                frame = {"type": "SINGLE_CHAT", "clientMsgId": f"{mark}{to}{number}", "to": to, "body": body}
                socket.send(json.dumps(frame))
            acks = 0
            while acks < len(numbers):
                acks += json.loads(socket.recv()).get("ackType") == "saved"
