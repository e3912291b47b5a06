"""Members and conversations, made after all messages are stored: cursors that were message ids become seqs.

A cursor becomes the highest seq whose message has an id up to it, an empty one 0. One that was a number within its
chat (`msg_seq`) becomes the seq behind which a message with a higher number stands; of two cursors the one that is
further counts. Every member may see all of their conversation, as before. What Nexo keeps beside the cursors is
counted here, not by queries later.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from nexo.core.model import Kind, MsgType, Role
from nexo.core.unread import countable_sql
from nexo.ids import AT_ALL, now_ms
from nexo.store.engines.transfer_connection import Row, TransferConnection
from nexo.store.legacy.chats import LegacyChat, OwnerCandidate, group_name
from nexo.store.legacy.messages import COLUMNS as MESSAGE_COLUMNS
from nexo.store.legacy.messages import ID_MAX, MessageRules
from nexo.store.legacy.numbering import read_numbers
from nexo.store.legacy.stored_messages import StoredMessages, above
from nexo.store.legacy.tables import GROUP_MEMBERS, GROUPS, REQUESTS, SINGLE_MEMBERS, LegacyDatabase, to_ms
from nexo.store.legacy.users import LegacyUsers, clean

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
JOIN_POLICY = GROUPS.columns.index("nexo_join_policy")
CURSOR_SEQS = SINGLE_MEMBERS.columns.index("last_delivered_msg_seq")  # and that of reading behind it
_SILENT = 2  # recv_msg_opt


class ConversationRows(NamedTuple):
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


def _cursor(value: Any) -> int:
    """Returns a cursor as a message id: an empty one is before all ids, one beyond all ids behind them."""
    try:
        return 0 if value is None else max(0, min(int(value), ID_MAX))
    except ValueError:
        return 0


def slices(chats: Sequence[LegacyChat], after_conv: int) -> Iterable[list[LegacyChat]]:
    """Yields conversations in pieces of bounded work."""
    piece: list[LegacyChat] = []
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


class ConversationBuilder:
    """Makes the rows of conversations and what belongs to them, except their messages."""

    def __init__(
        self,
        legacy: LegacyDatabase,
        target: TransferConnection,
        users: LegacyUsers,
        rules: MessageRules,
        silent_event_ids: dict[int, int],
    ) -> None:
        self._legacy = legacy
        self._target = target
        self._users = users
        self._rules = rules
        self._silent_event_ids = silent_event_ids  # of the event that a group without messages begins with
        self._now_ms = now_ms()

    async def build(self, chats: list[LegacyChat]) -> ConversationRows:
        seen = await self._read_stored(chats[0].conv, chats[-1].conv)
        known = await self._read_members(chats, seen)
        requests = await self._read_requests(chats)
        done = ConversationRows([], [], [], [], [])
        for chat in chats:
            if chat.kind == Kind.GROUP and chat.owner is None:
                continue  # reported as group_left_out
            found = seen.get(chat.conv) or StoredMessages()
            rows = known.get(chat.conv, {})
            user_ids = chat.pair or tuple(sorted({*rows, *([chat.owner.user_id] if chat.owner else [])}))
            done.members.extend(self._member(chat, found, user_id, rows.get(user_id)) for user_id in user_ids)
            done.conversations.append(_conversation(chat, found, len(user_ids)))
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

    async def _read_stored(self, low: int, high: int) -> dict[int, StoredMessages]:
        seen: dict[int, StoredMessages] = {}
        for conv, seq, message_id, sender in await self._target.read(
            "SELECT conv,seq,server_msg_id,sender_id FROM messages WHERE conv BETWEEN ? AND ? "
            f"AND {countable_sql()} ORDER BY conv,seq",
            low,
            high,
        ):
            found = seen.get(conv)
            if found is None:
                found = seen[conv] = StoredMessages()
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

    async def _read_members(
        self, chats: list[LegacyChat], seen: dict[int, StoredMessages]
    ) -> dict[int, dict[str, Row]]:
        """Returns (delivered seq, read seq, role, join, mute, speak-mute) by conversation and user. A user may have two
        rows, because chats were merged or the source has no unique key: they become one row with the higher cursors."""
        known: dict[int, dict[str, Row]] = {}
        nothing = StoredMessages()
        for table, kind in ((SINGLE_MEMBERS, Kind.SINGLE), (GROUP_MEMBERS, Kind.GROUP)):
            by_id = {str(legacy_id): chat for chat in chats if chat.kind == kind for legacy_id in chat.legacy_ids}
            ids = [legacy_id for chat in chats if chat.kind == kind for legacy_id in chat.legacy_ids]
            numbers = await read_numbers(self._legacy, kind, by_id, ids, seen)
            for row in await self._legacy.of_chats(table, ids):
                chat_id, user, delivered, read, *rest = row[:CURSOR_SEQS]
                conv = by_id[str(chat_id)].conv
                of_chat = known.setdefault(conv, {})
                user_id = self._users.find(user)
                other = of_chat.get(user_id)
                stored = seen.get(conv, nothing)
                places = numbers.get(str(chat_id))
                cursors = [stored.seq_of(_cursor(delivered)), stored.seq_of(_cursor(read))]
                if places is not None:
                    given = [places.seq_of(_cursor(number)) for number in row[CURSOR_SEQS:]]
                    cursors = [max(pair) for pair in zip(cursors, given, strict=True)]
                if other is not None:
                    cursors = [max(pair) for pair in zip(cursors, other, strict=False)]
                    rest = min(rest, list(other[2:]), key=lambda row: int(row[0] or 9))
                of_chat[user_id] = (*cursors, *rest)
        return known

    async def _read_requests(self, chats: list[LegacyChat]) -> dict[int, dict[str, Row]]:
        if not self._legacy.has(REQUESTS):
            return {}
        groups = {str(chat.legacy_ids[0]): chat for chat in chats if chat.kind == Kind.GROUP}
        found: dict[int, dict[str, Row]] = {}
        ids = [chat.legacy_ids[0] for chat in groups.values()]
        for group_id, user, message, status, created_at in await self._legacy.of_chats(REQUESTS, ids):
            if status is None or int(status) == _PENDING:
                user_id = self._users.find(user)
                conv = groups[str(group_id)].conv
                found.setdefault(conv, {})[user_id] = (user_id, message, created_at)
        return found

    # -- rows --------------------------------------------------------------------------------------------

    def _member(self, chat: LegacyChat, seen: StoredMessages, user_id: str, row: Row | None) -> Row:
        delivered, read, role, joined, muted, speak_muted = row or (0, 0, None, None, None, None)
        delivered = max(read, delivered)
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
            read,  # all imported messages are countable, so the running number is the seq
            seen.ownabove(user_id, read),
            own[-1] if own else 0,
            above(seen.mentions.get(user_id), read),
            len(seen.at_all) - at_all_unread,
            muted_until if muted_until > self._now_ms else 0,
            _SILENT if to_ms(muted, self._rules.zone) > self._now_ms else 0,
            to_ms(joined, self._rules.zone),
        )

    def _group(self, chat: LegacyChat, owner: OwnerCandidate) -> Row:
        creator = chat.group[3] if chat.group else None
        extra = msgspec.json.encode({"legacy_group_id": str(chat.legacy_ids[0])}).decode()
        return (
            chat.name[3:],
            chat.conv,
            group_name(chat),
            clean(chat.group[2] if chat.group else "")[:512],
            owner.user_id if creator is None else self._users.find(creator),
            owner.user_id,
            self._join_policy(chat),
            extra,
            chat.created_at,
            chat.created_at,
        )

    def _join_policy(self, chat: LegacyChat) -> str:
        given = chat.group[JOIN_POLICY] if chat.group else None
        return str(given) if given else "approval" if self._legacy.has(REQUESTS) else "open"

    def _request(self, chat: LegacyChat, row: Row) -> Row:
        user_id, message, created_at = row
        return chat.name[3:], user_id, clean(message)[:512], to_ms(created_at, self._rules.zone)

    def _creation(self, chat: LegacyChat, owner: OwnerCandidate) -> Row:
        content = {"group_id": chat.name[3:], "name": group_name(chat), "by": owner.user_id}
        text = msgspec.json.encode(content).decode()
        event_id = self._silent_event_ids[chat.conv]
        event: Row = (event_id, chat.conv, 1, owner.user_id, None, int(MsgType.GROUP_CREATED), text)
        return (*event, None, None, None, None, 0, None, None, _last_at(chat), 0)


def _role(chat: LegacyChat, user_id: str, role: Any) -> Role:
    if chat.kind == Kind.SINGLE:
        return Role.MEMBER
    if chat.owner is not None and chat.owner.user_id == user_id:
        return Role.OWNER
    return Role.ADMIN if role is not None and int(role) in _ROLES else Role.MEMBER


def _last_at(chat: LegacyChat) -> int:
    return chat.last_at + chat.recalls if chat.total else max(1, chat.created_at)


def _conversation(chat: LegacyChat, seen: StoredMessages, members: int) -> Row:
    last_at = _last_at(chat) if chat.head else 0
    first: Row = (chat.conv, chat.name, int(chat.kind), chat.head, chat.total, len(seen.at_all))
    return (*first, last_at, members, chat.created_at)
