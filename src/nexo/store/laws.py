"""What must be true of a store, as SQL that every engine runs. `check.py` runs it, and repairs.

A scan is a statement over the conversations `:low` to `:high` that puts stored values beside recounted ones; each
of its laws is a condition under which a row is wrong. Names are looked up only for rows that are wrong. All values
that the laws of a conversation compare are written in one transaction, so the laws hold in every snapshot.
"""

from __future__ import annotations

from typing import NamedTuple

from nexo.core.model import ENDED, QUIET_TYPES, Blocked, Kind, MemberStatus, MessageStatus, MsgType, Role
from nexo.core.moderation import VersionCause
from nexo.core.unread import countable_sql, own_sql
from nexo.core.visibility import visible_head_sql
from nexo.ids import AT_ALL, COUNTER_BITS, EPOCH_MS, MAX_NODES, NODE_BITS
from nexo.store import rows
from nexo.store.sql import Sql


class Law(NamedTuple):
    kind: str
    wrong: str  # a condition on the scan's columns
    found: str = "NULL"
    expected: str = "NULL"
    seq: str = "NULL"
    repair: tuple[str, str] | None = None  # table and column that are set to what is expected


class LawScan(NamedTuple):
    source: str
    laws: tuple[Law, ...]
    has_user: bool = False


COUNTABLE = countable_sql()
QUIET = f"msg_type IN ({','.join(str(number) for number in sorted(QUIET_TYPES))})"
SINGLE, GROUP = int(Kind.SINGLE), int(Kind.GROUP)
NORMAL = int(MemberStatus.NORMAL)
RECALLED_STATUS = int(MessageStatus.RECALLED)
CLOSED = int(Blocked.PEER_CLOSED)
_ENDED = ",".join(str(int(status)) for status in ENDED)
IN_RANGE = "BETWEEN :low AND :high"

# In a conversation with one of these a recount means nothing.
DAMAGE = frozenset(("seq_hole", "seq_duplicate", "seq_below_one", "countable_no"))

MESSAGES = LawScan(
    f"SELECT conv,seq,CASE WHEN {COUNTABLE} THEN 1 ELSE 0 END AS counts,countable_no,send_at,"
    "COALESCE(LAG(seq) OVER w,0) AS prev_seq,COALESCE(LAG(countable_no) OVER w,0) AS prev_no,"
    f"COALESCE(LAG(send_at) OVER w,0) AS prev_at FROM messages WHERE conv {IN_RANGE} "
    "WINDOW w AS (PARTITION BY conv ORDER BY seq,server_msg_id)",
    (
        Law("seq_hole", "seq>prev_seq+1", found="seq", expected="prev_seq+1", seq="prev_seq+1"),
        Law("seq_duplicate", "seq=prev_seq AND seq>0", found="seq", expected="prev_seq+1", seq="seq"),
        Law("seq_below_one", "seq<1", found="seq", expected="1", seq="seq"),
        # Compared with the row before, so that a hole is reported once and not for every message after it.
        Law(
            "countable_no",
            "seq=prev_seq+1 AND countable_no<>prev_no+counts",
            found="countable_no",
            expected="prev_no+counts",
            seq="seq",
        ),
        Law("send_at", "send_at<=prev_at", found="send_at", expected="prev_at+1", seq="seq"),
    ),
)


def _made_when_stored(server_msg_id: str, send_at: str) -> str:
    """Returns the condition that an id was made at the time of its row; imported ids may show any time."""
    return f"ABS({server_msg_id}/{1 << (COUNTER_BITS + NODE_BITS)}.0-({send_at}-{EPOCH_MS}))<3600000"


