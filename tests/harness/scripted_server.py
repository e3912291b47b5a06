"""A server that does to its client whatever a scenario says: `python -m harness.scripted_server`.

It keeps the contract (`scripted_truth`, `scripted_world`) except where a rule (`scripted_faults`) breaks it on
purpose, notes what the client does wrong, and compares what the client shows with the truth (`scripted_check`). A
JSON line tells the port. It ends when its standard input does, so that a killed runner leaves nothing behind. The
control requests and the steps are described in tests/conformance/README.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from websockets.frames import Frame as WsFrame
from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from harness.scripted_api import Api
from harness.scripted_check import compare
from harness.scripted_faults import Frame, Line
from harness.scripted_world import ME, Connection, World
from nexo.errors import NexoError

HEAD_MAX_BYTES = 1 << 16


class Listener:
    def __init__(self) -> None:
        self.world = World()
        self._api = Api(self.world)
        self.tasks: set[asyncio.Task[None]] = set()

    def answer_control(self, path: str, query: Frame, body: Any) -> Any:
        match path:
            case "/control/load":
                return self.world.load(body)
            case "/control/step":
                self.world.steps.run(body)
                return {}
            case "/control/check":
                return {"differences": compare(self.world, body["view"], body["want"])}
            case "/truth":
                user_id = query.get("user_id", ME)
                return {
                    "conversations": [
                        self.world.truth.list_entry(c, user_id)
                        | {"messages": [self.world.truth.plain(message, user_id) for message in c.visible(user_id)]}
                        for c in self.world.truth.mine(user_id)
                    ],
                    "violations": self.world.violations,
                    "counts": dict(self.world.counts),
                }
        raise NexoError("not_found", path)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self.serve(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _read_head(reader):
                lines = head.decode("latin-1").split("\r\n")
                method, target, _ = lines[0].split(" ", 2)
                headers = {
                    n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:] if line)
                }
                is_control = target.startswith(("/control/", "/truth"))
                if self.world.is_down and not is_control:
                    writer.transport.abort()
                    return
                if headers.get("upgrade", "").lower() == "websocket":
                    await self._serve_socket(head, reader, writer)
                    return
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if not await self._serve_http(method, target, headers, body, writer):
                    return
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _serve_http(
        self, method: str, target: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection can be used for more."""
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        data = json.loads(body) if body else None
        if url.path.startswith(("/control/", "/truth")):
            _answer(writer, self._outcome(lambda: self.answer_control(url.path, query, data)))
            return True
        self.world.counts[f"{method} {url.path}"] += 1
        rule = self.world.rules.apply("http", {"path": url.path} | query)
        if rule is not None and rule.do == "cut":
            writer.transport.abort()
            return False
        if rule is not None and rule.do == "delay":
            await asyncio.sleep(rule.options["ms"] / 1000)
        if rule is not None and rule.do == "refuse":
            refusal = NexoError(rule.options["reason"], retry_after_ms=rule.options.get("retryAfterMs"))
            _answer(writer, self._outcome(lambda: _raise(refusal)))
            return True
        token = headers.get("authorization", "").removeprefix("Bearer ")
        outcome = self._outcome(lambda: self._api.answer(method, url.path, query, data, token))
        if rule is not None and rule.do == "cut_after":
            writer.transport.abort()
            return False
        _answer(writer, outcome)
        return True

    @staticmethod
    def _outcome(work: Callable[[], Any]) -> tuple[int, Frame]:
        try:
            return 200, {"err_code": 0, "err_msg": "", "data": work()}
        except NexoError as error:
            body = {"err_code": error.number, "err_msg": error.name, "detail": error.detail, "data": None}
            hint = {} if error.retry_after_ms is None else {"retry_after_ms": error.retry_after_ms}
            return error.row.http_status, body | hint

    async def _serve_socket(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = ServerProtocol(subprotocols=[Subprotocol("nexo.envelope.v1")], max_size=1 << 20)
        protocol.receive_data(head)
        connection = Connection(self.world, Line(writer, protocol))
        self.world.counts["connections"] += 1
        self.world.connections.add(connection)
        try:
            while True:
                self._handle(connection, protocol)
                connection.line.flush()
                if protocol.close_expected() or not (data := await reader.read(1 << 16)):
                    break
                await self.world.thawed.wait()
                protocol.receive_data(data)
        finally:
            self.world.connections.discard(connection)

    def _handle(self, connection: Connection, protocol: ServerProtocol) -> None:
        for event in protocol.events_received():
            if isinstance(event, Request):
                protocol.send_response(protocol.accept(event))
                connection.line.flush()
            elif isinstance(event, WsFrame) and event.opcode is Opcode.TEXT and not connection.line.is_cut:
                self.world.receive(connection, json.loads(bytes(event.data)))


def _raise(error: NexoError) -> None:
    raise error


def _answer(writer: asyncio.StreamWriter, outcome: tuple[int, Frame]) -> None:
    status, body = outcome
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        "Access-Control-Allow-Origin: *\r\n\r\n"
    )
    writer.write(head.encode() + data)


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    with contextlib.suppress(asyncio.IncompleteReadError):
        return await reader.readuntil(b"\r\n\r\n")
    return b""


async def run() -> None:
    listener = Listener()
    server = await asyncio.start_server(listener.accept, "127.0.0.1", 0, limit=HEAD_MAX_BYTES)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch_input() -> None:
        while sys.stdin.buffer.read(1 << 10):
            pass
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch_input, daemon=True).start()
    await ended.wait()
    server.close()
    for task in list(listener.tasks):
        task.cancel()
    await asyncio.gather(*listener.tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(run())
