"""The generator's HTTP client: whole answers, however they arrive."""

from __future__ import annotations

import asyncio
import contextlib
from time import perf_counter

import pytest

from harness.waiting import until
from nexo.bench.dialects import make_dialect
from nexo.bench.http import BenchHttpConnection, ServerAddress, header, with_body
from nexo.bench.http_sender import HttpSender
from nexo.bench.person import SendTarget, Stage
from nexo.bench.plan import Plan, Scenario, completed
from nexo.bench.track import Track

FIRST = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}'
SECOND = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answers_are_found_in_pieces_of_any_size(size: int) -> None:
    answers: list[tuple[int, bytes, bytes]] = []
    connection = BenchHttpConnection(lambda *answer: answers.append(answer), lambda: None)
    for whole in (FIRST, SECOND, FIRST):  # one at a time, as they are asked for
        for start in range(0, len(whole), size):
            connection.data_received(whole[start : start + size])
    assert [(status, body) for status, _, body in answers] == [(200, b'{"a":1}'), (503, b""), (200, b'{"a":1}')]
    assert header(answers[1][1], b"retry-after") == b"3"
    assert header(answers[0][1], b"retry-after") == b""


def test_a_request_has_its_address_token_and_length() -> None:
    head = ServerAddress("https://chat.example/nexo/").request_head("POST", "/msg/send", "secret")
    request = with_body(head, b"{}").decode()
    assert request.startswith("POST /nexo/msg/send HTTP/1.1\r\nHost: chat.example:443\r\n")
    assert "\r\nAuthorization: Bearer secret\r\n" in request
    assert request.endswith("\r\nContent-Length: 2\r\n\r\n{}")


class Moody:
    """Closes the first connection on which something is asked, and answers on the others."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                self.bodies.append(await reader.readexactly(int(header(head, b"content-length"))))
                if len(self.bodies) == 1:
                    break
                seq = len(self.bodies) - 1
                answer = b'{"err_code":0,"err_msg":"","data":{"server_msg_id":"7","seq":%d}}' % seq
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
        writer.close()


async def test_a_request_without_an_answer_is_sent_again_and_the_loss_is_counted() -> None:
    moody = Moody()
    listener = await asyncio.start_server(moody.serve, "127.0.0.1", 0)
    async with listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        plan = completed(Plan(scenario=Scenario.http_send, urls=[url]))
        stage = Stage(plan, make_dialect("envelope"), [ServerAddress(url)])
        sender = HttpSender(stage, 0, "alice", "token")
        target = SendTarget(Track("si_alice:bob"), "bob", False, 0)
        for _ in range(3):  # the others wait in line
            sender.send(target, perf_counter())
        await until(lambda: not sender.pending)
        sender.leave()
    assert stage.counts.saved == 3
    assert target.track.contiguous == 3
    assert list(stage.counts.lost.values()) == [1]
    assert moody.bodies[0] == moody.bodies[1]
    assert len(set(moody.bodies)) == 3
