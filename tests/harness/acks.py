"""What writers were told, held against what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, text

from nexo.config import parse_store_url
from nexo.store import migrate
from nexo.store.check import check


class Ack(NamedTuple):
    """One line of `faults/writer.py`."""

    client_msg_id: str
    server_msg_id: int
    conversation_id: str
    seq: int
    send_at: int
    fresh: bool


def acks_in(lines: Iterable[str]) -> list[Ack]:
    found = []
    for line in lines:
        if line.startswith("ACK "):
            client_msg_id, server_msg_id, conversation_id, seq, send_at, fresh = line.split()[1:]
            found.append(Ack(client_msg_id, int(server_msg_id), conversation_id, int(seq), int(send_at), fresh == "1"))
    return found


def errors_in(lines: Iterable[str]) -> Counter[str]:
    return Counter(line.split()[2] for line in lines if line.startswith("ERR "))


def _stored(connection: Connection) -> list[tuple[str, int, str, int, int]]:
    found = connection.execute(
        text(
            "SELECT m.client_msg_id,m.server_msg_id,c.conversation_id,m.seq,m.send_at FROM messages m "
            "JOIN conversations c ON c.id=m.conv WHERE m.client_msg_id IS NOT NULL"
        )
    )
    return [(row[0], row[1], row[2], row[3], row[4]) for row in found]


async def check_acks(url: str, acks: Iterable[Ack]) -> set[str]:
    """Every ACK tells the truth, nothing is stored twice, the store is sound. The client_msg_ids stored.

    The writers' client_msg_ids are unique over all senders.
    """
    target = parse_store_url(url)
    stored = await migrate.with_connection(target, _stored)
    rows = {row[0]: row for row in stored}
    assert len(rows) == len(stored), "a client_msg_id is stored twice"
    for ack in acks:
        assert rows.get(ack.client_msg_id) == ack[:5], f"{ack} was told, {rows.get(ack.client_msg_id)} is stored"
    report = await check(target)
    assert not report.counts, report.findings[:20]
    return set(rows)