# Ids and seqs are given together, under the lock of the conversation, and the ids of one node ascend, also from one
# holder of its number to the next: where they do not ascend with seq, messages stand in another order than that in
# which they were written. Not certain, and not reported:
# - about the order in which a sender submitted them: no column keeps it for messages that are written directly, so a
#   committer that writes them in the wrong order leaves no trace here (its own tests look for that);
# - between ids of different nodes, because the clocks of machines differ;
# - about events, whose ids are made before the lock is taken;
# - in a store that has accepted messages (two-phase): their ids are made when they are accepted, so one may stand
#   behind another that its sender sent later over a second connection;
# - about ids from another system, that were imported.
IDS = LawScan(
    "SELECT conv,sender_id AS user_id,seq,server_msg_id,send_at,LAG(server_msg_id) OVER w AS prev_id,"
    f"LAG(send_at) OVER w AS prev_at FROM messages WHERE conv {IN_RANGE} AND {COUNTABLE} "
    "AND NOT EXISTS (SELECT 1 FROM stream_owners) "
    f"WINDOW w AS (PARTITION BY conv,sender_id,(server_msg_id>>{COUNTER_BITS})&{MAX_NODES - 1} ORDER BY seq)",
    (
        Law(
            "id_order",
            f"server_msg_id<prev_id AND {_made_when_stored('server_msg_id', 'send_at')} "
            f"AND {_made_when_stored('prev_id', 'prev_at')}",
            found="server_msg_id",
            expected="prev_id+1",
            seq="seq",
        ),
    ),
    has_user=True,
)

RECALLED = LawScan(
    "SELECT m.conv,m.seq,m.status,m.recall_seq,m.recalled_at,m.content,"
    f"CASE WHEN {' AND '.join(f'm.{name} IS NULL' for name in rows.BLANKED)} THEN 1 ELSE 0 END AS bare,"
    f"CASE WHEN m.msg_type IN ({int(MsgType.TEXT)},{int(MsgType.QUOTE)}) THEN '\"\"' ELSE '{{}}' END AS blank,"
    "COALESCE(e.msg_type,0) AS event_type,COALESCE(e.send_at,0) AS event_at "
    "FROM messages m LEFT JOIN messages e ON e.conv=m.conv AND e.seq=m.recall_seq "
    f"WHERE m.conv {IN_RANGE} AND (m.status<>0 OR m.recall_seq IS NOT NULL OR m.recalled_at IS NOT NULL)",
    (
        # the content itself is not reported
        Law("recalled_not_blank", "status<>0 AND (content<>blank OR bare=0)", seq="seq"),
        Law(
            "recall_without_event",
            f"status={RECALLED_STATUS} AND (event_type<>{int(MsgType.RECALLED)} OR COALESCE(recalled_at,0)<>event_at)",
            found="event_type",
            expected=str(int(MsgType.RECALLED)),
            seq="seq",
        ),
        Law("recall_half_done", f"status<>{RECALLED_STATUS} AND recall_seq IS NOT NULL", found="recall_seq", seq="seq"),
    ),
)

EDITED = LawScan(
    "SELECT m.conv,m.seq,m.edit_seq,COALESCE(m.edited_at,0) AS edited_at,COALESCE(e.msg_type,0) AS event_type,"
    "COALESCE(e.send_at,0) AS event_at,COALESCE((SELECT MAX(v.seq) FROM message_versions v "
    f"WHERE v.server_msg_id=m.server_msg_id AND v.cause={int(VersionCause.EDIT)}),0) AS version_seq "
    "FROM messages m LEFT JOIN messages e ON e.conv=m.conv AND e.seq=m.edit_seq "
    f"WHERE m.conv {IN_RANGE} AND m.edited_at IS NOT NULL",
    (
        Law(
            "edit_without_event",
            f"event_type<>{int(MsgType.EDITED)} OR event_at<>edited_at",
            found="event_type",
            expected=str(int(MsgType.EDITED)),
            seq="seq",
        ),
        Law(
            "edit_without_version",
            "version_seq<>COALESCE(edit_seq,-1)",
            found="version_seq",
            expected="edit_seq",
            seq="seq",
        ),
    ),
)

