"""The question before a send: allowed, rejected or replaced, in order, bounded, and not asked for retries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook

from harness.api import Api, open_api, send
from harness.receiver import Event, Receiver, receiving
from harness.waiting import loop_turns, until
from nexo.config.tree_hooks import BeforeSendConfig
from nexo.core.commands import Send
from nexo.core.model import Draft, Sent
from nexo.core.webhook_signature import new_secret
from nexo.errors import NexoError
from nexo.hooks.before_send import BeforeSend

PEOPLE = ("ann", "bob", "cid")
SECRET = new_secret()


class Judge(Receiver):
    """Answers questions by content."""

    def __init__(self) -> None:
        super().__init__()
        self.decide = self._judge
        self.asked: list[Any] = []
        self.released = asyncio.Event()  # for questions about what begins with "slow"

    async def _judge(self, events: list[Event]) -> int:
        (question,) = events
        self.asked.append(question["content"])
        text = question["content"] if isinstance(question["content"], str) else ""
        if text.startswith("slow"):
            await self.released.wait()
        answer: dict[str, Any] = {"action": "allow"}
        if "bad" in text:
            answer = {"action": "reject", "reason": "no bad words"}
        if "new" in text:
            answer = {"action": "replace", "content": text.replace("new", "old")}
        if "huge" in text:
            answer = {"action": "replace", "content": "x" * 5000}
        if "odd" in text:
            answer = {"action": "odd"}
        self.body = msgspec.json.encode(answer)
        return 500 if "fail" in text else 200


@asynccontextmanager
async def asking(core_url: str, **more: Any) -> AsyncIterator[tuple[Api, Judge]]:
    judge = Judge()
    async with receiving(judge) as receiver:
        flags = {f"hooks__before_send__{name}": value for name, value in more.pop("gate", {}).items()}
        flags = {"hooks__before_send__url": receiver.url, "hooks__before_send__secret": SECRET, **flags}
        async with open_api(core_url, PEOPLE, **flags, **more) as api:
            yield api, judge


async def test_a_message_is_allowed_rejected_or_replaced(core_url: str) -> None:
    async with asking(core_url) as (api, judge):
        assert "content" not in await send(api, "ann", "bob", "fine")
        refused = await api.post("ann", "/msg/send", client_msg_id="r1", recv_id="bob", content="bad")
        assert (refused.status, refused.error, refused.body["detail"]) == (422, "content_rejected", "no bad words")
        assert (await send(api, "ann", "bob", "new one"))["content"] == "old one"
        pulled = (await api.get("bob", "/msg/pull", conversation_id="si_ann:bob", begin_seq=1)).data["messages"]
        assert [message["content"] for message in pulled] == ["fine", "old one"]
        request = judge.requests[0]
        question = Webhook(SECRET).verify(request.body, request.headers)
        assert question == {
            "type": "message.before_send", "sender_id": "ann", "conversation_id": "si_ann:bob", "recv_id": "bob",
            "client_msg_id": pulled[0]["client_msg_id"], "msg_type": 1, "content": "fine", "mentions": [],
            "reply_to": None, "extra": None,
        }  # fmt: skip


async def test_without_a_secret_the_question_is_not_signed(core_url: str) -> None:
    async with asking(core_url, gate={"secret": ""}) as (api, judge):
        await send(api, "ann", "bob", "fine")
        headers = judge.requests[0].headers
        assert "webhook-id" in headers
        assert "webhook-signature" not in headers


async def test_a_retry_of_a_saved_message_is_answered_without_asking(core_url: str) -> None:
    async with asking(core_url) as (api, judge):
        first = await send(api, "ann", "bob", "new one", client_msg_id="same")
        again = await send(api, "ann", "bob", "new one", client_msg_id="same")
        assert again == first
        assert judge.asked == ["new one"]
        other = await api.post("ann", "/msg/send", client_msg_id="same", recv_id="bob", content="another")
        assert other.error == "client_msg_id_reused"


async def test_a_replaced_content_passes_the_same_checks(core_url: str, tmp_path: Any) -> None:
    words = tmp_path / "words"
    words.write_text("old\n")
    async with asking(core_url, filter__file=str(words)) as (api, _):
        assert (await send(api, "ann", "bob", "new one"))["content"] == "*** one"
        refused = await api.post("ann", "/msg/send", client_msg_id="c", recv_id="bob", content="huge")
        assert refused.error == "content_rejected"
        assert "at most 4096 characters" in refused.body["detail"]


@pytest.mark.parametrize("text", ["fail", "odd", "slow"])
async def test_without_an_answer_a_message_is_sent(core_url: str, text: str) -> None:
    async with asking(core_url, gate={"timeout_ms": 100}) as (api, judge):
        assert (await send(api, "ann", "bob", text))["seq"] == 1
        assert judge.asked == [text]


@pytest.mark.parametrize("text", ["fail", "odd", "slow"])
async def test_without_an_answer_a_message_is_refused_if_so_configured(core_url: str, text: str) -> None:
    async with asking(core_url, gate={"timeout_ms": 100, "fail_open": False}) as (api, _):
        refused = await api.post("ann", "/msg/send", client_msg_id="c", recv_id="bob", content=text)
        assert (refused.status, refused.error) == (503, "server_busy")


async def test_only_the_chosen_types_are_asked_about(core_url: str) -> None:
    async with asking(core_url, gate={"types": "6,3"}) as (api, judge):
        await send(api, "ann", "bob", "bad")
        await send(api, "ann", "bob", {"any": "thing"}, msg_type=6)
        assert judge.asked == [{"any": "thing"}]


class Asked:
    """An origin that notes its outcome."""

    output = None
    address = None

    def __init__(self, log: list[tuple[str, Any]], name: str) -> None:
        self._log = log
        self._name = name

    def decided(self, outcome: Any) -> None:
        self._log.append((self._name, outcome))


def submit(api: Api, log: list[tuple[str, Any]], conn_id: str, target: str, content: str) -> None:
    draft = api.core.sending.draft("ann", Send(client_msg_id=f"{conn_id}-{content}", recv_id=target, content=content))
    api.core.sending.submit(draft, conn_id, Asked(log, content))


async def test_a_later_send_waits_for_the_earlier_answer_and_other_conversations_do_not(core_url: str) -> None:
    async with asking(core_url, gate={"timeout_ms": 10_000}) as (api, judge):
        log: list[tuple[str, Any]] = []
        submit(api, log, "one", "bob", "slow 1")
        submit(api, log, "one", "bob", "quick 2")
        submit(api, log, "one", "bob", "bad 3")
        submit(api, log, "one", "cid", "other")
        await until(lambda: len(log) == 1 and len(judge.asked) == 4)
        judge.released.set()
        await until(lambda: len(log) == 4)
        assert log[0][0] == "other"
        pulled = (await api.get("bob", "/msg/pull", conversation_id="si_ann:bob", begin_seq=1)).data["messages"]
        assert [message["content"] for message in pulled] == ["slow 1", "quick 2"]


async def test_a_send_without_an_answer_takes_its_successors_with_it(core_url: str) -> None:
    async with asking(core_url, gate={"fail_open": False, "timeout_ms": 5000}) as (api, _):
        log: list[tuple[str, Any]] = []
        for text in ("fine 1", "fail 2", "fine 3"):
            submit(api, log, "one", "bob", text)
        await until(lambda: len(log) == 3)
        outcomes = dict(log)
        assert isinstance(outcomes["fine 1"], Sent)
        assert [outcomes[name].name for name in ("fail 2", "fine 3")] == ["server_busy"] * 2


async def test_at_the_limit_sends_are_not_asked_about(core_url: str) -> None:
    async with asking(core_url, gate={"queue_max": 2, "connections": 1, "timeout_ms": 5000}) as (api, judge):
        log: list[tuple[str, Any]] = []
        for number in range(6):
            submit(api, log, f"c{number}", "bob", f"slow {number}")
        await until(lambda: len(log) == 4)
        judge.released.set()
        await until(lambda: len(log) == 6)
        assert len(judge.asked) == 2
        assert all(isinstance(outcome, Sent) for _, outcome in log)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sends=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("aarx")), max_size=40),
    seed=st.integers(0, 1 << 30),
)
async def test_whatever_the_answers_take_each_lane_is_handed_on_in_order(
    sends: list[tuple[int, int, str]], seed: int
) -> None:
    chance = random.Random(seed)
    handed: list[tuple[str, str, str]] = []
    log: list[tuple[str, Any]] = []

    async def is_taken(draft: Draft) -> bool:
        await loop_turns(chance.randrange(6))
        if draft.client_msg_id.endswith("x"):
            raise NexoError("server_busy")
        return True

    def hand_on(draft: Draft, conn_id: str, origin: Any) -> None:
        handed.append((conn_id, draft.conversation_id, draft.client_msg_id))
        origin.decided("handed")

    config = BeforeSendConfig(url="http://127.0.0.1:9/", secret=SECRET, fail_open=False, types=[1])
    gate = BeforeSend(config, is_taken, hand_on, lambda draft, content: None)
    expected = []
    for number, (conn, conversation, kind) in enumerate(sends):
        msg_type = 7 if kind == "r" else 1  # of a type that is not asked about
        draft = Draft("ann", f"{number}{kind}", f"v{conversation}", 1, msg_type, '""', b"")
        origin = Asked(log, draft.client_msg_id)
        expected.append(draft.client_msg_id)
        if gate.takes(draft, f"c{conn}"):
            gate.submit(draft, f"c{conn}", origin)
        else:
            hand_on(draft, f"c{conn}", origin)
        if chance.random() < 0.3:
            await loop_turns(1)
    await until(lambda: len(log) == len(sends))
    assert sorted(name for name, _ in log) == sorted(expected)
    for lane in {(conn, conversation) for conn, conversation, _ in handed}:
        numbers = [int(name[:-1]) for conn, conversation, name in handed if (conn, conversation) == lane]
        assert numbers == sorted(numbers)
    assert not gate._lanes
