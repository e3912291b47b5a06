"""The generator's HTTP client: whole answers, however they arrive."""

from __future__ import annotations

import pytest

from nexo.bench.http import Address, HttpConnection, header, with_body

FIRST = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}'
SECOND = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answers_are_found_in_pieces_of_any_size(size: int) -> None:
    answers: list[tuple[int, bytes, bytes]] = []
    connection = HttpConnection(lambda *answer: answers.append(answer), lambda: None)
    for whole in (FIRST, SECOND, FIRST):  # one at a time, as they are asked for
        for start in range(0, len(whole), size):
            connection.data_received(whole[start : start + size])
    assert [(status, body) for status, _, body in answers] == [(200, b'{"a":1}'), (503, b""), (200, b'{"a":1}')]
    assert header(answers[1][1], b"retry-after") == b"3"
    assert header(answers[0][1], b"retry-after") == b""


def test_a_request_has_its_address_token_and_length() -> None:
    head = Address("https://chat.example/nexo/").request_head("POST", "/msg/send", "secret")
    request = with_body(head, b"{}").decode()
    assert request.startswith("POST /nexo/msg/send HTTP/1.1\r\nHost: chat.example:443\r\n")
    assert "\r\nAuthorization: Bearer secret\r\n" in request
    assert request.endswith("\r\nContent-Length: 2\r\n\r\n{}")