REACTIONS = LawScan(
    "SELECT m.conv,m.seq,(SELECT COUNT(*) FROM reactions r WHERE r.server_msg_id=m.server_msg_id) AS given,"
    "COALESCE((SELECT SUM(k.counted) FROM reaction_counts k WHERE k.server_msg_id=m.server_msg_id),0) AS counted,"
    "(SELECT COUNT(*) FROM reaction_counts k WHERE k.server_msg_id=m.server_msg_id AND k.counted<>"
    "(SELECT COUNT(*) FROM reactions r WHERE r.server_msg_id=k.server_msg_id AND r.emoji=k.emoji)) AS wrong_counts "
    f"FROM messages m WHERE m.conv {IN_RANGE} AND m.reactions IS NOT NULL",
    (Law("reaction_counts", "counted<>given OR wrong_counts>0", found="counted", expected="given", seq="seq"),),
)

PINS = LawScan(
    "SELECT p.conv,p.event_seq,m.seq,COALESCE(m.conv,0) AS place,COALESCE(m.status,-1) AS status,"
    "COALESCE(e.msg_type,0) AS event_type FROM pins p LEFT JOIN messages m ON m.server_msg_id=p.server_msg_id "
    f"LEFT JOIN messages e ON e.conv=p.conv AND e.seq=p.event_seq WHERE p.conv {IN_RANGE}",
    (
        Law("pin_without_message", "place<>conv OR status<>0", found="status", expected="0", seq="event_seq"),
        Law(
            "pin_without_event",
            f"event_type<>{int(MsgType.PINNED)}",
            found="event_type",
            expected=str(int(MsgType.PINNED)),
            seq="event_seq",
        ),
    ),
)

MENTIONS = LawScan(
    "SELECT n.conv,n.user_id,n.seq,n.sender_id,m.sender_id AS author FROM mentions n "
    f"LEFT JOIN messages m ON m.conv=n.conv AND m.seq=n.seq WHERE n.conv {IN_RANGE}",
    (
        Law("mention_without_message", "author IS NULL", seq="seq"),
        Law("mention_sender", "author<>sender_id", found="sender_id", expected="author", seq="seq"),
    ),
    has_user=True,
)


EXPIRIES = LawScan(
    "SELECT m.conv,m.seq,e.server_msg_id AS scheduled FROM messages m "
    f"LEFT JOIN message_expiries e ON e.server_msg_id=m.server_msg_id WHERE m.conv {IN_RANGE} "
    "AND m.expires_at IS NOT NULL AND m.status=0",
    (Law("expiry_unscheduled", "scheduled IS NULL", seq="seq"),),
)

DELETIONS = LawScan(
    "SELECT d.conv,d.user_id,d.seq,d.server_msg_id,d.counts,d.rev,b.deleted_rev,b.cleared_seq,"
    f"m.server_msg_id AS message,CASE WHEN m.sender_id<>d.user_id AND {countable_sql('m')} THEN 1 ELSE 0 END "
    "AS want_counts "
    "FROM message_deletions d LEFT JOIN messages m ON m.conv=d.conv AND m.seq=d.seq "
    f"LEFT JOIN members b ON b.conv=d.conv AND b.user_id=d.user_id WHERE d.conv {IN_RANGE}",
    (
        Law("deletion_without_message", "message IS NULL OR message<>server_msg_id", seq="seq"),
        Law("deletion_without_member", "deleted_rev IS NULL", seq="seq"),
        Law(
            "deletion_counts",
            "message=server_msg_id AND counts<>want_counts",
            found="counts",
            expected="want_counts",
            seq="seq",
        ),
        Law("deletion_rev", "rev>deleted_rev", found="rev", expected="deleted_rev", seq="seq"),
        Law("deletion_cleared", "seq<=cleared_seq", found="seq", expected="cleared_seq", seq="seq"),
    ),
    has_user=True,
)


