"""Messages by number, and versions of lists, on every engine."""

from __future__ import annotations

from harness.core import open_test_core, say
from nexo.ids import single_conversation_id
from nexo.store.openim.sql_openim import SqlOpenim


async def test_messages_are_numbered_without_events(core_url: str) -> None:
    async with open_test_core(core_url, ("ann", "ben")) as core:
        store = SqlOpenim(core.store.database, core.config, 0)
        chat = single_conversation_id("ann", "ben")
        sent = [await say(core, "ann", "ben", f"text {number}") for number in range(5)]
        await core.conversations.recall("ann", sent[1].server_msg_id)
        await say(core, "ben", "ann", "last")
        (head,) = await store.heads("ben")
        assert (head.head, head.first, head.unread, head.head_seq) == (6, 1, 5, 7)
        assert [one.number for one in (await store.pull("ben", chat, 1, 6, 3)).messages] == [4, 5, 6]
        page = await store.pull_list("ben", chat, [1, 2, 6, 99])
        assert [(one.number, one.message.seq) for one in page.messages] == [(1, 1), (2, 2), (6, 7)]
        assert (await store.places("ben", chat, [6])) == {6: (7, page.messages[-1].message.server_msg_id)}
        assert [event.msg_type for event in await store.pull_events("ben", chat, 1, 7)] == [100]
        assert await store.numbers_between(chat, "ann", 1, 7, 10) == [5, 4, 3, 2]
        assert await store.number_at(chat, 6) == 5
        await core.conversations.delete_messages("ben", [sent[0].server_msg_id])
        assert (await store.pull_list("ben", chat, [1, 2])).gone == [1]


async def test_a_list_answers_with_what_has_changed(core_url: str) -> None:
    async with open_test_core(core_url, ("ann",)) as core:
        store = SqlOpenim(core.store.database, core.config, 0)
        first = await store.follow("ann", "friends", {"ben": "1", "cid": "1"}, 0, "")
        assert first.full
        same = await store.follow("ann", "friends", {"ben": "1", "cid": "1"}, first.version, first.version_id)
        assert same == first._replace(full=False)
        now = {"ben": "2", "dan": "1"}
        after = await store.follow("ann", "friends", now, first.version, first.version_id)
        assert (after.inserted, after.updated, after.deleted) == (["dan"], ["ben"], ["cid"])
        assert (await store.follow("ann", "friends", now, first.version, "another")).full


async def test_a_repeated_send_has_the_number_of_the_first(core_url: str) -> None:
    async with open_test_core(core_url, ("ann", "ben")) as core:
        await say(core, "ann", "ben", "before")
        first = await say(core, "ann", "ben", "again", client_msg_id="the-same")
        await core.conversations.recall("ann", first.server_msg_id)
        await say(core, "ben", "ann", "after")
        repeated = await say(core, "ann", "ben", "again", client_msg_id="the-same")
        assert (repeated.server_msg_id, repeated.number) == (first.server_msg_id, 2)
