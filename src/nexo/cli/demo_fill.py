"""Puts the demo's people and history into an empty store, through the services that a server uses."""

from __future__ import annotations

from nexo.assembly.core import Core
from nexo.cli.demo_story import ADMIN, CHATS, PASSWORD, PEOPLE, Chat
from nexo.ids import group_conversation_id, now_ms, single_conversation_id
from nexo.service.accounts import Accounts
from nexo.store.account_store import SqlAccounts
from nexo.store.engine import Script, do, rows

MINUTE_MS = 60_000


async def fill(core: Core) -> dict[str, str]:
    """The group ids by name."""
    accounts = Accounts(SqlAccounts(core.store.database), core.config, "not used: there is no sign-in here")
    try:
        for user_id, nickname in PEOPLE.items():
            await accounts.register(PASSWORD, user_id, nickname, is_admin=user_id == ADMIN)
    finally:
        accounts.close()
    groups: dict[str, str] = {}
    for number, chat in enumerate(CHATS):
        group_id = await _found(core, chat) if chat.name else None
        if group_id is not None:
            groups[chat.name] = group_id
        await _send_chat(core, number, chat, group_id)
    return groups


async def _found(core: Core, chat: Chat) -> str:
    group = await core.groups.create(chat.owner, name=chat.name, member_ids=list(chat.members))
    return group.group_id


async def _send_chat(core: Core, number: int, chat: Chat, group_id: str | None) -> None:
    people = [chat.owner, *chat.members] if group_id else sorted({line.sender for line in chat.lines})
    if group_id is None and len(people) == 1:
        people.append("mira")
    ids: list[int] = []
    seqs: list[int] = []
    for i, line in enumerate(chat.lines):
        other = next(user_id for user_id in people if user_id != line.sender)
        sent = await core.sending.send(
            line.sender,
            client_msg_id=f"demo-{number}-{i}",
            recv_id=None if group_id else other,
            group_id=group_id,
            content=line.text,
            mentions=line.mentions,
            reply_to=None if line.reply_to is None else str(ids[line.reply_to]),
        )
        ids.append(sent.message.server_msg_id)
        seqs.append(sent.message.seq)
    for i in chat.recalled:
        await core.conversations.recall(chat.lines[i].sender, ids[i])
    name = group_conversation_id(group_id) if group_id else single_conversation_id(people[0], people[1])
    for user_id in people:
        unread = chat.unread_by_mira if user_id == "mira" else 0
        seq = seqs[-1 - unread] if unread < len(seqs) else 0
        await core.acknowledging.mark_read(user_id, name, seq=seq)
    await core.store.database.write(lambda: _date_back(name, chat))


def _date_back(name: str, chat: Chat) -> Script[None]:
    """Spreads the messages over the last days. Times within a conversation keep their order."""
    ((conv, head),) = yield rows("SELECT id,head_seq FROM conversations WHERE conversation_id=?", name)
    now = now_ms()
    first, last = now - chat.began * MINUTE_MS, now - chat.ended * MINUTE_MS
    for seq in range(1, head + 1):
        # slow in the beginning, and more often towards the end, as people talk
        at = first + int((last - first) * (1 - (1 - seq / head) ** 1.7))
        yield do("UPDATE messages SET send_at=? WHERE conv=? AND seq=?", at, conv, seq)
    # the recall event is the last message
    yield do("UPDATE messages SET recalled_at=? WHERE conv=? AND status=1", last, conv)
    yield do("UPDATE conversations SET last_send_at=? WHERE id=?", last, conv)
