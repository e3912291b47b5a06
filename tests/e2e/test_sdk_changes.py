"""What release 0.2 has brought, by the Python SDK with a real server: every call once, and what other devices show."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.proxy import Moment, Proxy, proxy_to
from harness.server_process import ServerProcess
from harness.waiting import until
from nexo_client import ClientError, Conversation, NexoClient
from nexo_client.types import Draft, Message

PASSWORD = "correct horse battery"


@asynccontextmanager
async def people(url: str, *names: str, **options: Any) -> AsyncIterator[list[NexoClient]]:
    """Clients of newly registered users, connected."""
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for name in names:
            client = await stack.enter_async_context(NexoClient(url, **options))
            user_id = f"{name}.{secrets.token_hex(4)}"
            await client.register(user_id, PASSWORD, nickname=name)
            await client.login(user_id, PASSWORD)
            await client.connect()
            found.append(client)
        yield found


@asynccontextmanager
async def second_device(client: NexoClient, url: str) -> AsyncIterator[NexoClient]:
    async with NexoClient(url, device_id="second") as device:
        await device.login(client.user_id or "", PASSWORD)
        await device.connect()
        yield device


async def said(conversation: Conversation, text: str, **options: Any) -> str:
    sent = await conversation.send(text, **options).when_saved()
    assert sent.server_msg_id is not None
    return sent.server_msg_id


def find(conversation: Conversation, server_msg_id: str) -> Message | None:
    return next((one for one in conversation.messages if one.server_msg_id == server_msg_id), None)


def texts(conversation: Conversation) -> list[Any]:
    return [message.content for message in conversation.messages if not message.is_event]


def shown(message: Message) -> dict[str, Any]:
    names = ("seq", "content", "mentions", "status", "edited_at", "reactions", "forwarded_from", "expires_at", "quote")
    return {name: getattr(message, name) for name in names}


async def assert_as_fetched(client: NexoClient, conversation: Conversation) -> None:
    """A view that was changed in place is what a client sees that comes now, and so are the counts."""
    async with NexoClient(client._http.url) as fresh:
        await fresh.login(client.user_id or "", PASSWORD)
        await fresh.connect()
        other = fresh.conversation(conversation.id)
        await other.load_latest(200)
        await until(lambda: conversation.synced_seq == other.synced_seq)
        messages = [shown(message) for message in other.messages if not message.is_event]
        assert [shown(message) for message in conversation.messages if not message.is_event] == messages
        assert (conversation.unread, conversation.unread_mentions) == (other.unread, other.unread_mentions)


async def test_edits_reactions_and_pins_change_the_view_of_all(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben), second_device(ben, server.address) as device:
        mine, theirs, elsewhere = (
            ann.chat_with(ben.user_id or ""),
            ben.chat_with(ann.user_id or ""),
            device.chat_with(ann.user_id or ""),
        )
        changes = ben.events("changed", "pinned")
        target = await said(mine, "Helo")
        await until(lambda: theirs.synced_seq == 1)
        reply = await said(theirs, "what?", reply_to=target)
        edited = await mine.edit(target, "Hello", client_msg_id="edit-1")
        assert (edited.server_msg_id, edited.seq) == (target, 3)
        assert await mine.edit(target, "Hello", client_msg_id="edit-1") == edited
        assert texts(mine)[0] == "Hello"  # before its event
        event = await anext(changes)
        assert (event.name, event.change, event.message.content, event.conversation) == (
            "changed",
            "edited",
            "Hello",
            theirs,
        )
        for conversation in (mine, theirs, elsewhere):
            await until(lambda c=conversation: texts(c) == ["Hello", "what?"])
            quoting = find(conversation, reply)
            assert quoting is not None
            assert quoting.quote is not None
            assert quoting.quote.text == "Hello"
        message = find(theirs, target)
        assert message is not None
        assert message.edited_at == edited.edited_at

        reactions = await theirs.react(message, "👍")
        assert [(one.emoji, one.count, one.mine) for one in reactions] == [("👍", 1, True)]
        for conversation, is_mine in ((mine, False), (theirs, True), (elsewhere, True)):
            await until(
                lambda c=conversation, m=is_mine: (
                    [(one.count, one.mine) for one in find(c, target).reactions] == [(1, m)]
                )
            )
        who = await mine.reactions(target)
        assert [(one.emoji, one.user_id) for one in who.reactions] == [("👍", ben.user_id)]
        await theirs.react(message, "👍", False)
        await until(lambda: find(mine, target).reactions == ())

        pinned = await mine.pin(target)
        while (event := await anext(changes)).name != "pinned":
            assert event.change == "reactions"
        assert (event.server_msg_id, event.seq, event.on, event.by) == (target, pinned.seq, True, ann.user_id)
        assert [one.content for one in await theirs.pins()] == ["Hello"]
        await mine.pin(target, False)
        assert await theirs.pins() == []

        assert mine.unread == 1  # the reply alone: changes never count
        assert theirs.last_message is not None
        assert theirs.last_message.content == "what?"
        for client, conversation in ((ann, mine), (ben, theirs), (device, elsewhere)):
            await assert_as_fetched(client, conversation)
        with pytest.raises(ClientError, match="not_message_sender"):
            await theirs.edit(target, "mine now")


async def test_a_mention_that_an_edit_adds_counts_once(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.groups.create("Team", [ben.user_id or "", cid.user_id or ""], group_type=3)
        mine, theirs = ann.group(group.group_id), ben.group(group.group_id)
        target = await said(mine, "look")
        await until(lambda: theirs.unread == 1)
        await mine.edit(target, "look @ben", mentions=[ben.user_id or ""])
        await until(lambda: texts(theirs) == ["look @ben"])
        assert (theirs.unread, theirs.unread_mentions) == (1, 1)
        await assert_as_fetched(ben, theirs)
        theirs.mark_read()
        await until(lambda: (theirs.unread, theirs.unread_mentions) == (0, 0))


async def test_changes_while_a_device_was_away(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben):
        mine, theirs = ann.chat_with(ben.user_id or ""), ben.chat_with(ann.user_id or "")
        ids = [await said(mine, text) for text in ("one", "two", "three", "four")]
        await until(lambda: theirs.synced_seq == 4)
        async with second_device(ben, server.address) as device:
            elsewhere = device.chat_with(ann.user_id or "")
            await elsewhere.load_latest()
            await device.close()
            await mine.edit(ids[0], "ONE")
            await theirs.react(ids[1], "🎉")
            await theirs.delete_for_me([ids[2]])
            await until(lambda: find(theirs, ids[1]).reactions != () and theirs.synced_seq == 6)
            await device.connect()
            await until(lambda: texts(elsewhere) == ["ONE", "two", "four"])
            message = find(elsewhere, ids[1])
            assert message is not None
            assert [(one.emoji, one.mine) for one in message.reactions] == [("🎉", True)]
            await until(lambda: elsewhere.unread == 3)
            await assert_as_fetched(device, elsewhere)


async def test_an_edit_is_tried_until_the_server_has_answered(server: ServerProcess) -> None:
    async with proxy_to(server.address) as proxy, people(server.address, "ben") as (ben,):
        address = f"http://127.0.0.1:{urlsplit(proxy.url).port}"
        async with people(address, "ann", backoff_min_ms=20, backoff_max_ms=100) as (ann,):
            mine, theirs = ann.chat_with(ben.user_id or ""), ben.chat_with(ann.user_id or "")
            target = await said(mine, "helo")
            lost = proxy.cut_at("PUT /msg/edit", Moment.AFTER, times=2)  # done, and the answer is lost
            edits = [asyncio.create_task(mine.edit(target, text)) for text in ("hello", "hello!")]
            await lost.wait()
            proxy.refuse()
            proxy.cut()
            await until(lambda: ann.state != "online")
            assert not all(edit.done() for edit in edits)
            proxy.flow()
            first, second = await asyncio.gather(*edits)
            assert first.seq < second.seq
            await until(lambda: texts(theirs) == texts(mine) == ["hello!"])
            await until(lambda: mine.synced_seq == theirs.synced_seq == 3)  # each edit was done once
            waiting = asyncio.create_task(_edit_while_away(proxy, mine, target))
            await until(lambda: ann.state != "online")
            await ann.close()
            with pytest.raises(ClientError, match="closed"):
                await waiting
            proxy.flow()


async def _edit_while_away(proxy: Proxy, conversation: Conversation, target: str) -> None:
    proxy.refuse()
    proxy.cut()
    await conversation.edit(target, "too late")


async def test_deleting_and_clearing_reach_all_devices_and_nobody_else(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben), second_device(ben, server.address) as device:
        mine, theirs, elsewhere = (
            ann.chat_with(ben.user_id or ""),
            ben.chat_with(ann.user_id or ""),
            device.chat_with(ann.user_id or ""),
        )
        ids = [await said(mine, text) for text in ("one", "two", "three")]
        await until(lambda: theirs.synced_seq == elsewhere.synced_seq == 3)
        deletions = device.events("deleted")
        await theirs.delete_for_me([ids[2]])
        assert (texts(theirs), theirs.unread) == (["one", "two"], 2)
        assert theirs.last_message is not None
        assert theirs.last_message.content == "two"
        event = await anext(deletions)
        assert (event.server_msg_ids, event.up_to_seq, event.conversation) == ((ids[2],), None, elsewhere)
        assert (texts(elsewhere), elsewhere.unread) == (["one", "two"], 2)
        await assert_as_fetched(device, elsewhere)
        await theirs.clear()
        assert (texts(theirs), theirs.unread) == ([], 0)
        event = await anext(deletions)
        assert event.up_to_seq == 3
        assert (texts(elsewhere), elsewhere.unread) == ([], 0)
        await said(mine, "four")
        await until(lambda: texts(elsewhere) == ["four"] and elsewhere.unread == 1)
        assert texts(mine) == ["one", "two", "three", "four"]


async def test_expiring_messages_go_blank_at_their_time(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben):
        mine, theirs = ann.chat_with(ben.user_id or ""), ben.chat_with(ann.user_id or "")
        changes = ben.events("changed")
        sent = mine.send("secret", expires_s=5, extra={"a": 1})
        assert sent.expires_s == 5
        target = (await sent.when_saved()).server_msg_id or ""
        await until(lambda: find(theirs, target) is not None)
        own = find(mine, target)
        assert own is not None
        assert own.expires_at is not None
        assert own.expires_at - own.send_at == 5000
        event = await anext(changes)
        assert (event.change, event.message.status, event.message.content) == ("expired", 2, "")
        await until(lambda: find(mine, target).status == 2 and find(mine, target).extra is None)
        assert theirs.unread == 1
        await assert_as_fetched(ben, theirs)


async def test_settings_follow_the_user_over_devices(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben), second_device(ben, server.address) as device:
        mine, theirs, elsewhere = (
            ann.chat_with(ben.user_id or ""),
            ben.chat_with(ann.user_id or ""),
            device.chat_with(ann.user_id or ""),
        )
        first = await said(mine, "one")
        await until(lambda: theirs.synced_seq == elsewhere.synced_seq == 1)
        settings = device.events("settings")
        draft = Draft("I would", first)
        await theirs.update(pinned=True, archived=True, marked_unread=True, draft=draft, extra={"colour": "red"})
        for conversation in (theirs, elsewhere):
            await until(lambda c=conversation: c.pinned)
            assert (conversation.archived, conversation.marked_unread) == (True, True)
            assert (conversation.draft, conversation.extra) == (draft, {"colour": "red"})
        assert (await anext(settings)).conversation is elsewhere
        elsewhere.mark_read()
        await until(lambda: not theirs.marked_unread)
        await theirs.update(draft=None, extra=None, silent_until=4_000_000_000_000, recv_msg_opt=2)
        await until(lambda: elsewhere.silent_until == 4_000_000_000_000)
        assert (elsewhere.draft, elsewhere.extra, elsewhere.recv_msg_opt) == (None, None, 2)
        await said(mine, "two")
        await until(lambda: elsewhere.synced_seq == 2)
        assert elsewhere.archived  # muted: it stays
        await theirs.update(silent_until=0, recv_msg_opt=0)
        await until(lambda: elsewhere.recv_msg_opt == 0)
        await said(mine, "three")
        await until(lambda: not elsewhere.archived and not theirs.archived)
        await theirs.update(message_ttl_s=3600)
        await said(mine, "four")
        await until(lambda: texts(elsewhere)[-1:] == ["four"])
        assert elsewhere.messages[-1].expires_at is not None
        await theirs.update(hidden=True)
        await until(lambda: elsewhere not in device.conversations)
        assert theirs not in ben.conversations
        await mine.pin(first)
        await until(lambda: elsewhere.synced_seq == mine.synced_seq)
        assert elsewhere not in device.conversations  # a pin does not bring it back
        await said(mine, "five")
        await until(lambda: elsewhere in device.conversations and theirs in ben.conversations)


async def test_forwarding_searching_media_and_places(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben", "cid") as (ann, ben, cid):
        mine, other = ann.chat_with(ben.user_id or ""), ann.chat_with(cid.user_id or "")
        word = f"w{secrets.token_hex(6)}"
        ids = [await said(mine, f"{text} {word}") for text in ("first", "second")]
        await said(mine, "see https://nexo.example/")
        group = await ann.groups.create("Team", [ben.user_id or "", cid.user_id or ""])
        sent = await ann.forward(ids, [other, ann.group(group.group_id)])
        assert [(one.conversation_id, len(one.server_msg_ids), one.error) for one in sent] == [
            (other.id, 2, None),
            (f"sg_{group.group_id}", 2, None),
        ]
        theirs = cid.chat_with(ann.user_id or "")
        await until(lambda: texts(theirs) == [f"first {word}", f"second {word}"])
        source = theirs.messages[0].forwarded_from
        assert source is not None
        assert source.sender_id == ann.user_id
        (merged,) = await ann.forward(ids, [other.id], merge=True, title="Two", client_msg_id="merge-1")
        assert (await ann.forward(ids, [other.id], merge=True, title="Two", client_msg_id="merge-1")) == [merged]
        await until(lambda: theirs.synced_seq == 3)
        assert (theirs.messages[-1].msg_type, theirs.messages[-1].content["title"]) == (8, "Two")

        async def found() -> bool:
            return len((await ann.search(word, conversation_id=mine.id)).results) == 2

        await until(found)
        page = await ann.search(word, conversation_id=mine.id, sender_id=ann.user_id, msg_type=1, limit=1)
        (hit,) = page.results
        assert hit.message.server_msg_id == ids[1]
        start, end = hit.ranges[0]
        assert (hit.snippet[start:end], page.has_more) == (word, True)
        after = await ann.search(word, conversation_id=mine.id, limit=1, cursor=page.next_cursor)
        assert after.results[0].message.server_msg_id == ids[0]
        links = await mine.media("link")
        assert [message.content for message in links.messages] == ["see https://nexo.example/"]
        assert await mine.at(0) == 1
        assert await mine.at(4_000_000_000_000) is None
        assert await ben.report(ids[0], "spam")


async def test_contacts_links_and_members(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        asked, decided = ben.events("contact_request"), ann.events("contact_decision")
        assert (await ann.contacts.request(ben.user_id or "", "It is me")).status == "pending"
        request = await anext(asked)
        assert (request.user_id, request.message) == (ann.user_id, "It is me")
        assert [one.user_id for one in (await ben.contacts.requests()).requests] == [ann.user_id]
        assert [one.user_id for one in (await ann.contacts.requests(sent=True)).requests] == [ben.user_id]
        assert (await ben.contacts.decide(ann.user_id or "", True)).status == "accepted"
        decision = await anext(decided)
        assert (decision.user_id, decision.accepted) == (ben.user_id, True)
        assert (await ann.contacts.remark(ben.user_id or "", "Benny")).remark == "Benny"
        assert [(one.user_id, one.remark) for one in (await ann.contacts.list()).contacts] == [(ben.user_id, "Benny")]
        await ann.contacts.remove(ben.user_id or "")
        assert (await ben.contacts.list()).contacts == []

        group = await ann.groups.create("Team", [ben.user_id or "", cid.user_id or ""], join_policy="approval")
        joining = ann.events("join_request")
        assert await dan.groups.join(group.group_id, "let me in") == "pending"
        wish = await anext(joining)
        assert (wish.group_id, wish.user_id, wish.message) == (group.group_id, dan.user_id, "let me in")
        link = await ann.groups.create_link(group.group_id, expires_s=3600, uses=2)
        assert [one.code for one in await ann.groups.links(group.group_id)] == [link.code]
        assert (await dan.groups.link_info(link.code)).name == "Team"
        assert await dan.groups.join_by_code(link.code) == group.group_id
        await ann.groups.revoke_link(link.code)
        with pytest.raises(ClientError, match="link_expired"):
            await dan.groups.link_info(link.code)
        member = await dan.groups.update_member(group.group_id, group_nickname="D", extra={"a": 1})
        assert (member.group_nickname, member.extra) == ("D", {"a": 1})
        assert (await ann.groups.update(group.group_id, extra={"b": 2}, group_type=7)).group_type == 7


async def test_devices_privacy_export_and_leaving(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben), second_device(ann, server.address) as device:
        await said(ann.chat_with(ben.user_id or ""), "remember me")
        changed = await ann.users.update(privacy={"last_seen": "nobody"})
        assert changed.privacy is not None
        assert changed.privacy.last_seen == "nobody"
        assert (await ben.users.info(ann.user_id)).last_seen_at is None
        listed = {one.device_id: one for one in await ann.devices.list()}
        assert len(listed) == 2
        assert [one.current for one in listed.values()].count(True) == 1
        await ann.devices.revoke(listed["second"].session_id)
        await until(lambda: device.state == "closed")
        assert await ann.devices.revoke_others() == 0

        begun = await ann.account.export(password=PASSWORD)
        assert begun.status in ("running", "done")

        async def is_done() -> bool:
            return (await ann.account.export_status()).status == "done"

        await until(is_done)
        lines = [json.loads(line) for line in gzip.decompress(await ann.account.export_file()).splitlines()]
        assert any("remember me" in json.dumps(line) for line in lines)
        await ann.account.close(password=PASSWORD, erase_messages=True)
        assert (ann.session, ann.user_id) == (None, None)
        assert (await ben.users.info(lines[0].get("user_id") or None)) is not None
