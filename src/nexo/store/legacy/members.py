"""Members and conversations, made when all messages are stored: cursors that were message ids become seqs.

A cursor becomes the highest seq whose message has an id up to it, an empty one 0. Everybody may see all of
their conversation, as before. What Nexo keeps beside the cursors is counted here, not by queries later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from nexo.core.model import FIRST_EVENT, Kind, MsgType, Role
from nexo.ids import AT_ALL, now_ms
from nexo.store.legacy.chats import Chat, Owner, group_name
from nexo.store.legacy.messages import COLUMNS as MESSAGE_COLUMNS
from nexo.store.legacy.messages import ID_MAX, Rules
from nexo.store.legacy.people import People, clean
from nexo.store.legacy.tables import GROUP_MEMBERS, REQUESTS, SINGLE_MEMBERS, Legacy, to_ms
from nexo.store.transfer.links import Link, Row

CONVERSATION_COLUMNS = (
    "id",
    "conversation_id",
    "kind",
    "head_seq",
    "countable",
    "at_all_count",
    "last_send_at",
    "member_count",
    "created_at",
)
MEMBER_COLUMNS = (
    "conv",
    "user_id",
    "peer_id",
    "role",
    "delivered_seq",
    "read_seq",
    "read_countable",
    "own_above",
    "last_own_seq",
    "mention_unread",
    "at_all_base",
    "muted_until",
    "recv_msg_opt",
    "joined_at",
)
GROUP_COLUMNS = (
    "group_id",
    "conv",
    "name",
    "avatar",
    "creator_id",
    "owner_id",
    "join_policy",
    "extra",
    "created_at",
    "updated_at",
)
REQUEST_COLUMNS = ("group_id", "user_id", "message", "created_at")

WEIGHT = 50_000  # messages of the conversations that are finished in one transaction
CHATS_MAX = 500
_ROLES = {1: Role.OWNER, 2: Role.ADMIN}
_PENDING = 1
_SILENT = 2  # recv_msg_opt


class Finished(NamedTuple):
    """The rows of some conversations, by table."""

    conversations: list[Row]
    chat_groups: list[Row]
    members: list[Row]
    messages: list[Row]
    join_requests: list[Row]


COLUMNS: dict[str, Sequence[str]] = {
    "conversations": CONVERSATION_COLUMNS,
    "chat_groups": GROUP_COLUMNS,
    "members": MEMBER_COLUMNS,
    "messages": MESSAGE_COLUMNS,
    "join_requests": REQUEST_COLUMNS,
}


class Seen:
    """What is stored of one conversation, as far as cursors need it."""

    def __init__(self) -> None:
        self.ids = array("q")  # of seq 1, 2, 3 …
        self.own: dict[str, array[int]] = {}
        self.mentions: dict[str, array[int]] = {}
        self.at_all: list[tuple[int, str]] = []

    def own_above(self, user_id: str, seq: int) -> int:
        return _above(self.own.get(user_id), seq)

    def seq_of(self, cursor: int) -> int:
        return bisect_right(self.ids, cursor)


def _cursor(value: Any) -> int:
    """Empty is before everything, and what lies beyond all ids behind everything."""
    try:
        return 0 if value is None else max(0, min(int(value), ID_MAX))
    except ValueError:
        return 0


def _above(seqs: Sequence[int] | None, seq: int) -> int:
    return 0 if seqs is None else len(seqs) - bisect_right(seqs, seq)


def slices(chats: Sequence[Chat], after_conv: int) -> Iterable[list[Chat]]:
    """Conversations in pieces of bounded work."""
    piece: list[Chat] = []
    weight = 0
    for chat in chats:
        if chat.conv <= after_conv:
            continue
        if piece and (weight + chat.total > WEIGHT or len(piece) >= CHATS_MAX):
            yield piece
            piece, weight = [], 0
        piece.append(chat)
        weight += chat.total
    if piece:
        yield piece


class Finisher:
    def __init__(
        self, legacy: Legacy, target: Link, people: People, rules: Rules, silent_event_ids: dict[int, int]
    ) -> None:
        self._legacy = legacy
        self._target = target
        self._people = people
        self._rules = rules
        self._silent_event_ids = silent_event_ids  # of the event that a group without messages begins with
        self._now_ms = now_ms()

    async def finish(self, chats: list[Chat]) -> Finished:
        seen = await self._read_stored(chats[0].conv, chats[-1].conv)
        known = await self._read_members(chats)
        requests = await self._read_requests(chats)
        done = Finished([], [], [], [], [])
        for chat in chats:
            if chat.kind == Kind.GROUP and chat.owner is None:
                continue  # told as group_left_out
            found = seen.get(chat.conv) or Seen()
            rows = known.get(chat.conv, {})
            everybody = chat.pair or tuple(sorted({*rows, *([chat.owner.user_id] if chat.owner else [])}))
            done.members.extend(self._member(chat, found, user_id, rows.get(user_id)) for user_id in everybody)
            done.conversations.append(_conversation(chat, found, len(everybody)))
            if chat.kind == Kind.GROUP:
                assert chat.owner is not None
                done.chat_groups.append(self._group(chat, chat.owner))
                done.join_requests.extend(
                    self._request(chat, row) for row in requests.get(chat.conv, {}).values() if row[0] not in rows
                )
                if chat.is_silent_group:
                    done.messages.append(self._creation(chat, chat.owner))
        return done

    # -- reading -----------------------------------------------------------------------------------------

    async def _read_stored(self, low: int, high: int) -> dict[int, Seen]:
        seen: dict[int, Seen] = {}
        for conv, seq, message_id, sender in await self._target.read(
            "SELECT conv,seq,server_msg_id,sender_id FROM messages WHERE conv BETWEEN ? AND ? "
            f"AND msg_type<{FIRST_EVENT} ORDER BY conv,seq",
            low,
            high,
        ):
            found = seen.get(conv)
            if found is None:
                found = seen[conv] = Seen()
            found.ids.append(message_id)
            own = found.own.get(sender)
            if own is None:
                own = found.own[sender] = array("q")
            own.append(seq)
        for conv, user_id, seq, sender in await self._target.read(
            "SELECT conv,user_id,seq,sender_id FROM mentions WHERE conv BETWEEN ? AND ? ORDER BY conv,seq", low, high
        ):
            if user_id == AT_ALL:
                seen[conv].at_all.append((seq, sender))
            else:
                seen[conv].mentions.setdefault(user_id, array("q")).append(seq)
        return seen

    async def _read_members(self, chats: list[Chat]) -> dict[int, dict[str, Row]]:
        """(delivered id, read id, role, join, mute, speak-mute) by conversation and user. Two rows of one
        person, after chats were merged or for want of a unique key, are one that is as far as either."""
        known: dict[int, dict[str, Row]] = {}
        for table, kind in ((SINGLE_MEMBERS, Kind.SINGLE), (GROUP_MEMBERS, Kind.GROUP)):
            by_id = {str(legacy_id): chat for chat in chats if chat.kind == kind for legacy_id in chat.legacy_ids}
            ids = [legacy_id for chat in chats if chat.kind == kind for legacy_id in chat.legacy_ids]
            for chat_id, user, delivered, read, *rest in await self._legacy.of_chats(table, ids):
                of_chat = known.setdefault(by_id[str(chat_id)].conv, {})
                user_id = self._people.find(user)
                other = of_chat.get(user_id)
                cursors = [_cursor(delivered), _cursor(read)]
                if other is not None:
                    cursors = [max(pair) for pair in zip(cursors, other, strict=False)]
                    rest = min(rest, list(other[2:]), key=lambda row: int(row[0] or 9))
                of_chat[user_id] = (*cursors, *rest)
        return known

    async def _read_requests(self, chats: list[Chat]) -> dict[int, dict[str, Row]]:
        if not self._legacy.has(REQUESTS):
            return {}
        groups = {str(chat.legacy_ids[0]): chat for chat in chats if chat.kind == Kind.GROUP}
        found: dict[int, dict[str, Row]] = {}
        ids = [chat.legacy_ids[0] for chat in groups.values()]
        for group_id, user, message, status, created_at in await self._legacy.of_chats(REQUESTS, ids):
            if status is None or int(status) == _PENDING:
                user_id = self._people.find(user)
                conv = groups[str(group_id)].conv
                found.setdefault(conv, {})[user_id] = (user_id, message, created_at)
        return found

    # -- rows --------------------------------------------------------------------------------------------

    def _member(self, chat: Chat, seen: Seen, user_id: str, row: Row | None) -> Row:
        delivered_id, read_id, role, joined, muted, speak_muted = row or (0, 0, None, None, None, None)
        read = seen.seq_of(read_id)
        delivered = max(read, seen.seq_of(delivered_id))
        own = seen.own.get(user_id)
        at_all_unread = sum(1 for seq, sender in seen.at_all if seq > read and sender != user_id)
        peer = ""
        if chat.pair is not None:
            peer = chat.pair[1] if chat.pair[0] == user_id else chat.pair[0]
        muted_until = to_ms(speak_muted, self._rules.zone)
        return (
            chat.conv,
            user_id,
            peer,
            int(_role(chat, user_id, role)),
            delivered,
            read,
            read,  # all that came along is countable, so the running number is the seq
            seen.own_above(user_id, read),
            own[-1] if own else 0,
            _above(seen.mentions.get(user_id), read),
            len(seen.at_all) - at_all_unread,
            muted_until if muted_until > self._now_ms else 0,
            _SILENT if to_ms(muted, self._rules.zone) > self._now_ms else 0,
            to_ms(joined, self._rules.zone),
        )

    def _group(self, chat: Chat, owner: Owner) -> Row:
        creator = chat.group[3] if chat.group else None
        extra = msgspec.json.encode({"legacy_group_id": str(chat.legacy_ids[0])}).decode()
        return (
            chat.name[3:],
            chat.conv,
            group_name(chat),
            clean(chat.group[2] if chat.group else "")[:512],
            owner.user_id if creator is None else self._people.find(creator),
            owner.user_id,
            "approval" if self._legacy.has(REQUESTS) else "open",
            extra,
            chat.created_at,
            chat.created_at,
        )

    def _request(self, chat: Chat, row: Row) -> Row:
        user_id, message, created_at = row
        return chat.name[3:], user_id, clean(message)[:512], to_ms(created_at, self._rules.zone)

    def _creation(self, chat: Chat, owner: Owner) -> Row:
        content = {"group_id": chat.name[3:], "name": group_name(chat), "by": owner.user_id}
        text = msgspec.json.encode(content).decode()
        event_id = self._silent_event_ids[chat.conv]
        event: Row = (event_id, chat.conv, 1, owner.user_id, None, int(MsgType.GROUP_CREATED), text)
        return (*event, None, None, None, None, 0, None, None, _last_at(chat), 0)


def _role(chat: Chat, user_id: str, role: Any) -> Role:
    if chat.kind == Kind.SINGLE:
        return Role.MEMBER
    if chat.owner is not None and chat.owner.user_id == user_id:
        return Role.OWNER
    return Role.ADMIN if role is not None and int(role) in _ROLES else Role.MEMBER


def _last_at(chat: Chat) -> int:
    return chat.last_at + chat.recalls if chat.total else max(1, chat.created_at)


def _conversation(chat: Chat, seen: Seen, members: int) -> Row:
    last_at = _last_at(chat) if chat.head else 0
    first: Row = (chat.conv, chat.name, int(chat.kind), chat.head, chat.total, len(seen.at_all))
    return (*first, last_at, members, chat.created_at)