def _conversations(sql: Sql) -> LawScan:
    group_name = sql.concat("'sg_'", "group_id")

    def derived(column: str, expected: str, wrong: str = "") -> Law:
        return Law(
            column,
            wrong or f"{column}<>{expected}",
            found=column,
            expected=expected,
            repair=("conversations", column),
        )

    return LawScan(
        "SELECT c.id AS conv,c.conversation_id,c.kind,c.status,c.head_seq,c.closed_seq,c.countable,c.at_all_count,"
        "c.last_send_at,c.member_count,c.quiet_head,c.last_seq,c.last_at,COALESCE(s.loud,0) AS loud,"
        "COALESCE(s.loud_at,0) AS loud_at,COALESCE(s.high,0) AS high,COALESCE(s.counted,0) AS counted,"
        "COALESCE(s.newest,0) AS newest,COALESCE(s.events,0) AS events,COALESCE(s.recalled,0) AS recalled,"
        "COALESCE(a.counted,0) AS at_alls,COALESCE(p.everyone,0) AS everyone,COALESCE(p.active,0) AS active,"
        "COALESCE(p.owners,0) AS owners,p.owner,g.group_id,COALESCE(g.status,0) AS group_status,g.owner_id,"
        f"CASE WHEN c.kind={SINGLE} THEN COALESCE(p.everyone,0) ELSE COALESCE(p.active,0) END AS counted_members,"
        f"CASE WHEN c.status IN ({_ENDED}) THEN COALESCE(s.high,0) ELSE 0 END AS closed_at "
        "FROM conversations c "
        f"LEFT JOIN (SELECT conv,MAX(seq) AS high,SUM(CASE WHEN {COUNTABLE} THEN 1 ELSE 0 END) AS counted,"
        f"MAX(CASE WHEN NOT ({QUIET}) THEN seq END) AS loud,MAX(CASE WHEN NOT ({QUIET}) THEN send_at END) AS loud_at,"
        f"MAX(send_at) AS newest,SUM(CASE WHEN msg_type={int(MsgType.RECALLED)} THEN 1 ELSE 0 END) AS events,"
        f"COUNT(DISTINCT recall_seq) AS recalled FROM messages WHERE conv {IN_RANGE} GROUP BY conv) s ON s.conv=c.id "
        f"LEFT JOIN (SELECT conv,COUNT(*) AS counted FROM mentions WHERE conv {IN_RANGE} AND user_id='{AT_ALL}' "
        "GROUP BY conv) a ON a.conv=c.id "
        f"LEFT JOIN (SELECT conv,COUNT(*) AS everyone,SUM(CASE WHEN status={NORMAL} THEN 1 ELSE 0 END) AS active,"
        f"SUM(CASE WHEN role={int(Role.OWNER)} THEN 1 ELSE 0 END) AS owners,"
        f"MAX(CASE WHEN role={int(Role.OWNER)} AND status={NORMAL} THEN user_id END) AS owner "
        f"FROM members WHERE conv {IN_RANGE} GROUP BY conv) p ON p.conv=c.id "
        f"LEFT JOIN chat_groups g ON g.conv=c.id WHERE c.id {IN_RANGE}",
        (
            # A head below the newest message would make the next send fail. One above it means that messages
            # are missing; using their seqs again would give clients other messages under seqs they know.
            derived("head_seq", "high", "head_seq<high"),
            Law("seq_hole", "head_seq>high", found="head_seq", expected="high", seq="high+1"),
            derived("countable", "counted"),
            derived("at_all_count", "at_alls"),
            derived("last_send_at", "newest"),
            derived("quiet_head", "high", "loud<high AND quiet_head<>high"),
            derived("last_seq", "loud", "(loud<high OR quiet_head=high) AND last_seq<>loud"),
            derived("last_at", "loud_at", "(loud<high OR quiet_head=high) AND last_at<>loud_at"),
            derived("closed_seq", "closed_at"),
            derived("member_count", "counted_members"),
            Law("recall_events", "events<>recalled", found="events", expected="recalled"),
            Law("single_members", f"kind={SINGLE} AND everyone<>2", found="everyone", expected="2"),
            Law("group_missing", f"kind={GROUP} AND group_id IS NULL"),
            Law("group_of_single", f"kind<>{GROUP} AND group_id IS NOT NULL", found="group_id"),
            Law(
                "group_name",
                f"conversation_id<>{group_name}",
                found="conversation_id",
                expected=group_name,
            ),
            Law(
                "group_status",
                "group_id IS NOT NULL AND (group_status=0)<>(status=0)",
                found="group_status",
                expected="status",
            ),
            Law(
                "group_owner",
                f"kind={GROUP} AND (owners<>1 OR owner IS NULL OR owner_id<>owner)",
                found="owner_id",
                expected="owner",
            ),
        ),
    )


