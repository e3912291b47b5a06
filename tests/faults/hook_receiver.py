"""A receiver of webhooks as a process: `python hook_receiver.py PORT` (0: any).

It says `PORT n`, then `GOT conversation_id seq server_msg_id` for every message of a request before it answers 200. It
hears `ANSWER status` (others than 200 take nothing), `STALL` (requests are not answered) and `TAKE`.
"""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec
import uvloop

STATE = {"status": 200}
OPEN = asyncio.Event()


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            size = next(int(line[16:]) for line in head.split("\r\n") if line.startswith("content-length: "))
            body = await reader.readexactly(size)
            await OPEN.wait()
            status = STATE["status"]
            if status == 200:
                lines = [
                    f"GOT {one['conversation_id']} {one['data']['seq']} {one['data']['server_msg_id']}\n"
                    for one in msgspec.json.decode(body)["events"]
                ]
                os.write(1, "".join(lines).encode())  # one write: all of it or nothing, if this is killed
            writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def hear() -> None:
    for line in os.read(0, 4096).decode().split("\n"):
        word, _, rest = line.partition(" ")
        if word == "ANSWER":
            STATE["status"] = int(rest)
        elif word == "STALL":
            OPEN.clear()
        elif word == "TAKE":
            OPEN.set()


async def main(port: int) -> None:
    OPEN.set()
    server = await asyncio.start_server(handle, "127.0.0.1", port)
    asyncio.get_running_loop().add_reader(0, hear)
    os.write(1, f"PORT {server.sockets[0].getsockname()[1]}\n".encode())
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
