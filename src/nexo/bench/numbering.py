"""Client message ids that contain the sender and the number of a message, and look random to an index.

Sixteen digits depend on run, sender and number and are spread evenly; the last twelve are the number of the sender and
the number of the message. So every id of a run can be computed instead of kept, and a message that was never sent is
detected.
"""

from __future__ import annotations

_PERSON_AT, _NUMBER_AT = 16, 21
LENGTH = 28


def client_msg_id_of(seed: int, person: int, number: int) -> str:
    # the hash of a tuple of integers is the same in every process
    return f"{hash((seed, person, number)) & 0xFFFFFFFFFFFFFFFF:016x}{person:05x}{number:07x}"


def number_of(client_msg_id: str) -> int:
    return int(client_msg_id[_NUMBER_AT:], 16)


def owner_of(seed: int, client_msg_id: str | None) -> tuple[int, int] | None:
    """Person and number, or None when no person of this run made it."""
    if client_msg_id is None or len(client_msg_id) != LENGTH:
        return None
    try:
        person, number = int(client_msg_id[_PERSON_AT:_NUMBER_AT], 16), int(client_msg_id[_NUMBER_AT:], 16)
    except ValueError:
        return None
    return (person, number) if client_msg_id == client_msg_id_of(seed, person, number) else None
