"""Expiry: content that is shown until its time, then in no answer, and soon not in the database either."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.api import make_group, open_api, send
from harness.core import expire_now, found_group, look, open_test_core, refused, run, say
from harness.waiting import until
from nexo.assembly.core import Core
from nexo.config import parse_store_url
from nexo.journal.erasing import ROLE, Erasing
from nexo.store.check import check

CHAT = "si_ann:bob"
DAY_MS = 86_400_000


def erasing(core: Core, owner: str = "here", every_s: float = 0.01) -> Erasing:
    return Erasing(core.store.expiry, core.store.journal, owner, every_s)


async def entries(core: Core, *types: str) -> list[Any]:
    journal = core.store.journal
    return (await journal.page(await journal.place_of("begin"), 256, set(types))).entries


async def test_a_message_has_the_time_until_which_it_is_shown_in_every_answer(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob", "for a minute", expires_s=60)
        assert sent["expires_at"] == sent["send_at"] + 60_000
        for path, query in (("/msg/pull", {"begin_seq": 1}), ("/msg/history", {})):
            (message,) = (await api.get("bob", path, conversation_id=CHAT, **query)).data["messages"]
            assert (message["expires_at"], message["status"]) == (sent["expires_at"], 0)
        assert "expires_at" not in await send(api, "ann", "bob", "for ever")
        for wrong in (4, 604_801, 0, -1, "60", 5.5, True):
            refusal = await api.post("ann", "/msg/send", client_msg_id="w", recv_id="bob", content="x", expires_s=wrong)
            assert refusal.error == "bad_expires", wrong
        # another time is another message
        fields = {"client_msg_id": "same", "recv_id": "bob", "content": "x"}
        assert (await api.post("ann", "/msg/send", **fields, expires_s=60)).status == 200
        assert (await api.post("ann", "/msg/send", **fields, expires_s=60)).status == 200
        assert (await api.post("ann", "/msg/send", **fields, expires_s=61)).error == "client_msg_id_reused"
        assert (await api.post("ann", "/msg/send", **fields)).error == "client_msg_id_reused"


async def test_when_its_time_is_over_it_is_blank_at_once_and_erased_soon(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob", "cy"]) as core:
        group_id, name = await found_group(core, "ann", "bob", "cy")
        secret = await say(core, "ann", group_id, "the secret", mentions=["bob"], extra={"k": "secret"})
        reply = await say(core, "cy", group_id, "what?", reply_to=secret.server_msg_id)
        await expire_now(core, secret.server_msg_id)

        async def seen() -> Any:
            conversations = core.conversations
            listed, _, _ = await conversations.entries("bob")
            answers = [
                (await conversations.pull("bob", name)).messages,
                (await conversations.pull_seqs("bob", name, [2, 3])).messages,
                (await conversations.history("bob", name)).messages,
                (await conversations.offline("bob")).messages,
                (await conversations.resend("bob"))[0],
                (await conversations.last_messages("bob", [name]))[0],
                [listed[0].last_message],
                [entry.data for entry in await entries(core, "message.saved", "message.expired")],
                [(await core.store.moderation.read(secret.server_msg_id, "boss")).message],
            ]
            assert "secret" not in str(answers)
            pulled = answers[0]
            assert [(m.seq, m.status, m.content) for m in pulled[1:]] == [(2, 2, '""'), (3, 0, '"what?"')]
            assert (pulled[1].mentions, pulled[1].extra, pulled[2].quote) == ((), None, None)
            return listed[0].unread, listed[0].unread_mentions

        assert await seen() == (2, 1)
        (row,) = await look(core, "SELECT content,status FROM messages WHERE seq=2")
        assert row == ('"the secret"', 0)
        with refused("message_not_found"):
            await core.conversations.recall("ann", secret.server_msg_id)
        late = await say(core, "cy", group_id, "again?", reply_to=secret.server_msg_id)
        assert late.quote is None
        await erasing(core).erase_due()
        (row,) = await look(core, "SELECT content,status,mentions,reply_to,extra FROM messages WHERE seq=2")
        assert row == ('""', 2, None, None, None)
        assert await look(core, "SELECT * FROM message_expiries") == []
        assert "secret" not in str(
            await look(core, "SELECT * FROM messages") + await look(core, "SELECT * FROM journal")
        )
        assert (await core.acknowledging.mark_read("bob", name, seq=reply.seq))[1] == 1
        (entry,) = await entries(core, "message.expired")
        assert (entry.data.seq, entry.data.status, entry.conversation_id) == (2, 2, name)
        with refused("message_not_found"):
            await core.conversations.recall("ann", secret.server_msg_id)
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_a_message_whose_time_is_over_can_be_changed_by_nobody(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob", "the secret", expires_s=60)
        asked = {"server_msg_id": sent["server_msg_id"]}
        await expire_now(api.core, int(sent["server_msg_id"]))
        for is_erased in (False, True):
            if is_erased:
                await api.core.store.expiry.erase_some()
            edited = await api.put("ann", "/msg/edit", **asked, client_msg_id="e1", content="another secret")
            assert edited.error == "not_editable", is_erased
            reacted = await api.post("bob", "/msg/react", **asked, emoji="👍", on=True)
            pinned = await api.post("bob", "/msg/pin", **asked, on=True)
            recalled = await api.post("ann", "/msg/recall", **asked)
            assert {reacted.error, pinned.error, recalled.error} == {"message_not_found"}, is_erased
            to = [{"recv_id": "ann"}]
            forwarded = await api.post(
                "bob", "/msg/forward", server_msg_ids=[*asked.values()], to=to, client_msg_id="f"
            )
            assert forwarded.error == "not_forwardable", is_erased
        (message,) = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1)).data["messages"]
        assert (message["status"], message["content"]) == (2, "")


async def test_a_real_time_passes_without_any_sweeper(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        sent = await say(core, "ann", "bob", "short", expires_s=5)
        assert sent.expires_at is not None
        await run(core, "UPDATE messages SET expires_at=send_at+600000")
        assert (await core.conversations.pull("bob", CHAT)).messages[0].status == 0
        await run(core, "UPDATE messages SET expires_at=send_at+300")

        async def is_blank() -> bool:
            (message,) = (await core.conversations.pull("bob", CHAT)).messages
            return message.status == 2 and message.content == '""'

        await until(is_blank)
        # a retry gets its place, and no content
        again = await core.sending.send_again(
            "ann", client_msg_id=sent.client_msg_id, recv_id="bob", content="short", expires_s=5
        )
        assert (again.message.seq, again.message.content, again.content_changed) == (1, '""', False)


async def test_recalled_originals_are_erased_at_the_time_of_their_message(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        sent = await say(core, "ann", "bob", "the secret", expires_s=60)
        await core.conversations.recall("ann", sent.server_msg_id)
        assert len((await core.store.moderation.read(sent.server_msg_id, "boss")).versions) == 1
        await expire_now(core, sent.server_msg_id)
        assert (await core.store.moderation.read(sent.server_msg_id, "boss")).versions == []
        await erasing(core).erase_due()
        assert await look(core, "SELECT * FROM message_versions") == []
        assert await look(core, "SELECT status FROM messages WHERE seq=1") == [(1,)]
        assert await entries(core, "message.expired") == []
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_a_conversation_sets_the_time_for_later_messages_and_all_members_learn_of_it(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        before = await send(api, "ann", "bob", "before")
        changed = await api.put("bob", "/conversation/update", conversation_id=CHAT, message_ttl_s=60)
        assert changed.data["message_ttl_s"] == 60
        (entry,) = (await api.get("ann", "/conversation/list")).data["conversations"]
        assert (entry["message_ttl_s"], entry["unread"]) == (60, 0)
        event = entry["last_message"]
        assert (event["msg_type"], event["sender_id"]) == (107, "bob")
        assert event["content"] == {"changes": {"message_ttl_s": 60}, "by": "bob"}
        after = await send(api, "ann", "bob", "after")
        assert after["expires_at"] == after["send_at"] + 60_000
        shorter = await send(api, "ann", "bob", "shorter", expires_s=5)
        longer = await send(api, "ann", "bob", "longer", expires_s=3600)
        assert (shorter["expires_at"] - shorter["send_at"], longer["expires_at"] - longer["send_at"]) == (5000, 60_000)
        head = (await api.get("ann", "/conversation/sync")).data["conversations"][0]
        same = await api.put("ann", "/conversation/update", conversation_id=CHAT, message_ttl_s=60)
        assert same.data["head_seq"] == head["head_seq"]
        for off in (0, None):
            await api.put("ann", "/conversation/update", conversation_id=CHAT, message_ttl_s=off)
            assert "expires_at" not in await send(api, "ann", "bob", "kept")
        pulled = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1)).data["messages"]
        assert "expires_at" not in pulled[before["seq"] - 1]
        for wrong in (4, 604_801, "60", -1):
            answer = await api.put("ann", "/conversation/update", conversation_id=CHAT, message_ttl_s=wrong)
            assert answer.error == "bad_ttl"
        group = await make_group(api, "ann", "bob", "cy")
        where = {"conversation_id": group["conversation_id"], "message_ttl_s": 5}
        assert (await api.put("bob", "/conversation/update", **where)).error == "no_permission"
        await api.post("ann", "/group/set_member_role", group_id=group["group_id"], user_id="bob", role="admin")
        assert (await api.put("bob", "/conversation/update", **where)).data["message_ttl_s"] == 5
        await api.post("cy", "/group/quit", group_id=group["group_id"])
        assert (await api.put("cy", "/conversation/update", **where)).error == "member_not_active"
        await api.post("ann", "/group/dismiss", group_id=group["group_id"])
        assert (await api.put("bob", "/conversation/update", **where)).error == "group_not_available"
        await send(api, "cy", "bob", "hi")
        await api.post("bob", "/user/block", user_id="cy")
        refusal = await api.put("cy", "/conversation/update", conversation_id="si_bob:cy", message_ttl_s=5)
        assert refusal.error == "blocked"
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_many_messages_are_erased_in_small_steps_by_one_instance_at_a_time(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexo.store.expiry.STEP", 7)
    monkeypatch.setattr("nexo.journal.erasing.STEP_PAUSE_S", 0.0)
    async with open_test_core(core_url, ["ann", "bob", "cy"]) as core:
        for n in range(20):
            await say(core, "ann", "bob" if n % 2 else "cy", f"secret {n}", expires_s=60)
        kept = await say(core, "ann", "bob", "kept", expires_s=60)
        await run(core, "UPDATE messages SET expires_at=5 WHERE server_msg_id<?", kept.server_msg_id)
        await run(core, "UPDATE message_expiries SET expires_at=5 WHERE server_msg_id<?", kept.server_msg_id)
        # while another instance holds the lease, nothing is done here
        lease = await core.store.journal.take(ROLE, "there", 5.0, from_now=True)
        assert lease is not None
        await erasing(core).erase_due()
        assert len(await look(core, "SELECT 1 FROM message_expiries")) == 21
        await core.store.journal.release(lease)
        one, two = erasing(core, "here"), erasing(core, "there")
        await asyncio.gather(one.erase_due(), two.erase_due())
        await one.erase_due()
        assert await look(core, "SELECT server_msg_id FROM message_expiries") == [(kept.server_msg_id,)]
        assert len(await look(core, "SELECT 1 FROM messages WHERE status=2")) == 20
        assert len(await entries(core, "message.expired")) == 20
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_the_background_task_erases_by_itself(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        task = asyncio.ensure_future(erasing(core).run())
        try:
            sent = await say(core, "ann", "bob", "secret", expires_s=60)
            await expire_now(core, sent.server_msg_id)

            async def is_erased() -> bool:
                return await look(core, "SELECT status FROM messages") == [(2,)]

            await until(is_erased)
        finally:
            task.cancel()


async def test_retention_erases_everything_older_and_leaves_events(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob", "cy"], retention__days=2) as core:
        group_id, name = await found_group(core, "ann", "bob", "cy")
        old = [await say(core, "ann", group_id, f"old {n}") for n in range(3)]
        new = await say(core, "ann", group_id, "new")
        ids = [message.server_msg_id for message in old]
        # as if these had been sent three days ago; the id of one is younger than its row, of another older
        age = 3 * DAY_MS
        await run(core, "UPDATE messages SET send_at=send_at-? WHERE conv=(SELECT MAX(conv) FROM members)", age)
        await run(core, "UPDATE messages SET send_at=send_at+? WHERE server_msg_id=?", age, new.server_msg_id)
        for server_msg_id in (*ids[:2], new.server_msg_id):
            earlier = server_msg_id - (age << 22)
            await run(core, "UPDATE messages SET server_msg_id=? WHERE server_msg_id=?", earlier, server_msg_id)
        shown = (await core.conversations.pull("bob", name)).messages
        assert [(m.status, m.content) for m in shown[1:]] == [(2, '""')] * 3 + [(0, '"new"')]
        assert shown[0].status == 0
        assert (await core.conversations.entries("bob"))[0][0].unread == 4
        await erasing(core).erase_due()
        found = await look(core, "SELECT status FROM messages WHERE seq>1 ORDER BY seq")
        assert found == [(2,), (2,), (0,), (0,)]  # one id is too young: hidden now, erased a day later
        ((at,),) = await look(core, "SELECT expires_at FROM message_expiries")
        ((send_at,),) = await look(core, "SELECT send_at FROM messages WHERE seq=5")
        assert at == send_at + 2 * DAY_MS
        assert len(await entries(core, "message.expired")) == 2
        assert not await core.store.expiry.is_due()


async def test_nothing_is_written_for_messages_without_a_time(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        await say(core, "ann", "bob", "plain")
        assert await look(core, "SELECT expires_at FROM messages") == [(None,)]
        assert await look(core, "SELECT * FROM message_expiries") == []
        assert not await core.store.expiry.is_due()
        await erasing(core).erase_due()
        assert await look(core, "SELECT name FROM journal_consumers WHERE name=?", ROLE) == []


async def test_expiry_against_readers_shows_the_content_before_its_time_or_never(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        for n in range(10):
            await say(core, "ann", "bob", f"secret {n}", expires_s=60)
        await run(core, "UPDATE messages SET expires_at=send_at+250")
        await run(core, "UPDATE message_expiries SET expires_at=(SELECT expires_at FROM messages m "
                  "WHERE m.server_msg_id=message_expiries.server_msg_id)")  # fmt: skip
        task = asyncio.ensure_future(erasing(core).run())
        try:
            blank: set[int] = set()
            while len(blank) < 10:
                for message in (await core.conversations.pull("bob", CHAT)).messages:
                    assert (message.status, message.content) in ((0, f'"secret {message.seq - 1}"'), (2, '""'))
                    assert message.status == 2 or message.seq not in blank, "it came back"
                    if message.status == 2:
                        blank.add(message.seq)
        finally:
            task.cancel()
        (head,) = await core.conversations.heads("bob", [CHAT])
        assert head.unread == 10
