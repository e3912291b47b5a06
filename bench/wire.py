"""What a codec costs per frame: `.venv/bin/python bench/wire.py` prints microseconds for each dialect.

Decoding is from the bytes of a text message to a typed command, encoding from an event to the bytes; a push is
encoded once, whatever the number of its receivers. Each figure is the best of several runs of a fixed time, on
one core and in one process: compare them with each other, not with other machines'.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from nexo.core import events
from nexo.core.model import Message, MsgType, Page
from nexo.wire.dialect import BadFrame, Dialect
from nexo.wire.registry import DIALECTS

RUNS = 7
RUN_S = 0.1

TEXT = "A message of ordinary length, as people write them: eighty characters or so."
SINGLE, GROUP = "si_alice:bob", "sg_g_j1ScjXESgdfj"
MESSAGE = Message(
    380465970784763904, "m-0123456789", SINGLE, 4711, "alice", MsgType.TEXT, json.dumps(TEXT), 1794777356151
)
IN_GROUP = Message(
    380465970784763905, "m-0123456790", GROUP, 4711, "alice", MsgType.TEXT, json.dumps(TEXT), 1794777356151
)

EVENTS: dict[str, tuple[events.Event, bool]] = {  # and whether it answers a request
    "saved": (events.Saved(MESSAGE), True),
    "message to one": (events.Pushed(MESSAGE), False),
    "message to a group": (events.Pushed(IN_GROUP), False),
    "read receipt": (events.Receipt("read", SINGLE, MESSAGE.server_msg_id, 4711, "bob"), False),
    "page of 50": (events.Pulled(SINGLE, Page([MESSAGE] * 50, 4711, 4712, False)), True),
    "heads of 50": (events.HeadsChanged([(SINGLE, 4711)] * 50), False),
}


def requests_of(dialect: str) -> dict[str, Any]:
    """The same requests in each dialect."""
    sent = {"client_msg_id": "m-0123456789", "content": TEXT}
    match dialect:
        case "nexo.envelope.v1":
            return {
                "send": {"type": "SINGLE_CHAT", "clientMsgId": "m-0123456789", "to": "bob", "body": TEXT},
                "delivered": {"type": "ACK", "ackType": "delivered", "conversationId": SINGLE, "msgSeq": 4711},
                "pull": {"type": "PULL", "conversationId": SINGLE, "beginSeq": 4700},
                "something unknown": {"type": "DANCE"},
            }
        case "nexo.request.v1":
            head = {"msg_incr": "17", "operation_id": "o17", "send_id": "alice"}
            return {
                "send": {"req_identifier": 1003, **head, "data": {**sent, "recv_id": "bob"}},
                "delivered": {"req_identifier": 1008, **head, "data": {"conversation_id": SINGLE, "seq": 4711}},
                "pull": {"req_identifier": 1005, **head, "data": {"conversation_id": SINGLE, "begin_seq": 4700}},
                "something unknown": {"req_identifier": 9999, **head},
            }
        case _:
            return {
                "send": {
                    "cmd": "chat.send_message",
                    "request_id": "17",
                    "data": {**sent, "chat_type": 1, "to_id": "bob"},
                },
                "delivered": {"cmd": "chat.ack", "request_id": "17", "data": {"msg_id": "380465970784763904"}},
                "pull": {"cmd": "chat.get_history", "request_id": "17", "data": {"chat_type": 1, "chat_id": "bob"}},
                "something unknown": {"cmd": "chat.dance", "request_id": "17"},
            }


def microseconds(work: Callable[[], object]) -> float:
    """Of one call, in the best run."""
    count = 1
    while True:
        began = time.process_time()
        for _ in range(count):
            work()
        took_s = time.process_time() - began
        if took_s > RUN_S / 10:
            break
        count *= 4
    count = max(1, int(count * RUN_S / took_s))
    best_s = took_s
    for _ in range(RUNS):
        began = time.process_time()
        for _ in range(count):
            work()
        best_s = min(best_s, (time.process_time() - began) / count)
    return best_s * 1e6


def measure(codec: Dialect, requests: dict[str, Any]) -> dict[str, float]:
    found = {}
    frames = {name: json.dumps(frame, separators=(",", ":")).encode() for name, frame in requests.items()}
    for name, frame in frames.items():

        def decode(frame: bytes = frame) -> None:
            with contextlib.suppress(BadFrame):  # refusing costs too
                codec.decode(frame, "alice")

        found[f"decode {name}"] = microseconds(decode)
    _, ref = codec.decode(frames["send"], "alice")
    for name, (event, answers) in EVENTS.items():
        shown = ref if answers else None
        found[f"encode {name}"] = microseconds(lambda event=event, shown=shown: codec.encode(event, shown))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    table: dict[str, dict[str, float]] = {}
    for name, dialect in DIALECTS.items():
        table[name] = measure(dialect.for_connection(None), requests_of(name))
    in_base64 = DIALECTS["nexo.request.v1"].for_connection(None)
    packed = requests_of("nexo.request.v1")
    for frame in packed.values():
        frame["data"] = base64.b64encode(json.dumps(frame.get("data", {})).encode()).decode()
    table["…request.v1, base64"] = measure(in_base64, packed)
    if as_json:
        json.dump(table, sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    titles = list(table)
    sys.stdout.write(f"{'µs per frame':28}" + "".join(f"{title:>22}" for title in titles) + "\n")
    for row in table[titles[0]]:
        sys.stdout.write(f"{row:28}" + "".join(f"{table[title][row]:>22.2f}" for title in titles) + "\n")


if __name__ == "__main__":
    main()
