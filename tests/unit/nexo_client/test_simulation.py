"""The engine against the scripted server's truth, under a clock of its own and with seeded faults: whatever was lost,
cut, held or refused, in the end the client shows what is true."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from harness.scripted_api import Api
from harness.scripted_check import compare
from harness.scripted_world import Connection, World
from nexo_client import Message
from nexo_client.core.conversation_state import ConversationState
from nexo_client.core.engine import Engine
from nexo_client.core.messages import entry_from_api, message_from_api
from nexo_client.core.options import Options
from nexo_client.core.outbox import OutboxItem
from nexo_client.events import Received

ME = "alice"
GROUP = "sg_g_team00000000"
CHATS = ("si_alice:bob", "si_alice:carol", GROUP)
GIVEN = {
    "given": {
        "groups": {"g_team00000000": {"by": "bob", "members": ["alice", "carol"]}},
        "messages": [{"in": "si_alice:bob", "from": "bob", "text": "old", "count": 12}],
        "delivered": {"si_alice:bob": 7},
        "read": {"si_alice:bob": 3},
    }
}
OPTIONS = Options(window_size=15, ack_timeout_ms=2000, backoff_min_ms=50, backoff_max_ms=400)


class SimulatedLine:
    """What the server writes waits here until it arrives."""

    def __init__(self) -> None:
        self.frames: deque[dict[str, Any]] = deque()
        self.is_cut = False
        self.closed: tuple[int, str] | None = None

    def send(self, frame: dict[str, Any]) -> bool:
        if self.is_cut or self.closed:
            return False
        self.frames.append(frame)
        return True

    def send_half(self, frame: dict[str, Any]) -> None:
        self.is_cut = True

    def close(self, code: int, reason: str) -> None:
        self.closed = self.closed or (code, reason)

    def cut(self) -> None:
        self.is_cut = True


class Simulation:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 1000.0
        self.world = World()
        self.world.load(GIVEN)
        self.api = Api(self.world)
        self.token = self.world.new_tokens(ME)["access_token"]
        self.engine = Engine(OPTIONS, ME, self.rng)
        self.connection: Connection | None = None
        self.told: list[tuple[str, int]] = []
        self.sent: dict[str, OutboxItem] = {}
        self.said = 0
        self.is_calm = False

    # -- the outside world ---------------------------------------------------------------------------------

    @property
    def line(self) -> Any:
        assert self.connection is not None
        return self.connection.line

    def pump(self) -> None:
        """Whatever the engine has left, until it has nothing more."""
        engine = self.engine
        while engine.frames or engine.writes or engine.actions or engine.events:
            writes, engine.writes = engine.writes, []
            for write in writes:
                if write.value is not None:
                    engine.stored(write.key.rpartition("/")[2], self.now)
            frames, engine.frames = engine.frames, []
            for frame in frames:
                if self.connection is not None and not self.line.is_cut:
                    self.world.receive(self.connection, frame)
            actions, engine.actions = engine.actions, []
            for action in actions:
                getattr(self, f"do_{action}")()
            events, engine.events = engine.events, []
            self.told += [(e.conversation_id, e.message.place) for e in events if isinstance(e, Received)]

    def do_open(self) -> None:
        if self.world.is_down or (not self.is_calm and self.rng.random() < 0.2):
            self.engine.lost(self.now)
            return
        self.connection = Connection(self.world, SimulatedLine())  # type: ignore[arg-type]
        self.world.connections.add(self.connection)
        self.engine.opened(self.now, self.token, "device")

    def do_drop(self) -> None:
        if self.connection is not None:
            self.line.cut()
        self.end_connection()

    def do_list(self) -> None:
        data = self.api.answer("GET", "/conversation/list", {}, None, self.token)
        for shape in data["conversations"]:
            self.engine.inbox.apply_list_row(entry_from_api(shape), self.now)

    def end_connection(self) -> None:
        if self.connection is not None:
            closed = self.line.closed or (1006, "")
            self.world.connections.discard(self.connection)
            self.connection = None
            self.engine.lost(self.now, *closed)

    def arrive(self, count: int) -> None:
        """Some of what the server wrote comes in; then, if the line broke, its end."""
        while count and self.connection is not None and self.line.frames:
            self.engine.receive(self.line.frames.popleft(), self.now)
            self.pump()
            count -= 1
        if self.connection is not None and (self.line.is_cut or self.line.closed) and not self.line.frames:
            self.end_connection()
        self.pump()

    def pass_time(self, seconds: float) -> None:
        """The clock goes on; the engine is called whenever it wants to be."""
        end = self.now + seconds
        calls = 0
        while (due := self.engine.deadline(self.now)) is not None and due <= end:
            calls += 1
            assert calls < 500, "the engine wants to be called again and again"
            self.now = max(self.now, due)
            self.engine.tick(self.now)
            self.pump()
            self.arrive(3)
        self.now = end

    # -- what happens --------------------------------------------------------------------------------------

    def step(self) -> None:
        doings = (
            (6, self.others_say),
            (5, self.i_send),
            (2, self.i_read),
            (2, self.i_page),
            (1, self.somebody_recalls),
            (1, self.i_read_elsewhere),
            (1, self.others_read),
            (2, self.a_rule),
            (1, self.break_line),
            (1, self.go_down_or_up),
            (1, self.resync),
            (1, self.leave_or_join),
            (1, self.provisional),
            (1, lambda: self.world.steps.run({"release": {"order": self.rng.choice(("as held", "reverse"))}})),
        )
        (doing,) = self.rng.choices([doing for _, doing in doings], [weight for weight, _ in doings])
        doing()
        self.pump()
        self.arrive(self.rng.randrange(6))
        self.pass_time(self.rng.choice((0.0, 0.01, 0.05, 0.3, 1.0)))

    def others_say(self) -> None:
        self.said += 1
        chat = self.rng.choice(CHATS)
        sender = self.rng.choice(("bob", "carol")) if chat == GROUP else chat[3:].replace("alice", "").strip(":")
        if self.rng.random() < 0.1 and ME in self.world.truth.conversations.get(chat, self.group).active:
            sender = ME  # from another device
        mentions = {"mentions": [ME]} if self.rng.random() < 0.2 and sender != ME else {}
        self.world.steps.run({"say": {"in": chat, "from": sender, "text": f"said {self.said}"} | mentions})

    @property
    def group(self) -> Any:
        return self.world.truth.of(GROUP)

    def i_send(self) -> None:
        label = f"mine {len(self.sent)}"
        chat = self.rng.choice(CHATS)
        target = {"groupId": chat[3:]} if chat == GROUP else {"to": chat[3:].replace("alice", "").strip(":")}
        self.sent[label] = self.engine.send(chat, target | {"body": label}, int(self.now * 1000))

    def i_read(self) -> None:
        conversation = self.engine.conversation(self.rng.choice(CHATS))
        seq = self.rng.choice((None, self.rng.randint(0, conversation.synced_seq + 3)))
        self.engine.mark_read(conversation.conversation_id, seq, self.now)

    def i_page(self) -> None:
        conversation = self.engine.conversation(self.rng.choice(CHATS))
        if not conversation.is_known:
            return
        match self.rng.randrange(3):
            case 0:
                page = self.page("/msg/history", conversation, before_seq=conversation.first_seq)
                conversation.add_earlier(conversation.first_seq, page["messages"], page["has_more"])
            case 1 if conversation.window.has_later:
                page = self.page("/msg/pull", conversation, begin_seq=conversation.last_seq + 1)
                conversation.add_later(conversation.last_seq, page["messages"], page["next_seq"], page["has_more"])
            case _:
                page = self.page("/msg/history", conversation)
                conversation.set_window(page["messages"], page["has_more"], page["head_seq"])

    def page(self, path: str, conversation: ConversationState, **asked: int) -> Any:
        query = {"conversation_id": conversation.conversation_id, "limit": self.rng.choice((3, 8))} | asked
        data = self.api.answer("GET", path, query, None, self.token)
        return data | {"messages": [message_from_api(shape) for shape in data["messages"]]}

    def somebody_recalls(self) -> None:
        there = [m for c in self.world.truth.conversations.values() for m in c.messages if not m.is_event]
        message = self.rng.choice([m for m in there if not m.status] or [None])
        if message is not None and self.world.truth.of(message.conversation_id).members[ME].is_active:
            self.world.push(self.world.truth.recall(message.server_msg_id, message.sender_id))

    def i_read_elsewhere(self) -> None:
        chat = self.world.truth.conversations.get(self.rng.choice(CHATS))
        if chat is not None and chat.head_seq and chat.members[ME].is_active:
            seq = self.rng.randint(chat.members[ME].spans[-1][0] or 1, chat.head_seq)
            self.world.steps.run({"read_elsewhere": {"in": chat.conversation_id, "seq": seq}})

    def others_read(self) -> None:
        chat = self.rng.choice(CHATS[:2])
        peer = chat[3:].replace("alice", "").strip(":")
        if chat in self.world.truth.conversations:
            self.world.steps.run({"ack": {"in": chat, "by": peer, "kind": self.rng.choice(("read", "delivered"))}})

    def a_rule(self) -> None:
        out = self.rng.choice(("SINGLE_CHAT", "GROUP_CHAT", "GROUP_EVENT", "MESSAGE_REVOKED", "PULL_OK", "ACK", "SYNC"))
        do = self.rng.choice(("drop", "duplicate", "hold", "cut", "cut_after"))
        if out in ("ACK", "SYNC") and do in ("drop", "hold"):
            do = "cut"  # on a connection that lives, answers come and in order
        rules: list[dict[str, Any]] = [
            {"out": {"type": out}, "do": do, "times": self.rng.choice((1, 1, 3))},
            {
                "in": {"type": ["SINGLE_CHAT", "GROUP_CHAT"]},
                "do": "refuse",
                "reason": "server_busy",
                "retryAfterMs": 100,
            },
            {
                "in": {"type": self.rng.choice(("PULL", "ACK", "SINGLE_CHAT"))},
                "do": self.rng.choice(("cut", "cut_after")),
            },
        ]
        self.world.rules.add(self.rng.choice(rules))

    def break_line(self) -> None:
        if self.connection is not None:
            self.line.cut()
            for _ in range(self.rng.randrange(3)):  # what was on its way is lost
                if self.line.frames:
                    self.line.frames.pop()

    def go_down_or_up(self) -> None:
        self.world.is_down = not self.world.is_down
        if self.world.is_down:
            self.break_line()

    def resync(self) -> None:
        self.world.steps.run({"resync": {"afterMs": self.rng.choice((0, 200))}})

    def leave_or_join(self) -> None:
        """Leaving while something of ours is on its way would only make it fail."""
        if self.group.members[ME].is_active:
            if not any(outgoing.conversation_id == GROUP for outgoing in self.engine.outbox):
                self.world.steps.run({"leave": {"in": GROUP, "user": ME, "by": "bob"}})
        else:
            self.world.steps.run({"join": {"in": GROUP, "user": ME}})

    def provisional(self) -> None:
        if self.world.provisional:
            name = next(iter(self.world.provisional))
            step = self.rng.choice(("finalize", "withdraw"))
            self.world.steps.run({step: {"name": name, "push": self.rng.random() < 0.7}})
        else:
            about = {"in": CHATS[0], "by": "bob", "text": f"perhaps {self.said}", "name": "p"}
            self.world.steps.run({"provisional": about})

    # -- the end -------------------------------------------------------------------------------------------

    def calm_down(self) -> None:
        """Nothing breaks any more; the server says once that pushes may have been lost."""
        self.is_calm = True
        self.world.rules.clear()
        self.world.is_down = False
        for name in list(self.world.provisional):
            self.world.steps.run({"withdraw": {"name": name}})
        self.world.steps.run({"release": {}})
        if not self.group.members[ME].is_active:
            self.world.steps.run({"join": {"in": GROUP, "user": ME}})
        for _ in range(3):
            self.pass_time(2.0)
            self.arrive(10_000)
        self.world.steps.run({"resync": {}})
        for _ in range(40):
            self.arrive(10_000)
            self.pass_time(0.5)

    def view(self) -> dict[str, Any]:
        return {
            "state": self.engine.connection.state,
            "reason": self.engine.connection.reason,
            "conversations": {
                name: _shown(conversation)
                for name, conversation in self.engine.conversations.items()
                if conversation.is_listed
            },
            "sent": {label: _sent(outgoing) for label, outgoing in self.sent.items()},
            "pending": [outgoing.client_msg_id for outgoing in self.engine.outbox],
            "events": self.told,
            "restarted": True,  # what was missed of an earlier membership is history: not told, so not compared
        }


def _sent(outgoing: OutboxItem) -> dict[str, Any]:
    names = ("client_msg_id", "state", "reason", "seq")
    return {name: getattr(outgoing, name) for name in names}


def _shown(conversation: ConversationState) -> dict[str, Any]:
    names = ("head_seq", "min_seq", "read_seq", "synced_seq", "unread", "unread_mentions")
    last = conversation.last_message
    return {name: getattr(conversation, name) for name in names} | {
        "last_seq": None if last is None else last.seq,
        "has_later": conversation.window.has_later,
        "messages": [_message(m) for m in conversation.messages],
    }


def _message(message: Message) -> dict[str, Any]:
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return fields | {"quote": None}


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_the_client_ends_with_the_truth(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.engine.start(simulation.now)
    simulation.pump()
    for _ in range(simulation.rng.randint(20, 150)):
        simulation.step()
    simulation.calm_down()
    assert compare(simulation.world, simulation.view(), {"truth": True, "state": "online"}) == []
    by_chat: dict[str, list[int]] = {}
    for name, seq in simulation.told:
        by_chat.setdefault(name, []).append(seq)
    for seqs in by_chat.values():
        assert seqs == sorted(set(seqs)), "told twice, or in the wrong order"