_TOP = visible_head_sql("b", "c")
_KEPT = (
    "n.seq>b.cleared_seq AND NOT EXISTS (SELECT 1 FROM message_deletions d WHERE d.conv=n.conv "
    "AND d.user_id=b.user_id AND d.seq=n.seq)"
)
# countable messages of others above the read cursor that the member has deleted, and those cleared
_DELETED_ABOVE = (
    "(SELECT COUNT(*) FROM message_deletions d WHERE d.conv=b.conv AND d.user_id=b.user_id AND d.counts=1 "
    "AND d.seq>b.read_seq AND d.seq>b.cleared_seq)+CASE WHEN b.cleared_seq>b.read_seq THEN (SELECT COUNT(*) "
    "FROM messages x WHERE x.conv=b.conv AND x.seq>b.read_seq AND x.seq<=b.cleared_seq AND x.sender_id<>b.user_id "
    f"AND {countable_sql('x')}) ELSE 0 END"
)
_AT_ALLS = f"SELECT COUNT(*) FROM mentions n WHERE n.conv=b.conv AND n.user_id='{AT_ALL}' AND n.seq<={_TOP}"


def _members(sql: Sql) -> LawScan:
    def derived(column: str, expected: str, wrong: str = "") -> Law:
        return Law(
            column, wrong or f"{column}<>{expected}", found=column, expected=expected, repair=("members", column)
        )

    def frozen(column: str, expected: str) -> Law:
        """Returns the law of a frozen counter. With an open span nothing is frozen; without the last message there is
        nothing to compare with."""
        different = f"COALESCE({column},-1)<>COALESCE({expected},-1)"
        return derived(column, expected, f"(to_seq IS NULL OR want_left_at IS NOT NULL) AND {different}")

    name = sql.concat(sql.concat("'si_'", "user_id"), sql.concat("':'", "peer_id"))
    return LawScan(
        "SELECT b.conv,b.user_id,b.peer_id,b.status,b.from_seq,b.to_seq,b.to_countable,b.to_at_all,b.left_at,"
        "b.has_past,b.delivered_seq,b.read_seq,b.read_countable,b.own_above,b.last_own_seq,b.mention_unread,"
        "b.at_all_base,b.blocked,b.contact,b.deleted_above,b.deleted_count,b.cleared_seq,"
        f"{_DELETED_ABOVE} AS want_deleted,"
        "(SELECT COUNT(*) FROM message_deletions d WHERE d.conv=b.conv AND d.user_id=b.user_id) AS want_deleted_count,"
        f"c.kind,c.conversation_id,c.head_seq,{_TOP} AS top,"
        "CASE WHEN b.read_seq<=0 THEN 0 ELSE r.countable_no END AS want_read_countable,"
        "t.countable_no AS want_to_countable,t.send_at AS want_left_at,"
        f"CASE WHEN b.to_seq IS NOT NULL THEN ({_AT_ALLS}) END AS want_to_at_all,"
        "COALESCE(o.above,0) AS want_own_above,COALESCE(o.newest,0) AS want_last_own,"
        "(SELECT COUNT(*) FROM mentions n WHERE n.conv=b.conv AND n.user_id=b.user_id AND n.seq>b.read_seq "
        f"AND n.seq<={_TOP} AND {_KEPT}) AS want_mentions,"
        f"({_AT_ALLS})-({_AT_ALLS} AND n.seq>b.read_seq AND n.sender_id<>b.user_id AND {_KEPT}) AS want_at_all_base,"
        "CASE WHEN EXISTS (SELECT 1 FROM member_spans s WHERE s.conv=b.conv AND s.user_id=b.user_id) "
        "THEN 1 ELSE 0 END AS want_past,"
        "CASE WHEN k.user_id IS NULL THEN 0 ELSE 1 END AS want_blocked,p.user_id AS peer,"
        "CASE WHEN EXISTS (SELECT 1 FROM contacts t WHERE t.user_id=b.user_id AND t.contact_id=b.peer_id) "
        "THEN 1 ELSE 0 END AS want_contact,"
        "CASE WHEN EXISTS (SELECT 1 FROM users d WHERE d.user_id=b.peer_id AND d.deleted_at>0) THEN 1 ELSE 0 END "
        "AS peer_closed,CASE WHEN EXISTS (SELECT 1 FROM account_closings d WHERE d.user_id=b.peer_id) "
        "THEN 1 ELSE 0 END AS peer_closing "
        "FROM members b JOIN conversations c ON c.id=b.conv "
        "LEFT JOIN messages r ON r.conv=b.conv AND r.seq=b.read_seq "
        "LEFT JOIN messages t ON t.conv=b.conv AND t.seq=b.to_seq "
        "LEFT JOIN (SELECT m.conv,m.sender_id,SUM(CASE WHEN m.seq>x.read_seq AND "
        f"{countable_sql('m')} THEN 1 ELSE 0 END) AS above,"
        "MAX(m.seq) AS newest FROM messages m JOIN members x ON x.conv=m.conv AND x.user_id=m.sender_id "
        f"AND m.seq>=x.from_seq WHERE m.conv {IN_RANGE} AND {own_sql('m')} GROUP BY m.conv,m.sender_id) o "
        "ON o.conv=b.conv AND o.sender_id=b.user_id "
        "LEFT JOIN blocks k ON k.user_id=b.peer_id AND k.blocked_id=b.user_id "
        f"LEFT JOIN members p ON p.conv=b.conv AND p.user_id=b.peer_id WHERE b.conv {IN_RANGE}",
        (
            Law("read_beyond_delivered", "read_seq>delivered_seq", found="read_seq", expected="delivered_seq"),
            Law("cursor_beyond_head", "delivered_seq>top", found="delivered_seq", expected="top"),
            Law(
                "cursor_below_span",
                "read_seq<from_seq-1 OR delivered_seq<from_seq-1",
                found="CASE WHEN read_seq<from_seq-1 THEN read_seq ELSE delivered_seq END",
                expected="from_seq-1",
            ),
            derived("read_countable", "want_read_countable"),
            derived("own_above", "want_own_above"),
            derived("last_own_seq", "want_last_own"),
            derived("mention_unread", "want_mentions"),
            derived("at_all_base", "want_at_all_base"),
            derived("deleted_above", "want_deleted"),
            derived("deleted_count", "want_deleted_count"),
            Law("cleared_beyond_head", "cleared_seq>top", found="cleared_seq", expected="top"),
            frozen("to_countable", "want_to_countable"),
            frozen("to_at_all", "want_to_at_all"),
            frozen("left_at", "want_left_at"),
            derived("has_past", "want_past"),
            Law("span_backwards", "to_seq<from_seq", found="to_seq", expected="from_seq", seq="from_seq"),
            Law(
                "span_beyond_head",
                "to_seq>head_seq OR from_seq>head_seq+1",
                found="COALESCE(to_seq,from_seq)",
                expected="head_seq",
                seq="from_seq",
            ),
            Law("span_status", f"(status={NORMAL})<>(to_seq IS NULL)", found="status", seq="from_seq"),
            Law(
                "blocked",
                f"kind={SINGLE} AND blocked<>{CLOSED} AND blocked<>want_blocked",
                found="blocked",
                expected="want_blocked",
            ),
            # while an account is being closed, its chats are marked one after the other
            Law(
                "peer_closed",
                f"kind={SINGLE} AND ((blocked={CLOSED} AND peer_closed=0) "
                f"OR (blocked<>{CLOSED} AND peer_closed=1 AND peer_closing=0))",
                found="blocked",
                expected=f"CASE WHEN peer_closed=1 THEN {CLOSED} ELSE want_blocked END",
            ),
            Law("contact", f"kind={SINGLE} AND contact<>want_contact", found="contact", expected="want_contact"),
            Law("single_peer", f"kind={SINGLE} AND (peer IS NULL OR peer=user_id)", found="peer_id"),
            Law(
                "single_name",
                f"kind={SINGLE} AND user_id<peer_id AND conversation_id<>{name}",
                found="conversation_id",
                expected=name,
            ),
        ),
        has_user=True,
    )


