"""What must be true of a store, as SQL that every engine runs. `check.py` asks, and repairs.

A scan is a statement over the conversations `:low` to `:high` that puts what is stored beside what a
recount says; each of its laws is a condition that names a row as wrong. Names are looked up only for what
is found. Everything a conversation's laws compare is written in one transaction, so in one snapshot they
hold at any moment.
"""

from __future__ import annotations

from typing import NamedTuple

from nexo.core.model import FIRST_EVENT, ConversationStatus, Kind, MemberStatus, MsgType, Role
from nexo.ids import AT_ALL


class Law(NamedTuple):
    kind: str
    wrong: str  # a condition on the scan's columns
    found: str = "NULL"
    expected: str = "NULL"
    seq: str = "NULL"
    repair: tuple[str, str] | None = None  # table and column that are set to what is expected


class Scan(NamedTuple):
    source: str
    laws: tuple[Law, ...]
    has_user: bool = False


COUNTABLE = f"msg_type<{FIRST_EVENT}"
SINGLE, GROUP = int(Kind.SINGLE), int(Kind.GROUP)
NORMAL = int(MemberStatus.NORMAL)
IN_RANGE = "BETWEEN :low AND :high"

# In a conversation with one of these a recount means nothing.
DAMAGE = frozenset(("seq_hole", "seq_duplicate", "seq_below_one", "countable_no"))

