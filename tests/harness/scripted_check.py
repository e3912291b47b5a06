"""Whether what a client shows is what a scenario wants, and what is true. One comparison for all SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from harness.scripted_faults import Frame
from harness.scripted_truth import FIRST_EVENT, QUIET, RECALLED, Conversation, Message, Truth

ME = "alice"
MEANT = (RECALLED, *QUIET)
DONE = ("saved", "delivered", "read")
COMPARED = (
    "server_msg_id",
    "client_msg_id",
    "conversation_id",
    "seq",
    "sender_id",
    "msg_type",
    "content",
    "reply_to",
    "status",
    "send_at",
)


class Server(Protocol):
    """What is looked at."""

    truth: Truth
    violations: list[str]
    counts: Any
    provisional: Any
    first_bases: dict[str, int]


def compare(server: Server, view: Frame, want: Frame) -> list[str]:
    """All differences; empty when everything is as wanted."""
    found = list(_compare_wanted(server, view, want))
    if want.get("truth"):
        found += _compare_truth(server, view)
    return found + [f"violation: {text}" for text in server.violations]


# -- what the scenario wants -----------------------------------------------------------------------------------


def _compare_wanted(server: Server, view: Frame, want: Frame) -> Iterator[str]:
    for name, wanted in want.items():
        match name:
            case "truth":
                pass
            case "conversations":
                for conversation_id, fields in wanted.items():
                    shown = view["conversations"].get(conversation_id)
                    if shown is None:
                        yield f"{conversation_id} is not there"
                    else:
                        yield from _compare_fields(conversation_id, _with_texts(shown), fields)
            case "sent":
                for label, fields in wanted.items():
                    yield from _compare_fields(label, view["sent"].get(label, {}), fields)
            case "counts":
                for kind, limits in wanted.items():
                    yield from _compare_count(kind, server.counts[kind], limits)
            case _:
                yield from _compare_fields("client", view, {name: wanted})


def _with_texts(shown: Frame) -> Frame:
    """`texts`: what one reads on the screen; `provisional`: the copies that are not final."""
    texts = [message["content"] for message in shown["messages"] if message["msg_type"] < FIRST_EVENT]
    provisional = [message["content"] for message in shown["messages"] if message.get("provisional")]
    return shown | {"texts": texts, "provisional": provisional}


def _compare_fields(where: str, shown: Frame, fields: Frame) -> Iterator[str]:
    for name, wanted in fields.items():
        if isinstance(wanted, list) and name == "state":  # any of these
            if shown.get(name) not in wanted:
                yield f"{where}: {name} is {shown.get(name)!r}, wanted one of {wanted}"
        elif shown.get(name) != wanted:
            yield f"{where}: {name} is {shown.get(name)!r}, wanted {wanted!r}"


def _compare_count(kind: str, count: int, limits: int | Frame) -> Iterator[str]:
    low, high = (
        (limits, limits) if isinstance(limits, int) else (limits.get("at_least", 0), limits.get("at_most", count))
    )
    if not low <= count <= high:
        yield f"{count} times {kind}, wanted {limits}"


# -- what is true ------------------------------------------------------------------------------------------------


def _compare_truth(server: Server, view: Frame) -> Iterator[str]:
    truth = server.truth
    if view["state"] != "online":
        yield f"the client is {view['state']} ({view.get('reason')})"
    mine = {c.conversation_id: c for c in truth.mine(ME) if not c.members[ME].settings.get("hidden")}
    for name, conversation in mine.items():
        shown = view["conversations"].get(name)
        if shown is None:
            yield f"{name} is not in the list"
        else:
            yield from (f"{name}: {text}" for text in _compare_conversation(server, conversation, shown))
            if not view.get("restarted"):
                yield from (f"{name}: {text}" for text in _compare_events(server, conversation, view["events"]))
    for name, shown in view["conversations"].items():
        if name not in mine and (shown["head_seq"] or shown["messages"]):
            yield f"{name} is in the list and does not exist"
    yield from _compare_sent(truth, view)


def _compare_conversation(server: Server, conversation: Conversation, shown: Frame) -> Iterator[str]:
    truth = server.truth
    entry = truth.list_entry(conversation, ME)
    for name in ("head_seq", "min_seq", "read_seq", "unread", "unread_mentions"):
        if shown.get(name) != entry[name]:
            yield f"{name} is {shown.get(name)}, in truth {entry[name]}"
    if shown["synced_seq"] != entry["head_seq"]:
        yield f"synced up to {shown['synced_seq']} of {entry['head_seq']}"
    settings = conversation.members[ME].settings
    for name in ("pinned", "archived", "marked_unread", "draft"):
        if (shown.get(name) or None) != (settings.get(name) or None):
            yield f"{name} is {shown.get(name)}, in truth {settings.get(name)}"
    last = conversation.last(ME)
    if shown.get("last_seq") != (None if last is None else last.seq) and (last is None or last.msg_type != RECALLED):
        yield f"the last message is {shown.get('last_seq')}, in truth {last}"
    tail = [m for m in conversation.visible(ME) if m.seq > entry["delivered_seq"] and m.sender_id != ME]
    if tail:
        yield f"delivered up to {entry['delivered_seq']} of {entry['head_seq']}"
    yield from _compare_messages(server, conversation, shown)


def _compare_messages(server: Server, conversation: Conversation, shown: Frame) -> Iterator[str]:
    final = [message for message in shown["messages"] if not message.get("provisional")]
    there = [message["server_msg_id"] for message in shown["messages"] if message.get("provisional")]
    wanted = [
        frame["serverMsgId"]
        for _, where, frame in server.provisional.values()
        if where.conversation_id == conversation.conversation_id
    ]
    if there != wanted:
        yield f"provisional copies {there}, in truth {wanted}"
    if not final:
        return
    first, last = final[0]["seq"], final[-1]["seq"]
    expected = [message for message in conversation.visible(ME) if first <= message.seq <= last]
    if [message["seq"] for message in final] != [message.seq for message in expected]:
        yield f"shows the seqs {[m['seq'] for m in final]}, in truth {[m.seq for m in expected]}"
        return
    if not shown.get("has_later") and last != conversation.visible(ME)[-1].seq:
        yield f"the last message shown is {last}, the head {conversation.visible_head(ME)}"
    for message, true in zip(final, expected, strict=True):
        yield from _compare_message(server.truth, message, true)


def _compare_message(truth: Truth, shown: Frame, true: Message) -> Iterator[str]:
    plain = truth.plain(true, ME)
    for name in COMPARED:
        if name in ("server_msg_id", "sender_id", "content") and true.msg_type in MEANT:
            continue  # pushed as what it means, without the id of its own
        if shown.get(name) != plain.get(name):
            yield f"seq {true.seq}: {name} is {shown.get(name)!r}, in truth {plain.get(name)!r}"
    for name in ("edited_at", "expires_at", "reactions"):
        if (shown.get(name) or None) != (plain.get(name) or None):
            yield f"seq {true.seq}: {name} is {shown.get(name)!r}, in truth {plain.get(name)!r}"
    if (shown.get("quote") or None) != plain.get("quote"):
        yield f"seq {true.seq}: quote is {shown.get('quote')!r}, in truth {plain.get('quote')!r}"


def _compare_events(server: Server, conversation: Conversation, events: list[list[Any]]) -> Iterator[str]:
    """Messages of others were told once, in order, all of them from where this client came in."""
    told = [seq for name, seq in events if name == conversation.conversation_id]
    base = server.first_bases.get(conversation.conversation_id, 0)
    due = [m.seq for m in conversation.visible(ME) if m.seq > base and m.sender_id != ME and not m.is_event]
    # recalled before it came: a client may tell of it or not
    member = conversation.members[ME]
    recalled = {m.seq for m in conversation.messages if m.status or not member.shows(m)}
    if [seq for seq in told if seq not in recalled] != [seq for seq in due if seq not in recalled]:
        yield f"told of the messages {told}, in truth {due}"
    if told != sorted(set(told)):
        yield f"told of messages doubled or out of order: {told}"


def _compare_sent(truth: Truth, view: Frame) -> Iterator[str]:
    places: dict[str, list[int]] = {}
    labels = {}
    for label, shown in view["sent"].items():
        labels[shown["client_msg_id"]] = label
        stored = truth.sent_before(ME, shown["client_msg_id"])
        if shown["state"] in DONE:
            if stored is None:
                yield f"{label} is {shown['state']} and was never stored"
            elif shown.get("seq") != stored.seq:
                yield f"{label} has seq {shown.get('seq')}, in truth {stored.seq}"
            else:
                places.setdefault(stored.conversation_id, []).append(stored.seq)
                yield from _compare_state(truth, label, shown["state"], stored)
        elif shown["state"] == "failed":
            if stored is not None:
                yield f"{label} failed ({shown.get('reason')}) and was stored"
        else:
            yield f"{label} is still {shown['state']}"
    for name, seqs in places.items():
        if seqs != sorted(seqs):
            yield f"{name}: sent in one order, stored in another: {seqs}"
    if view["pending"] and all(shown["state"] != "failed" for shown in view["sent"].values()):
        yield f"{len(view['pending'])} messages in the outbox"


def _compare_state(truth: Truth, label: str, state: str, stored: Message) -> Iterator[str]:
    conversation = truth.of(stored.conversation_id)
    if conversation.is_group:
        return  # told as far as the server tells
    peer = next(member for user, member in conversation.members.items() if user != ME)
    true = "read" if peer.read_seq >= stored.seq else "delivered" if peer.delivered_seq >= stored.seq else "saved"
    if state != true:
        yield f"{label} is {state}, in truth {true}"