_FOREVER = (1 << 63) - 1
SPANS = LawScan(
    "SELECT conv,user_id,from_seq,to_seq,is_now,LEAD(from_seq) OVER w AS next_from,"
    "MAX(is_now) OVER (PARTITION BY conv,user_id) AS has_member FROM ("
    f"SELECT conv,user_id,from_seq,to_seq,0 AS is_now FROM member_spans WHERE conv {IN_RANGE} UNION ALL "
    f"SELECT conv,user_id,from_seq,COALESCE(to_seq,{_FOREVER}) AS to_seq,1 AS is_now FROM members "
    f"WHERE conv {IN_RANGE}) u WINDOW w AS (PARTITION BY conv,user_id ORDER BY from_seq,is_now)",
    (
        Law("span_overlap", "next_from<=to_seq", found="next_from", expected="to_seq+1", seq="from_seq"),
        Law(
            "span_backwards",
            "is_now=0 AND to_seq<from_seq",
            found="to_seq",
            expected="from_seq",
            seq="from_seq",
        ),
        Law("span_without_member", "has_member=0", seq="from_seq"),
    ),
    has_user=True,
)


def _orphans(table: str) -> LawScan:
    return LawScan(
        f"SELECT o.conv,COUNT(*) AS counted FROM {table} o LEFT JOIN conversations c ON c.id=o.conv "
        f"WHERE o.conv {IN_RANGE} AND c.id IS NULL GROUP BY o.conv",
        (Law(f"{table}_without_conversation", "counted>0", found="counted", expected="0"),),
    )