MESSAGES = Scan(
    f"SELECT conv,seq,CASE WHEN {COUNTABLE} THEN 1 ELSE 0 END AS counts,countable_no,send_at,"
    "COALESCE(LAG(seq) OVER w,0) AS prev_seq,COALESCE(LAG(countable_no) OVER w,0) AS prev_no,"
    f"COALESCE(LAG(send_at) OVER w,0) AS prev_at FROM messages WHERE conv {IN_RANGE} "
    "WINDOW w AS (PARTITION BY conv ORDER BY seq,server_msg_id)",
    (
        Law("seq_hole", "seq>prev_seq+1", found="seq", expected="prev_seq+1", seq="prev_seq+1"),
        Law("seq_duplicate", "seq=prev_seq AND seq>0", found="seq", expected="prev_seq+1", seq="seq"),
        Law("seq_below_one", "seq<1", found="seq", expected="1", seq="seq"),
        # Step by step, so that a hole is told once and not again for every message after it.
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

RECALLED = Scan(
    "SELECT m.conv,m.seq,m.status,m.recall_seq,m.recalled_at,m.content,"
    "CASE WHEN m.extra IS NULL AND m.mentions IS NULL AND m.reply_to IS NULL THEN 1 ELSE 0 END AS bare,"
    f"CASE WHEN m.msg_type IN ({int(MsgType.TEXT)},{int(MsgType.QUOTE)}) THEN '\"\"' ELSE '{{}}' END AS blank,"
    "COALESCE(e.msg_type,0) AS event_type,COALESCE(e.send_at,0) AS event_at "
    "FROM messages m LEFT JOIN messages e ON e.conv=m.conv AND e.seq=m.recall_seq "
    f"WHERE m.conv {IN_RANGE} AND (m.status<>0 OR m.recall_seq IS NOT NULL OR m.recalled_at IS NOT NULL)",
    (
        # what it still says stays untold
        Law("recalled_not_blank", "status<>0 AND (content<>blank OR bare=0)", seq="seq"),
        Law(
            "recall_without_event",
            f"status<>0 AND (event_type<>{int(MsgType.RECALLED)} OR COALESCE(recalled_at,0)<>event_at)",
            found="event_type",
            expected=str(int(MsgType.RECALLED)),
            seq="seq",
        ),
        Law("recall_half_done", "status=0", found="recall_seq", seq="seq"),
    ),
)

MENTIONS = Scan(
    "SELECT n.conv,n.user_id,n.seq,n.sender_id,m.sender_id AS author FROM mentions n "
    f"LEFT JOIN messages m ON m.conv=n.conv AND m.seq=n.seq WHERE n.conv {IN_RANGE}",
    (
        Law("mention_without_message", "author IS NULL", seq="seq"),
        Law("mention_sender", "author<>sender_id", found="sender_id", expected="author", seq="seq"),
    ),
    has_user=True,
)


def _conversations(concat: str) -> Scan:
    group_name = concat.format(a="'sg_'", b="group_id")

    def derived(column: str, expected: str, wrong: str = "") -> Law:
        return Law(
            column,
            wrong or f"{column}<>{expected}",
            found=column,
            expected=expected,
            repair=("conversations", column),
        )

    return Scan(
        "SELECT c.id AS conv,c.conversation_id,c.kind,c.status,c.head_seq,c.closed_seq,c.countable,c.at_all_count,"
        "c.last_send_at,c.member_count,COALESCE(s.high,0) AS high,COALESCE(s.counted,0) AS counted,"
        "COALESCE(s.newest,0) AS newest,COALESCE(s.events,0) AS events,COALESCE(s.recalled,0) AS recalled,"
        "COALESCE(a.counted,0) AS at_alls,COALESCE(p.everyone,0) AS everyone,COALESCE(p.active,0) AS active,"
        "COALESCE(p.owners,0) AS owners,p.owner,g.group_id,COALESCE(g.status,0) AS group_status,g.owner_id,"
        f"CASE WHEN c.kind={SINGLE} THEN COALESCE(p.everyone,0) ELSE COALESCE(p.active,0) END AS counted_members,"
        f"CASE WHEN c.status<>{int(ConversationStatus.NORMAL)} THEN COALESCE(s.high,0) ELSE 0 END AS closed_at "
        "FROM conversations c "
        f"LEFT JOIN (SELECT conv,MAX(seq) AS high,SUM(CASE WHEN {COUNTABLE} THEN 1 ELSE 0 END) AS counted,"
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
            # are gone; taking their seqs once more would show clients other messages than they have.
            derived("head_seq", "high", "head_seq<high"),
            Law("seq_hole", "head_seq>high", found="head_seq", expected="high", seq="high+1"),
            derived("countable", "counted"),
            derived("at_all_count", "at_alls"),
            derived("last_send_at", "newest"),
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


_TOP = "COALESCE(b.to_seq,c.head_seq)"
_AT_ALLS = f"SELECT COUNT(*) FROM mentions n WHERE n.conv=b.conv AND n.user_id='{AT_ALL}' AND n.seq<={_TOP}"


def _members(concat: str) -> Scan:
    def derived(column: str, expected: str, wrong: str = "") -> Law:
        return Law(
            column, wrong or f"{column}<>{expected}", found=column, expected=expected, repair=("members", column)
        )

    def frozen(column: str, expected: str) -> Law:
        """With an open span there is nothing to freeze; without the last message nothing to compare with."""
        different = f"COALESCE({column},-1)<>COALESCE({expected},-1)"
        return derived(column, expected, f"(to_seq IS NULL OR want_left_at IS NOT NULL) AND {different}")

    name = concat.format(a=concat.format(a="'si_'", b="user_id"), b=concat.format(a="':'", b="peer_id"))
    return Scan(
        "SELECT b.conv,b.user_id,b.peer_id,b.status,b.from_seq,b.to_seq,b.to_countable,b.to_at_all,b.left_at,"
        "b.has_past,b.delivered_seq,b.read_seq,b.read_countable,b.own_above,b.last_own_seq,b.mention_unread,"
        f"b.at_all_base,b.blocked,c.kind,c.conversation_id,c.head_seq,{_TOP} AS top,"
        "CASE WHEN b.read_seq<=0 THEN 0 ELSE r.countable_no END AS want_read_countable,"
        "t.countable_no AS want_to_countable,t.send_at AS want_left_at,"
        f"CASE WHEN b.to_seq IS NOT NULL THEN ({_AT_ALLS}) END AS want_to_at_all,"
        "COALESCE(o.above,0) AS want_own_above,COALESCE(o.newest,0) AS want_last_own,"
        "(SELECT COUNT(*) FROM mentions n WHERE n.conv=b.conv AND n.user_id=b.user_id AND n.seq>b.read_seq "
        f"AND n.seq<={_TOP}) AS want_mentions,"
        f"({_AT_ALLS})-({_AT_ALLS} AND n.seq>b.read_seq AND n.sender_id<>b.user_id) AS want_at_all_base,"
        "CASE WHEN EXISTS (SELECT 1 FROM member_spans s WHERE s.conv=b.conv AND s.user_id=b.user_id) "
        "THEN 1 ELSE 0 END AS want_past,"
        "CASE WHEN k.user_id IS NULL THEN 0 ELSE 1 END AS want_blocked,p.user_id AS peer "
        "FROM members b JOIN conversations c ON c.id=b.conv "
        "LEFT JOIN messages r ON r.conv=b.conv AND r.seq=b.read_seq "
        "LEFT JOIN messages t ON t.conv=b.conv AND t.seq=b.to_seq "
        "LEFT JOIN (SELECT m.conv,m.sender_id,SUM(CASE WHEN m.seq>x.read_seq THEN 1 ELSE 0 END) AS above,"
        "MAX(m.seq) AS newest FROM messages m JOIN members x ON x.conv=m.conv AND x.user_id=m.sender_id "
        f"AND m.seq>=x.from_seq WHERE m.conv {IN_RANGE} AND m.{COUNTABLE} GROUP BY m.conv,m.sender_id) o "
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
            Law("blocked", f"kind={SINGLE} AND blocked<>want_blocked", found="blocked", expected="want_blocked"),
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
SPANS = Scan(
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


def _orphans(table: str) -> Scan:
    return Scan(
        f"SELECT o.conv,COUNT(*) AS counted FROM {table} o LEFT JOIN conversations c ON c.id=o.conv "
        f"WHERE o.conv {IN_RANGE} AND c.id IS NULL GROUP BY o.conv",
        (Law(f"{table}_without_conversation", "counted>0", found="counted", expected="0"),),
    )


ORPHANS = tuple(_orphans(table) for table in ("messages", "members", "member_spans", "mentions", "chat_groups"))

# Once for the whole store: a block whose chat does not carry the mark that stops a sender.
UNMARKED_BLOCKS = (
    "SELECT b.user_id,b.blocked_id FROM blocks b WHERE NOT EXISTS (SELECT 1 FROM members m "
    "WHERE m.user_id=b.blocked_id AND m.peer_id=b.user_id AND m.blocked=1)"
)


def scans(dialect: str) -> tuple[Scan, ...]:
    concat = "CONCAT({a},{b})" if dialect in ("mysql", "mariadb") else "({a}||{b})"
    return (MESSAGES, _conversations(concat), _members(concat), SPANS, RECALLED, MENTIONS, *ORPHANS)
