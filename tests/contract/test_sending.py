"""Sending (SPEC §4): the order of checks, exactly one row per send, order, and what a failure leaves behind."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from harness.answers import Answers
from harness.commits import Submitter
from harness.core import found_group, look, open_test_core, refused, run, say
from harness.engines import SERVER_ENGINES
from harness.locks import held_conversation
from harness.rows import changed_rows, snapshot
from harness.scripts import intercepted
from harness.statements import recorded
from harness.waiting import PATIENCE_S, loop_turns, time_passes
from nexo.assembly.core import Core
from nexo.core.commands import Send
from nexo.core.content import check_avatar, check_content, encode_extra
from nexo.core.model import Sent
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.store.engine import Conflict, Script, Stmt, StoreError

PEOPLE = ("alice", "bob", "carol", "dave")
on_servers = pytest.mark.parametrize(
    "engine_name", [pytest.param(engine, marks=pytest.mark.servers) for engine in SERVER_ENGINES], indirect=True
)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


async def stored(core: Core) -> list[tuple[Any, ...]]:
    return await look(core, "SELECT conv,seq,sender_id,client_msg_id,content FROM messages ORDER BY conv,seq")


# -- shape ---------------------------------------------------------------------------------------------


async def test_a_send_names_exactly_one_of_receiver_and_group(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        with refused("bad_receiver"):
            await core.sending.send("alice", client_msg_id="1", recv_id="bob", group_id=group_id, content="hi")
        with refused("missing_receiver"):
            await core.sending.send("alice", client_msg_id="1", content="hi")
        with refused("bad_receiver"):
            await core.sending.send("alice", client_msg_id="1", recv_id="no such id!", content="hi")
        with refused("cannot_send_to_self"):
            await core.sending.send("alice", client_msg_id="1", recv_id="alice", content="hi")


async def test_a_client_msg_id_is_1_to_64_printable_ascii_characters_without_outer_spaces(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        with refused("missing_client_msg_id"):
            await say(core, "alice", "bob", client_msg_id="")
        for bad in (" a", "a ", "a\tb", "a\nb", "é", "a" * 65, "\x7f", "a\x00"):
            with refused("bad_client_msg_id"):
                await say(core, "alice", "bob", client_msg_id=bad)
        for good in ("a", "~", "a b", "!" * 64, "%s ? $1 \\ '\""):
            assert (await say(core, "alice", "bob", client_msg_id=good)).client_msg_id == good


async def test_only_the_types_of_clients_can_be_sent(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for msg_type in (-1, 0, 8, 99, *range(100, 110), 110, 1 << 40):
            with refused("bad_msg_type"):
                await say(core, "alice", "bob", msg_type=msg_type)
        assert await stored(core) == []


async def test_every_type_has_its_own_form_of_content(core_url: str) -> None:
    url = "https://example.org/" + "a" * 492
    media = {"url": url, "name": "n" * 255, "size": 1, "width": 0, "height": None, "duration_ms": (1 << 53) - 1}
    wrong: list[tuple[int, Any, str]] = [
        (1, None, "missing_content"),
        (1, "", "missing_content"),
        (1, 7, "bad_content"),
        (1, {"text": "hi"}, "bad_content"),
        (1, "a" * 4097, "body_too_long"),
        (2, None, "missing_content"),
        (2, "https://example.org", "bad_content"),
        (2, {}, "missing_content"),
        (2, {"url": url + "a"}, "bad_content"),
        (2, {"url": ""}, "bad_content"),
        (2, {"url": "https://u", "name": "n" * 256}, "bad_content"),
        (3, {"url": "https://u", "duration_ms": -1}, "bad_content"),
        (4, {"url": "https://u", "duration_ms": 1.5}, "bad_content"),
        (5, {"url": "https://u", "size": True}, "bad_content"),
        (5, {"url": "https://u", "size": 1 << 53}, "bad_content"),
        (5, {"url": "https://u", "colour": "red"}, "bad_content"),
        (6, None, "missing_content"),
        (6, ["a"], "bad_content"),
        (6, {"a": "x" * 16_384}, "body_too_long"),
    ]
    async with open_test_core(core_url, PEOPLE) as core:
        for msg_type, content, error in wrong:
            with refused(error):
                await say(core, "alice", "bob", content, msg_type=msg_type)
        for msg_type, content in ((1, "a" * 4096), (1, "😀" * 4096), (6, {}), (6, {"a": "x" * 16_376})):
            message = await say(core, "alice", "bob", content, msg_type=msg_type)
            (kept,) = (await core.conversations.pull("bob", "si_alice:bob", message.seq)).messages
            assert (kept.msg_type, msgspec.json.decode(kept.content)) == (msg_type, content)
        for msg_type in (2, 3, 4, 5):
            await say(core, "alice", "bob", media, msg_type=msg_type)


async def test_what_some_engine_could_not_keep_is_refused_before_any_sees_it(core_url: str) -> None:
    unstorable: list[Any] = [
        {"a": "\x00"},
        {"\x00": 1},
        {"a": ["\ud800"]},
        {"\udfff": 1},
        {"a": math.nan},
        {"a": [math.inf]},
        {"a": -math.inf},
        {"a": 1 << 64},
        {"a": -(1 << 63) - 1},
        nested(33),
    ]
    async with open_test_core(core_url, PEOPLE) as core:
        for text in ("a\x00b", "\ud83d", "\udc00 tail"):
            with refused("bad_content"):
                await say(core, "alice", "bob", text)
        for value in unstorable:
            with refused("bad_content"):
                await say(core, "alice", "bob", value, msg_type=6)
            with refused("bad_extra"):
                await say(core, "alice", "bob", extra=value)
        with refused("bad_content"):
            await say(core, "alice", "bob", {"url": "https://a\x00"}, msg_type=2)
        with refused("bad_content"):
            await say(core, "alice", "bob", {"url": "https://u", "name": "\ud800"}, msg_type=5)
        with refused("body_too_long"):
            await say(core, "alice", "bob", extra={"a": "x" * 16_384})
        assert await stored(core) == []


async def test_content_and_extra_come_back_as_they_were_sent(core_url: str) -> None:
    texts = ["😀👨‍👩‍👧 𝒳", "é é", "Z͑ͫa̴l", "汉字 漢字 \u3000", "\u202eright to left\u202c", "\x01\x1f\x7f\u2028\ufeff"]
    texts += ["100% ? $1 %s %(a)s {} \\ \\u0000 ' '' \" ; -- /* */", " outer spaces ", "a\r\nb\tc"]
    texts += ["\ufffd\uffff\U0010ffff"]
    values = [{"big": [(1 << 64) - 1, -(1 << 63)], "small": 5e-324, "large": 1.7976931348623157e308, "none": None}]
    values += [nested(32), {"": "", "á": "á", "ключ": ["値", True, False, -0.0, 1.5]}, {"a": "b" * 16_000}]
    async with open_test_core(core_url, PEOPLE) as core:
        sent = [await say(core, "alice", "bob", text, extra={"t": text}) for text in texts]
        sent += [await say(core, "alice", "bob", value, msg_type=6, extra=value) for value in values]
        kept = (await core.conversations.pull("bob", "si_alice:bob")).messages
        assert kept == sent
        wanted = [(text, {"t": text}) for text in texts] + [(value, value) for value in values]
        assert [(msgspec.json.decode(m.content), msgspec.json.decode(m.extra or "")) for m in kept] == wanted


async def test_mentions_are_user_ids_or_all(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for bad in ("bob", [7], ["no such id!"], [["bob"]], ["u"] * 101, {"bob": 1}):
            with refused("bad_mentions"):
                await say(core, "alice", "bob", mentions=bad)
        with refused("no_permission"):
            await say(core, "alice", "bob", mentions=["@all"])
        message = await say(core, "alice", "bob", mentions=["bob", "nobody", "bob", "dave"])
        assert message.mentions == ("bob",)


async def test_a_quote_needs_a_visible_message_of_the_same_conversation(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        here = await say(core, "alice", group_id)
        elsewhere = await say(core, "alice", "bob")
        await core.groups.invite("alice", group_id, ["dave"])
        with refused("missing_reply_to"):
            await say(core, "alice", group_id, msg_type=7)
        for bad in ("", "x", "-1", 0, -1, 1 << 63, "1" * 20, True, 1.5):
            with refused("bad_reply_to"):
                await say(core, "alice", group_id, msg_type=7, reply_to=bad)
        for sender, target in (("alice", 12345), ("alice", elsewhere.server_msg_id), ("dave", here.server_msg_id)):
            with refused("message_not_found"):
                await say(core, sender, group_id, msg_type=7, reply_to=target)
        reply = await say(core, "bob", group_id, msg_type=7, reply_to=str(here.server_msg_id))
        assert reply.quote is not None
        assert (reply.quote.server_msg_id, reply.quote.text) == (here.server_msg_id, "hello")


# -- exactly one row per send --------------------------------------------------------------------------


async def test_a_retry_gets_the_same_answer_and_takes_no_seq(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        fields = {"client_msg_id": "1", "recv_id": "bob", "content": "hi", "extra": {"a": 1}, "mentions": ["bob"]}
        first = await core.sending.send("alice", **fields)
        other = await say(core, "alice", "bob")
        again = await core.sending.send("alice", **fields)
        assert (first.fresh, again.fresh) == (True, False)
        assert again.message == first.message
        assert other.seq == 2
        assert len(await stored(core)) == 2


async def test_concurrent_retries_make_one_row(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core, open_test_core(core_url) as second:
        for round_no in range(5):
            fields = {"client_msg_id": f"r{round_no}", "recv_id": "bob", "content": "hi"}
            sends = [each.sending.send("alice", **fields) for each in (core, second) for _ in range(10)]
            sent = await asyncio.gather(*sends)
            assert len({(one.message.server_msg_id, one.message.seq, one.message.send_at) for one in sent}) == 1
            assert [one.fresh for one in sent].count(True) == 1
        assert [row[1] for row in await stored(core)] == [1, 2, 3, 4, 5]


async def test_a_client_msg_id_with_another_target_or_content_is_refused_and_changes_nothing(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        target = await say(core, "bob", "alice")
        await say(core, "alice", "bob", "hi", client_msg_id="1")
        before = await stored(core)
        for to, content, fields in (
            ("bob", "ho", {}),
            ("carol", "hi", {}),
            ("nobody", "hi", {}),
            (group_id, "hi", {}),
            ("bob", {"a": 1}, {"msg_type": 6}),
            ("bob", "hi", {"mentions": ["bob"]}),
            ("bob", "hi", {"reply_to": target.server_msg_id}),
            ("bob", "hi", {"extra": {}}),
        ):
            with refused("client_msg_id_reused"):
                await say(core, "alice", to, content, client_msg_id="1", **fields)
        assert await stored(core) == before


async def test_of_two_messages_under_one_client_msg_id_sent_at_once_the_first_is_stored(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        answers = Answers(core)
        for text in ("one", "two", "one", "three"):
            answers.submit("alice", "bob", text, client_msg_id="x")
        answers.submit("bob", "alice", "mine", client_msg_id="x")
        outcomes = sorted(str(answer) for _, answer in await answers.all())
        assert outcomes == ["1", "1", "2", "client_msg_id_reused", "client_msg_id_reused"]
        assert [row[4] for row in await stored(core)] == ['"one"', '"mine"']


async def test_client_msg_ids_compare_byte_by_byte(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        names = ["ID", "id", "Id", "a b", "a  b", "ab", "a.b", "A B"]
        sent = [await say(core, "alice", "bob", "same", client_msg_id=name) for name in names]
        assert [message.seq for message in sent] == list(range(1, len(names) + 1))
        assert len({message.server_msg_id for message in sent}) == len(names)


async def test_user_ids_that_differ_in_case_are_different_people(core_url: str) -> None:
    async with open_test_core(core_url, ("Ab", "ab", "AB", "a.b")) as core:
        first = await say(core, "Ab", "ab", "to ab", client_msg_id="1")
        second = await say(core, "ab", "AB", "to AB", client_msg_id="1")
        third = await say(core, "AB", "Ab", "to Ab", client_msg_id="1")
        names = [message.conversation_id for message in (first, second, third)]
        assert names == ["si_Ab:ab", "si_AB:ab", "si_AB:Ab"]
        assert [message.seq for message in (first, second, third)] == [1, 1, 1]
        assert {head.conversation_id for head in await core.conversations.heads("ab")} == {"si_Ab:ab", "si_AB:ab"}
        with refused("user_not_found"):
            await say(core, "Ab", "aB")
        with refused("conversation_not_found"):
            await core.conversations.pull("AB", "si_Ab:ab")


async def test_a_retry_is_answered_from_the_row_whatever_changed_since(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol", "dave")
        single = await say(core, "bob", "alice", client_msg_id="s")
        sent = {user: await say(core, user, group_id, client_msg_id="g") for user in ("bob", "carol", "dave", "alice")}

        async def assert_still_answered() -> None:
            for user, message in sent.items():
                again = await core.sending.send(user, client_msg_id="g", group_id=group_id, content="hello")
                assert (again.message, again.fresh) == (message, False)

        await run(core, "UPDATE members SET blocked=1 WHERE user_id='bob' AND peer_id='alice'")
        with refused("blocked"):
            await say(core, "bob", "alice")
        assert await say(core, "bob", "alice", client_msg_id="s") == single
        await core.groups.leave("bob", group_id)
        await core.groups.remove("alice", group_id, "carol")
        await core.groups.mute("alice", group_id, "dave", -1)
        await assert_still_answered()
        await core.groups.dismiss("alice", group_id)
        await assert_still_answered()
        await core.conversations.delete("alice", name)
        await assert_still_answered()


async def test_a_retry_of_a_recalled_message_gets_its_place_but_not_its_content(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        first = await say(core, "alice", "bob", "secret", client_msg_id="1", extra={"a": "secret"})
        await core.conversations.recall("alice", first.server_msg_id)
        again = await say(core, "alice", "bob", "secret", client_msg_id="1", extra={"a": "secret"})
        assert (again.server_msg_id, again.seq, again.send_at) == (first.server_msg_id, first.seq, first.send_at)
        assert (again.status, again.content, again.extra) == (1, '""', None)
        with refused("client_msg_id_reused"):
            await say(core, "alice", "bob", "other", client_msg_id="1")


async def test_a_refused_send_is_judged_anew_when_it_comes_again(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "bob", "alice")
        await run(core, "UPDATE members SET blocked=1 WHERE user_id='bob'")
        with refused("blocked"):
            await say(core, "bob", "alice", client_msg_id="1")
        await run(core, "UPDATE members SET blocked=0 WHERE user_id='bob'")
        assert (await say(core, "bob", "alice", client_msg_id="1")).seq == 2


# -- permission ----------------------------------------------------------------------------------------


async def test_a_single_chat_needs_two_existing_users_and_an_open_ear(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        with refused("user_not_found"):
            await say(core, "alice", "nobody")
        with refused("user_not_found"):
            await say(core, "ghost", "alice")
        assert await look(core, "SELECT * FROM conversations") == []
        await say(core, "alice", "bob")
        await run(core, "UPDATE members SET blocked=1 WHERE user_id='bob'")
        with refused("blocked"):
            await say(core, "bob", "alice")
        assert (await say(core, "alice", "bob")).seq == 2  # who blocks can still write


async def test_a_group_refuses_for_the_first_reason_that_applies(core_url: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("badword\n")
    async with open_test_core(core_url, PEOPLE, filter__file=str(words), filter__mode="reject") as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        hidden = await say(core, "alice", "bob")
        worst = {"content": "badword", "mentions": ["@all"], "reply_to": hidden.server_msg_id}

        async def reason(sender: str, group: str = group_id, **fields: Any) -> str:
            with pytest.raises(NexoError) as caught:
                await core.sending.send(sender, client_msg_id="worst", group_id=group, **worst | fields)
            return caught.value.name

        assert await reason("alice", "g_" + "0" * 12) == "group_not_found"
        assert await reason("alice", "nonsense") == "group_not_found"
        assert await reason("dave") == "not_group_member"
        await core.groups.mute("alice", group_id, None, -1)
        assert await reason("bob") == "speak_muted"
        await core.groups.leave("bob", group_id)
        assert await reason("bob") == "member_not_active"
        await core.groups.remove("alice", group_id, "carol")
        assert await reason("carol") == "member_not_active"
        await core.groups.mute("alice", group_id, None, 0)
        await core.groups.join("bob", group_id)
        assert await reason("bob") == "no_permission"
        assert await reason("bob", mentions=[]) == "message_not_found"
        assert await reason("bob", mentions=[], reply_to=None) == "content_rejected"
        assert await reason("alice") == "message_not_found"
        await core.groups.dismiss("alice", group_id)
        for user in ("alice", "bob", "carol", "dave"):
            assert await reason(user) == "group_not_available"
        assert await reason("alice", content="") == "missing_content"  # shape before everything
        assert (await look(core, "SELECT count(*) FROM messages WHERE client_msg_id='worst'")) == [(0,)]


async def test_mute_all_spares_the_owner_and_admins_and_ends_by_itself(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await core.groups.set_role("alice", group_id, "bob", "admin")
        await core.groups.mute("bob", group_id, None, 3600)
        for user in ("alice", "bob"):
            await say(core, user, group_id)
        with refused("speak_muted"):
            await say(core, "carol", group_id)
        await run(core, "UPDATE conversations SET mute_until=?", now_ms() - 1)
        await say(core, "carol", group_id)


async def test_a_muted_member_stays_muted_until_the_time_is_over_whatever_their_role(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        for duration in (3600, -1):
            await core.groups.mute("alice", group_id, "bob", duration)
            with refused("speak_muted"):
                await say(core, "bob", group_id)
            await say(core, "carol", group_id)
        await core.groups.set_role("alice", group_id, "bob", "admin")
        with refused("speak_muted"):
            await say(core, "bob", group_id)
        await run(core, "UPDATE members SET muted_until=?", now_ms() - 1)
        await say(core, "bob", group_id)


async def test_only_owner_and_admins_mention_everybody(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await core.groups.set_role("alice", group_id, "bob", "admin")
        for user in ("alice", "bob"):
            assert (await say(core, user, group_id, mentions=["carol", "@all"])).mentions == ("@all",)
        with refused("no_permission"):
            await say(core, "carol", group_id, mentions=["@all"])


# -- the content filter --------------------------------------------------------------------------------


async def test_the_filter_masks_what_is_stored_and_the_answer_tells(core_url: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("badword\n")
    async with open_test_core(core_url, PEOPLE, filter__file=str(words)) as core:
        fields = {"client_msg_id": "1", "recv_id": "bob", "content": "a ＢａｄＷord here"}
        first = await core.sending.send("alice", **fields)
        assert (first.message.content, first.content_changed) == ('"a *** here"', True)
        again = await core.sending.send("alice", **fields)
        assert (again.message, again.content_changed, again.fresh) == (first.message, True, False)
        (kept,) = (await core.conversations.pull("bob", "si_alice:bob")).messages
        assert kept.content == '"a *** here"'
        clean = await core.sending.send("alice", client_msg_id="2", recv_id="bob", content="fine")
        assert not clean.content_changed


async def test_a_retry_is_compared_with_what_the_client_sent_before_filtering(core_url: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("badword\n")
    async with open_test_core(core_url, PEOPLE, filter__file=str(words)) as core:
        await say(core, "alice", "bob", "a badword", client_msg_id="1")
        with refused("client_msg_id_reused"):
            await say(core, "alice", "bob", "a ***", client_msg_id="1")
        with refused("client_msg_id_reused"):
            await say(core, "alice", "bob", "a BADWORD", client_msg_id="1")


async def test_a_retry_after_the_word_list_changed_still_returns_what_was_stored(core_url: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("badword\n")
    fields = {"client_msg_id": "1", "recv_id": "bob", "content": "a badword"}
    async with open_test_core(core_url, PEOPLE, filter__file=str(words)) as core:
        await core.sending.send("alice", **fields)
    for mode in ("off", "reject"):
        async with open_test_core(core_url, filter__file=str(words), filter__mode=mode) as core:
            again = await core.sending.send("alice", **fields)
            assert (again.message.content, again.content_changed, again.fresh) == ('"a ***"', True, False)


async def test_a_rejected_message_is_not_stored_and_takes_no_seq(core_url: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("badword\n")
    async with open_test_core(core_url, PEOPLE, filter__file=str(words), filter__mode="reject") as core:
        await say(core, "alice", "bob")
        with refused("content_rejected"):
            await say(core, "alice", "bob", "a badword", client_msg_id="1")
        assert (await say(core, "alice", "bob", "a word", client_msg_id="1")).seq == 2


async def test_the_filter_can_be_off(core_url: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("badword\n")
    async with open_test_core(core_url, PEOPLE, filter__file=str(words), filter__mode="off") as core:
        sent = await core.sending.send("alice", client_msg_id="1", recv_id="bob", content="a badword")
        assert (sent.message.content, sent.content_changed) == ('"a badword"', False)


# -- order and neighbours ------------------------------------------------------------------------------


async def test_one_bad_message_in_a_batch_never_fails_its_neighbours(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await say(core, "bob", "alice")
        await run(core, "UPDATE members SET blocked=1 WHERE user_id='bob' AND peer_id='alice'")
        await say(core, "alice", "bob", "first", client_msg_id="used")
        answers = Answers(core)
        wanted: dict[str, str | int] = {}

        def submit(name: str, answer: str | int, sender: str, target: str, **fields: Any) -> None:
            wanted[name] = answer
            answers.submit(sender, target, client_msg_id=name, **fields)

        for n in range(20):
            submit(f"good{n}", n + 2, "bob", group_id)
            submit(f"outsider{n}", "not_group_member", "dave", group_id)
            submit(f"blocked{n}", "blocked", "bob", "alice")
            submit(f"unknown{n}", "user_not_found", "bob", f"nobody{n % 3}")
            submit(f"target{n}", "message_not_found", "bob", group_id, reply_to=7)
            submit(f"all{n}", "no_permission", "carol", group_id, mentions=["@all"])
            submit(f"new{n}", n + 1, "carol", "dave")
        submit("used", "client_msg_id_reused", "alice", "bob", content="second")
        assert dict(await answers.all()) == wanted


@contextmanager
def poisoned(core: Core, failure: type[Exception]) -> Iterator[None]:
    """Inside the block the database cannot store a message whose client_msg_id begins with `poison`."""
    sql: Any = core.store.committer._hot_sql

    def store(messages: list[tuple[Any, ...]], *rest: Any) -> Script[None]:
        if any(str(value).startswith("poison") for row in messages for value in row):
            raise failure("cannot be stored")
        yield from type(sql).store(sql, messages, *rest)

    sql.store = store
    try:
        yield
    finally:
        del sql.store


@pytest.mark.parametrize("failure", [StoreError, Conflict, ValueError])
async def test_a_message_that_the_database_refuses_is_found_out_and_its_neighbours_stored_in_order(
    core_url: str, failure: type[Exception]
) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        answers = Answers(core)
        names = [f"{n:02}" for n in range(20)] + ["poison"] + [f"{n:02}" for n in range(20, 40)]
        with poisoned(core, failure):
            for client_msg_id in names:
                answers.submit("alice", group_id, client_msg_id=client_msg_id)
                answers.submit("alice", "bob", client_msg_id=f"s{client_msg_id}")
                answers.submit("bob", group_id, client_msg_id=f"b{client_msg_id}")
            given = dict(await answers.all())
        assert given["poison"] == "internal_error"
        assert [given[f"s{client_msg_id}"] for client_msg_id in names] == list(range(1, 42))
        assert all(isinstance(given[f"b{client_msg_id}"], int) for client_msg_id in names)
        # what alice sent to the group behind it would be there before its retry
        refused_names = [client_msg_id for client_msg_id in names if given[client_msg_id] == "server_busy"]
        assert refused_names == names[21:]
        for client_msg_id in names[20:]:
            await say(core, "alice", group_id, client_msg_id=client_msg_id)
        messages = (await core.conversations.pull("bob", name, 2)).messages
        assert [m.client_msg_id for m in messages if m.sender_id == "alice"] == names
        assert [m.client_msg_id for m in messages if m.sender_id == "bob"] == [f"b{each}" for each in names]


@pytest.mark.parametrize("failure", [StoreError, Conflict, ValueError])
async def test_a_message_that_the_database_refuses_does_not_hold_up_a_new_chat(
    core_url: str, failure: type[Exception]
) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        answers = Answers(core)
        with poisoned(core, failure):
            for client_msg_id in ("a0", "a1", "poison", "a2", "a3"):
                answers.submit("alice", "bob", client_msg_id=client_msg_id)
                answers.submit("bob", "alice", client_msg_id=f"b{client_msg_id}")
                answers.submit("carol", "dave", client_msg_id=f"c{client_msg_id}")
            async with asyncio.timeout(2):  # sooner than the deadline of a send
                given = dict(await answers.all())
        refusals = {"poison": "internal_error", "a2": "server_busy", "a3": "server_busy"}
        assert {each: given[each] for each in given if given[each] in ("internal_error", "server_busy")} == refusals
        assert [given[f"c{each}"] for each in ("a0", "a1", "poison", "a2", "a3")] == [1, 2, 3, 4, 5]
        retries = [(await say(core, "alice", "bob", client_msg_id=each)).seq for each in ("poison", "a2", "a3")]
        assert retries == [8, 9, 10]


async def test_what_must_come_again_is_not_overtaken(core_url: str) -> None:
    """Under a client_msg_id that an earlier draft has, which is then refused, a draft is decided in a later batch."""
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await say(core, "dave", "bob")
        answers = Answers(core)
        answers.submit("dave", group_id, client_msg_id="x")
        answers.submit("dave", "bob", client_msg_id="x")
        answers.submit("dave", "bob", client_msg_id="y")
        given = await answers.all()
        assert given == [("x", "not_group_member"), ("x", 2), ("y", 3)]


async def test_what_one_sender_sends_is_stored_and_answered_in_order(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, store__batch_max=16) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        answers = Answers(core)
        for n in range(120):
            answers.submit("alice", group_id, client_msg_id=f"g{n:03}")
            answers.submit("alice", "bob", client_msg_id=f"s{n:03}")  # a chat that does not exist yet
            answers.submit("bob", group_id, client_msg_id=f"b{n:03}")
            if n % 7 == 0:
                await loop_turns()
        given = await answers.all()
        for prefix, sender in (("g", "alice"), ("s", "alice"), ("b", "bob")):
            expected = [f"{prefix}{n:03}" for n in range(120)]
            assert [client_msg_id for client_msg_id, _ in given if client_msg_id[0] == prefix] == expected
            where = "si_alice:bob" if prefix == "s" else name
            pages = [await core.conversations.pull(sender, where, begin) for begin in (1, 201)]
            messages = [message for page in pages for message in page.messages]
            assert [m.client_msg_id for m in messages if m.client_msg_id and m.client_msg_id[0] == prefix] == expected


async def test_seqs_have_no_holes_and_send_at_always_grows(core_url: str) -> None:
    users = [f"u{n}" for n in range(10)]
    async with open_test_core(core_url, users, group__min_create_members=1) as core, open_test_core(core_url) as second:
        group_id, name = await found_group(core, *users)

        async def talk(user: str, through: Core) -> None:
            for n in range(20):
                if n % 4 == 3:
                    with refused("no_permission" if user != "u0" else "message_not_found"):
                        await say(through, user, group_id, mentions=["@all"], reply_to=5)
                await say(through, user, group_id)

        await asyncio.gather(*(talk(user, (core, second)[n % 2]) for n, user in enumerate(users)))
        found = await look(core, "SELECT seq,send_at,server_msg_id FROM messages ORDER BY seq")
        assert [row[0] for row in found] == list(range(1, 202))
        assert all(a[1] < b[1] for a, b in pairwise(found))
        assert (await core.conversations.heads("u0", [name]))[0].head_seq == 201


async def test_giving_up_waiting_does_not_take_a_send_back(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        sending = asyncio.create_task(say(core, "alice", "bob", client_msg_id="1"))
        await loop_turns()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert (await say(core, "alice", "bob", client_msg_id="2")).seq == 2
        again = await core.sending.send("alice", client_msg_id="1", recv_id="bob", content="hello")
        assert (again.message.seq, again.fresh) == (1, False)


@pytest.mark.parametrize("times", [1, 2])
async def test_an_unexpected_failure_while_a_chat_is_created_is_answered_and_leaves_nothing_behind(
    core_url: str, times: int
) -> None:
    """Once: when all new chats are made together. Twice: also when one of them is made by itself."""
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        left = times

        def fail(script: str, statement: Stmt) -> None:
            nonlocal left
            if script == "create_singles" and left:
                left -= 1
                raise ValueError("a defect")

        answers = Answers(core)
        with intercepted(core, fail):
            for name in ("a", "b"):
                answers.submit("alice", "bob", client_msg_id=name)
                answers.submit("alice", group_id, client_msg_id=f"g{name}")
            given = dict(await answers.all())
        assert (given.pop("ga"), given.pop("gb")) == (2, 3)
        assert set(given.values()) == ({1, 2} if times == 1 else {"internal_error"})
        async with asyncio.timeout(2):
            assert [(await say(core, "alice", "bob", client_msg_id=name)).seq for name in ("a", "b")] == [1, 2]
        assert not core.store.committer._lines.lanes


async def test_an_unexpected_failure_after_a_commit_costs_no_more_than_its_figures(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")

        with monkeypatch.context() as patch:
            patch.setattr(core.store.committer.meter, "batches", None)
            async with asyncio.timeout(2):
                for n in range(1, 4):  # more often than there are batches at a time
                    assert (await say(core, "alice", "bob")).seq == n
                    assert (await say(core, "alice", group_id)).seq == n + 1
        assert (await say(core, "alice", "bob")).seq == 4


async def test_an_answer_that_fails_to_be_taken_harms_nobody(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:

        def refuse_to_listen(outcome: Sent | NexoError) -> None:
            raise RuntimeError("a bug above the store")

        draft = core.sending.draft("alice", Send(client_msg_id="1", recv_id="bob", content="a"))
        core.store.messages.submit(draft, Submitter(refuse_to_listen))
        assert (await say(core, "alice", "bob")).seq == 2


# -- a database that is slow or held -------------------------------------------------------------------


async def test_a_full_queue_refuses_at_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, store__queue_max=3) as core:
        answers = Answers(core)
        for n in range(3):
            answers.submit("alice", "bob", client_msg_id=f"{n}")
        with refused("server_busy") as caught:
            core.store.messages.submit(
                core.sending.draft("alice", Send(client_msg_id="3", recv_id="bob", content="a")), Submitter(print)
            )
        assert caught.value.retry_after_ms
        assert [answer for _, answer in await answers.all()] == [1, 2, 3]
        assert (await say(core, "alice", "bob", client_msg_id="3")).seq == 4


async def test_a_send_that_waits_too_long_is_refused_with_its_successors_and_surely_not_saved(core_url: str) -> None:
    flags = {"send__deadline_ms": 1000, "store__lock_timeout_ms": 1000}
    async with open_test_core(core_url, PEOPLE, **flags) as core:
        await say(core, "alice", "bob")
        answers = Answers(core)
        async with held_conversation(core_url, "si_alice:bob") as release:
            answers.submit("alice", "bob", client_msg_id="A")
            # sent while A waits, and not late itself when A is refused
            asyncio.get_running_loop().call_later(
                0.8, lambda: [answers.submit("alice", "bob", client_msg_id=name) for name in ("B", "C")]
            )
            await answers.first.wait()
            await release()
        assert await answers.all() == [("A", "server_busy"), ("B", "server_busy"), ("C", "server_busy")]
        assert (await core.conversations.pull("bob", "si_alice:bob")).head_seq == 1
        assert [(await say(core, "alice", "bob", client_msg_id=name)).seq for name in "ABC"] == [2, 3, 4]


async def test_sends_keep_their_order_when_the_database_was_held_for_a_while(core_url: str) -> None:
    flags = {"send__deadline_ms": 8000, "store__lock_timeout_ms": 1000}
    async with open_test_core(core_url, PEOPLE, **flags) as core:
        await say(core, "alice", "bob")
        answers = Answers(core)
        async with held_conversation(core_url, "si_alice:bob") as release:
            for n in range(26):
                answers.submit("alice", "bob", client_msg_id=chr(65 + n))
                await time_passes(0.05)  # over more than one lock timeout, so that several attempts meet the lock
            await release()
        assert await answers.all() == [(chr(65 + n), n + 2) for n in range(26)]


@on_servers
async def test_a_held_conversation_delays_no_other(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, send__deadline_ms=60_000) as core:
        await say(core, "alice", "bob")
        await say(core, "alice", "carol")
        answers = Answers(core)
        async with held_conversation(core_url, "si_alice:bob") as release:
            answers.submit("alice", "bob", client_msg_id="held")
            async with asyncio.timeout(PATIENCE_S):  # for ever, if they waited for it
                for n in range(30):
                    assert (await say(core, "alice", "carol")).seq == n + 2
            assert not answers.given
            await release()
        assert await answers.all() == [("held", 2)]


@on_servers
async def test_sending_goes_on_after_the_database_was_out_of_reach(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, send__deadline_ms=600) as core:
        await say(core, "alice", "bob")
        engine: Any = core.store.database.engine

        async def refuse(for_writing: bool) -> None:
            raise ConnectionRefusedError

        engine._driver.acquire = refuse
        for _ in range(2):
            with refused("server_busy"):
                await say(core, "alice", "bob", client_msg_id="1")
        del engine._driver.acquire
        assert (await say(core, "alice", "bob", client_msg_id="1")).seq == 2


@on_servers
async def test_sends_refused_while_the_database_is_away_are_logged_with_their_number(core_url: str) -> None:
    with capture_logs() as logs:
        async with open_test_core(core_url, PEOPLE, send__deadline_ms=300) as core:
            await say(core, "alice", "bob")
            engine: Any = core.store.database.engine

            async def refuse(for_writing: bool) -> None:
                raise ConnectionRefusedError

            engine._driver.acquire = refuse
            for turn in range(2):
                answers = Answers(core)
                for n in range(20):
                    answers.submit("alice", "bob", client_msg_id=f"{turn}-{n}")
                assert {answer for _, answer in await answers.all()} == {"server_busy"}
            del engine._driver.acquire
            await say(core, "alice", "bob")
    lines = [line for line in logs if line["event"] == "sends_refused"]
    assert sum(line["size"] for line in lines) == 40
    assert len(lines) == 2, "one at once, one for all of the seconds after it"
    assert lines[0]["error"]


# -- what a send costs ---------------------------------------------------------------------------------

STATEMENTS_PER_SEND = {
    # find or lock the conversation and the sender; insert, count, step over own, the journal
    "sqlite": {"single": 6, "group": 8, "mention": 9},  # what the last sends left in memory is not looked for
    "mysql": {"single": 6, "group": 6, "mention": 7},
    "postgresql": {"single": 3, "group": 3, "mention": 4},
}


async def test_a_send_costs_a_known_number_of_statements_in_one_transaction(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", "bob", client_msg_id="1")
        costs = {}
        for name, target, fields in (
            ("single", "bob", {}),
            ("group", group_id, {}),
            ("mention", group_id, {"mentions": ["bob"]}),
        ):
            with recorded(core) as recording:
                await say(core, "alice", target, **fields)
            assert recording.transactions == 1
            costs[name] = recording.count
        assert costs == STATEMENTS_PER_SEND[core.store.database.engine.name]


async def test_a_retry_costs_a_second_transaction_once_and_then_a_look_for_its_row(core_url: str) -> None:
    """The unique key finds the first one; more of them are likely for a while, so they are looked for."""
    async with open_test_core(core_url, PEOPLE) as core:
        first = await say(core, "alice", "bob", client_msg_id="1")
        for transactions in (2, 1):
            with recorded(core) as recording:
                again = await say(core, "alice", "bob", client_msg_id="1")
            assert recording.transactions == transactions
            assert again == first
        assert recording.count <= 3


async def test_retries_among_new_sends_are_found_and_the_new_ones_stored(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for i in range(3):
            await say(core, "alice", "bob", client_msg_id=f"old{i}")
        answers = Answers(core)
        for i in range(3):
            answers.submit("alice", "bob", client_msg_id=f"new{i}")
            answers.submit("alice", "bob", client_msg_id=f"old{i}")
        assert await answers.all() == [
            ("new0", 4), ("old0", 1), ("new1", 5), ("old1", 2), ("new2", 6), ("old2", 3),
        ]  # fmt: skip


async def test_a_batch_costs_the_servers_no_more_statements_than_one_send(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        answers = Answers(core)
        with recorded(core) as recording:
            for _ in range(100):
                answers.submit("alice", "bob")
            await answers.all()
        assert recording.transactions == 1
        engine = core.store.database.engine.name
        assert len(recording.statements) <= STATEMENTS_PER_SEND[engine]["single"]


async def test_a_message_changes_as_many_rows_in_a_large_group_as_in_a_small_one(core_url: str) -> None:
    users = [f"u{n:03}" for n in range(300)]
    async with open_test_core(core_url, users) as core:
        small, _ = await found_group(core, *users[:3])
        large, _ = await found_group(core, *users)
        costs = []
        for group_id in (small, large):
            for fields in ({}, {"mentions": ["@all"]}):
                before = await snapshot(core)
                await say(core, "u000", group_id, **fields)
                costs.append(changed_rows(before, await snapshot(core)))
        assert costs[:2] == costs[2:]
        assert costs[0] == {"messages": 1, "conversations": 1, "members": 1, "journal": 1}


async def test_a_provisional_copy_needs_the_right_to_mention_all(core_url: str) -> None:
    """`may_send` decides about copies before saving: none with @all may reach members without the right to it."""
    async with open_test_core(core_url, ("alice", "bob", "carol")) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        drafts = [
            core.sending.draft(sender, Send(client_msg_id="c1", group_id=group_id, content="x", mentions=mentions))
            for sender in ("alice", "bob")
            for mentions in ((), ("@all",), ("carol",))
        ]
        answers = await core.store.messages.may_send(drafts)
        assert [answer.is_allowed for answer in answers] == [True, True, True, True, False, True]


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        ("https://a.example/x", True),
        ("HTTP://a.example", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("/filesystem", False),
        ("//evil.example/x", False),
        ("https://a b", False),
        (" https://a", False),
        ("https://", False),
    ],
)
def test_media_and_avatars_are_http_addresses_or_files_of_the_server(url: str, is_good: bool) -> None:
    for check in (lambda: check_content(2, {"url": url}), lambda: check_avatar(url, 512)):
        if is_good:
            check()
        else:
            with pytest.raises(NexoError) as caught:
                check()
            assert caught.value.name in ("bad_content", "bad_avatar")


def test_a_file_of_the_server_is_an_avatar_by_its_address_and_content_by_its_id_alone() -> None:
    check_avatar("/files/abc", 512)
    for url in ("/files/abc", "/files/abc/small"):
        with refused("bad_url"):
            check_content(2, {"url": url})


@pytest.mark.parametrize("extra", [[], [1], "x", 1, True, 1.5])
def test_extra_is_an_object(extra: object) -> None:
    with refused("bad_extra"):
        encode_extra(extra)
    assert encode_extra({}) == "{}"
    assert encode_extra(None) is None


async def test_what_was_accepted_earlier_is_stored_with_the_time_of_its_acceptance(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:

        async def send(name: str, accepted_at: int) -> int:
            draft = core.sending.draft("alice", Send(name, "bob", content=name))
            draft.accepted_at = accepted_at
            return (await core.store.messages.send(draft)).message.send_at

        before = now_ms()
        assert await send("waited", before - 60_000) == before - 60_000
        assert await send("earlier", before - 90_000) == before - 59_999, "times follow the seq"
        assert await send("direct", 0) >= before - 5_000
        assert await send("ahead", now_ms() + 3_600_000) < now_ms() + 60_000, "the database's clock is the limit"