ORPHANS = tuple(
    _orphans(table)
    for table in (
        "messages",
        "members",
        "member_spans",
        "mentions",
        "chat_groups",
        "message_deletions",
        "message_expiries",
        "pins",
    )
)

# Once for the whole store: blocks without the mark in the chat that stops the sender.
UNMARKED_BLOCKS = (
    "SELECT b.user_id,b.blocked_id FROM blocks b WHERE NOT EXISTS (SELECT 1 FROM members m "
    "WHERE m.user_id=b.blocked_id AND m.peer_id=b.user_id AND m.blocked=1)"
)


# Contacts without the mark in the chat, or of one side only.
UNMARKED_CONTACTS = (
    "SELECT b.user_id,b.contact_id FROM contacts b WHERE NOT EXISTS (SELECT 1 FROM members m "
    "WHERE m.user_id=b.user_id AND m.peer_id=b.contact_id AND m.contact=1) OR NOT EXISTS "
    "(SELECT 1 FROM contacts o WHERE o.user_id=b.contact_id AND o.contact_id=b.user_id)"
)

# Once for the whole store: reactions to messages that are gone, or that do not show any.
STRAY_REACTIONS = (
    "SELECT r.server_msg_id,r.user_id FROM reactions r LEFT JOIN messages m ON m.server_msg_id=r.server_msg_id "
    "WHERE m.reactions IS NULL"
)


def scans(sql: Sql) -> tuple[LawScan, ...]:
    conversations, members = _conversations(sql), _members(sql)
    changes = (RECALLED, EDITED, REACTIONS, PINS, MENTIONS, EXPIRIES, DELETIONS)
    return (MESSAGES, IDS, conversations, members, SPANS, *changes, *ORPHANS)
