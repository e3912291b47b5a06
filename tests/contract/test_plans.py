"""No statement that serves a user reads a whole table, on any engine: the plans of the real statements, captured."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any

from harness.core import open_test_core, say
from harness.statements import recorded
from nexo.assembly.core import Core
from nexo.core.accounts import TokenHash
from nexo.core.journal import Place
from nexo.core.moderation import Moderator
from nexo.core.people import SeenSession
from nexo.service.forwarding import ForwardTarget
from nexo.store.account_store import SqlAccounts
from nexo.store.engine import Mode, Script, Stmt, do, rows
from nexo.store.expiry import retention_page
from nexo.store.profiles import SqlProfiles
from nexo.store.reports import SqlReports
from nexo.store.sql_contacts import SqlContacts
from nexo.store.sql_links import SqlLinks

USERS = [f"u{n:04}" for n in range(2000)]
ME = USERS[1000]
BIG = "g_000000000000"  # 6000 messages, 60 members; ME has come back to it once
CHATS_EACH = 3
BIG_MESSAGES = 6000
CHUNK = 300
JOURNAL_ROWS = 3000
FIRST_ID = 1_000_000  # of conversations; far above what the database numbers by itself


def _chats() -> Iterator[tuple[int, str, str]]:
    conv = FIRST_ID + 100
    for n, low in enumerate(USERS):
        for high in USERS[n + 1 : n + 1 + CHATS_EACH]:
            yield conv, low, high
            conv += 1


def _insert(table: str, columns: str, values: list[tuple[Any, ...]]) -> Script[None]:
    row = f"({','.join('?' * len(values[0]))})"
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        marks = ",".join([row] * len(chunk))
        yield do(f"INSERT INTO {table} ({columns}) VALUES {marks}", *(value for item in chunk for value in item))


def _fill() -> Script[None]:
    """About 6000 chats of two messages, 20 groups that are used, 20 000 messages and as many users."""
    members = "conv,user_id,peer_id,from_seq,has_past,role"
    conversations: list[tuple[Any, ...]] = []
    people: list[tuple[Any, ...]] = []
    messages: list[tuple[Any, ...]] = []
    number = 0

    def talk(conv: int, count: int, senders: list[str]) -> None:
        nonlocal number
        for seq in range(1, count + 1):
            number += 1
            messages.append((number, conv, seq, senders[seq % len(senders)], f"c{number}", 1, '"hi"', number, seq))

    for conv, low, high in _chats():
        conversations.append((conv, f"si_{low}:{high}", 1, 2, 2, conv, 2))
        people += [(conv, low, high, 1, 0, 0), (conv, high, low, 1, 0, 0)]
        talk(conv, 2, [low, high])
    groups = []
    for n in range(20):
        conv, group_id = FIRST_ID + n, f"g_{n:012}"
        count = BIG_MESSAGES if n == 0 else 100
        inside = USERS[970:1030] if n == 0 else USERS[n * 50 : n * 50 + 60]
        conversations.append((conv, f"sg_{group_id}", 2, count, count, 100_000 + n, len(inside)))
        groups.append((group_id, conv, "team", inside[0], inside[0]))
        people += [(conv, user, "", 1, 0, 2 if user == inside[0] else 0) for user in inside if (n, user) != (0, ME)]
        talk(conv, count, inside)
    people.append((FIRST_ID, ME, "", 4000, 1, 1))
    for n in range(20, 3000):  # only so that there are many
        conversations.append((FIRST_ID + 20_000 + n, f"sg_g_{n:012}", 2, 0, 0, 0, 0))
        groups.append((f"g_{n:012}", FIRST_ID + 20_000 + n, "team", "x", "x"))
    everybody = USERS + [f"x{n:05}" for n in range(18_000)]
    yield from _insert("users", "user_id,password_hash,nickname", [(user, "-", user) for user in everybody])
    names = "id,conversation_id,kind,head_seq,countable,last_send_at,member_count"
    yield from _insert("conversations", names, conversations)
    yield from _insert("chat_groups", "group_id,conv,name,creator_id,owner_id", groups)
    yield from _insert("members", members, people)
    names = "server_msg_id,conv,seq,sender_id,client_msg_id,msg_type,content,send_at,countable_no"
    yield from _insert("messages", names, messages)
    spans = [(FIRST_ID + n, user, 1, 2) for n in range(1, 20) for user in USERS[:150]] + [(FIRST_ID, ME, 1, 2000)]
    yield from _insert("member_spans", "conv,user_id,from_seq,to_seq", spans)
    yield from _insert("journal", "at,entries", [(1, "[]")] * JOURNAL_ROWS)
    kept = [(number, 1, '"hi"', 1 << 60, "x") for number in range(1, 3000)]
    yield from _insert("message_versions", "server_msg_id,version,content,replaced_at,replaced_by", kept)
    given = [(number, f"v{n}", "x") for number in range(1, 600) for n in range(5)]
    yield from _insert("reactions", "server_msg_id,user_id,emoji", given)
    yield from _insert("reaction_marks", "server_msg_id,user_id,emoji", given)
    yield from _insert("reaction_counts", "server_msg_id,emoji", [(number, "x") for number in range(1, 3000)])
    changes = [(number, 1, "[]") for number in range(1, 3000)]
    yield from _insert("reaction_changes", "server_msg_id,seq,reactions", changes)
    pins = [(FIRST_ID + n, number) for n in range(20) for number in range(1, 200)]
    yield from _insert("pins", "conv,server_msg_id", pins)
    marks = [(FIRST_ID, user, seq, "x") for user in USERS[:60] for seq in range(1, 60)]
    yield from _insert("mentions", "conv,user_id,seq,sender_id", marks)
    blocked = [(user, USERS[(n + step) % len(USERS)]) for n, user in enumerate(USERS) for step in (1500, 1501)]
    yield from _insert("blocks", "user_id,blocked_id", blocked)
    yield from _insert("session_changes", "user_id,changed_at", [(user, n) for n, user in enumerate(USERS)])
    columns = "sid,user_id,platform_id,version,family_hash"
    yield from _insert("sessions", columns, [(f"s{user}", user, 5, 1, f"f{user}") for user in USERS])
    tokens = [(f"t{user}", f"s{user}", 1) for user in USERS]
    yield from _insert("refresh_tokens", "token_hash,sid,expires_at", tokens)
    deleted = [(FIRST_ID, user, seq, 1, seq) for user in USERS[:60] for seq in range(1, 60)]
    deleted += [(FIRST_ID, ME, seq, 12_000 + seq, seq) for seq in range(4001, 4100)]
    yield from _insert("message_deletions", "conv,user_id,seq,server_msg_id,rev", deleted)
    yield do("UPDATE members SET deleted_count=99,deleted_rev=99 WHERE conv=? AND user_id=?", FIRST_ID, ME)
    due = [(number, FIRST_ID, 1 if number < 4 else (1 << 60) + number) for number in range(1, 3000)]
    yield from _insert("message_expiries", "server_msg_id,conv,expires_at", due)
    yield from _insert("work_positions", "name,position", [(f"w{n}", n) for n in range(3000)])
    requests = [(f"g_{n:012}", user) for n in range(20) for user in USERS[1500:1600]]
    yield from _insert("join_requests", "group_id,user_id", requests)
    pairs = [(user, USERS[(n + step) % len(USERS)]) for n, user in enumerate(USERS) for step in (700, 1300)]
    yield from _insert("contacts", "user_id,contact_id", pairs)
    asked = [(user, USERS[(n + step) % len(USERS)]) for n, user in enumerate(USERS) for step in (5, 6)]
    yield from _insert("contact_requests", "to_id,from_id", asked)
    links = [(f"code{n}", f"g_{n:012}", USERS[0]) for n in range(3000)]
    yield from _insert("group_links", "code,group_id,creator_id", links)
    yield from _insert("file_uses", "server_msg_id,file_id", [(number, f"f{number}") for number in range(3000)])
    told = [(user, n, f"sg_{BIG}", "x", "[]") for n, user in enumerate(USERS)]
    yield from _insert("reports", "reporter_id,server_msg_id,conversation_id,sender_id,context", told)
    yield do("UPDATE users SET last_seen_for=1 WHERE user_id<?", USERS[50])


def _analyze(engine: str) -> Script[None]:
    if engine == "mysql":
        tables = "users,conversations,members,member_spans,chat_groups,messages,mentions,join_requests,journal"
        tables += ",blocks,sessions,refresh_tokens,session_changes,message_versions,reactions"
        tables += ",reaction_marks,reaction_counts,reaction_changes,pins"
        tables += ",message_deletions,message_expiries,work_positions,contacts,contact_requests,group_links,file_uses"
        tables += ",reports"
        yield rows(f"ANALYZE TABLE {tables}")
    else:
        yield do("ANALYZE")


def _reads(core: Core) -> Iterator[tuple[str, Awaitable[Any]]]:
    """Everything that is read or written for a user, by its name."""
    conversations, big, chat = core.conversations, f"sg_{BIG}", f"si_{ME}:{USERS[1001]}"
    in_big = 12_000 + 4500  # the id of a message in the big group
    yield "pull", conversations.pull(ME, big, 100)
    yield "pull of the end", conversations.pull(ME, big, 5900, limit=10)
    yield "history", conversations.history(ME, big)
    yield "pull by seqs", conversations.pull_seqs(ME, big, [1, 5, 1000, 4500, 5999])
    yield "offline", conversations.offline(ME)
    yield "offline with baselines", conversations.offline(ME, baselines={big: 100, chat: 0})
    yield "resend", conversations.resend(ME)
    yield "silenced", conversations.silenced(ME)
    yield "list", conversations.entries(ME)
    yield "sync", conversations.sync(ME)
    yield "heads", conversations.heads(ME)
    yield "heads of some", conversations.heads(ME, [big, chat])
    yield "settings", conversations.change_settings(ME, chat, pinned=True)
    yield "delete", conversations.delete_messages(ME, [in_big + 2, in_big + 3])
    yield "deleted", conversations.deleted_since(ME, big)
    yield "the place of a date", conversations.seq_at(ME, big, 14_000)
    yield "time to live", conversations.change_settings(ME, big, message_ttl_s=60)
    yield "locate and ack", core.acknowledging.ack_message(ME, "delivered", in_big)
    yield "flush", core.store.cursors.flush()
    yield "mark read", core.acknowledging.mark_read(ME, big, seq=5000)
    yield "receipts", core.acknowledging.receipts(ME, in_big)
    yield "send", say(core, ME, USERS[1001], client_msg_id="1")
    yield "retry", say(core, ME, USERS[1001], client_msg_id="1")
    yield "send to a group", say(core, ME, BIG, mentions=[USERS[1001]], reply_to=in_big)
    yield "pull with a quote", conversations.pull(ME, big, 6001)
    yield "list with a quote", conversations.entries(ME)
    yield "mention all", say(core, USERS[970], BIG, mentions=["@all"])
    yield "read a mention", core.acknowledging.mark_read(USERS[1001], big, seq=6001)
    yield "first message", say(core, ME, "u1999")
    yield "find", core.store.messages.find(ME, in_big)
    yield "members", core.groups.members(ME, BIG)
    yield "audience", core.store.groups.audience(big)
    yield "my groups", core.groups.mine(ME)
    yield "info", core.groups.info(BIG)
    yield "join requests", core.groups.join_requests(ME, BIG)
    yield "create", core.groups.create(ME, name="x", member_ids=USERS[:3])
    yield "join", core.groups.join("u1900", BIG)
    yield "come back", core.groups.invite(ME, BIG, ["u1901", "u1902"])
    yield "role", core.groups.set_role(USERS[970], BIG, "u1901", "admin")
    yield "mute", core.groups.mute(USERS[970], BIG, "u1901", 60)
    yield "update", core.groups.update(ME, BIG, name="y")
    yield "leave", core.groups.leave("u1900", BIG)
    yield "remove", core.groups.remove(USERS[970], BIG, "u1901")
    yield "decide", core.groups.decide_join(ME, BIG, USERS[1500], True)
    changes, own = core.changes, 2 * sum(1 for _ in _chats()) + 4530  # the id of a message of ME in the big group
    yield "edit", changes.edit(ME, own, "better", "e1", [USERS[1001]])
    yield "edit again", changes.edit(ME, own, "better", "e1", [USERS[1001]])
    yield "react", changes.react(ME, in_big, "👍", True)
    yield "react again", changes.react(USERS[1001], in_big, "👍", True)
    yield "take back", changes.react(USERS[1001], in_big, "👍", False)
    yield "announce", core.store.message_changes.announce(in_big)
    yield "reactions", changes.reactions(ME, in_big, None, None)
    yield "pin", changes.pin(ME, in_big, True)
    yield "pin again", changes.pin(ME, in_big, True)
    yield "pins", changes.pins(ME, big)
    yield "pull with changes", conversations.pull(ME, big, 4400)
    yield "history with changes", conversations.history(ME, big)
    plan = core.forwarding.plan("f1", [in_big, in_big + 1], [ForwardTarget(USERS[1001], None)])
    yield "forward", core.forwarding.forward(ME, plan)
    yield "recall", conversations.recall(USERS[970], in_big)
    yield "transfer", core.groups.transfer(USERS[970], BIG, ME)
    moderation, boss = core.store.moderation, Moderator("user:boss", "boss")
    yield "recall by a moderator", moderation.recall(in_big - 1, boss)
    yield "read by a moderator", moderation.read(in_big, boss.actor)
    yield "messages of a user", moderation.messages_of(ME, 0, 100, boss.actor)
    yield "disable", moderation.set_group_disabled(BIG, True, "", boss.actor)
    yield "enable", moderation.set_group_disabled(BIG, False, "", boss.actor)
    yield "erase", core.store.expiry.erase_some()
    yield "retention", core.store.database.look(lambda: retention_page(1000))
    yield "clear", conversations.clear(ME, big)
    yield "read what was cleared", core.acknowledging.mark_read(ME, big, seq=5500)
    yield "trim", moderation.trim_versions(-1)
    contacts, links = (make(core.store.database, core.store.seam, core.config) for make in (SqlContacts, SqlLinks))
    yield "ask for a contact", contacts.request(ME, USERS[1001], "hi")
    yield "accept a contact", contacts.decide(USERS[1001], ME, True)
    yield "end a contact", contacts.remove(ME, USERS[1001])
    yield "contacts", contacts.contacts(ME, None, None)
    yield "requests", contacts.requests(ME, False, None, None)
    yield "sent requests", contacts.requests(ME, True, None, None)
    yield "add a link", links.add(BIG, ME, "newcode", 0, 1)
    yield "join by a link", links.join("newcode", USERS[500])
    yield "links", links.links(BIG, ME)
    yield "report", SqlReports(core.store.database).add(USERS[990], in_big + 7, "spam")
    profiles = SqlProfiles(core.store.database, core.store.seam)
    yield "own sessions", profiles.sessions(ME)
    yield "last seen", profiles.last_seen(ME, USERS[:100])
    yield "write last seen", profiles.write_seen([SeenSession(f"s{ME}", ME, "::1", 5)], 5)
    yield "dismiss", core.groups.dismiss(ME, BIG)
    yield "an account", SqlAccounts(core.store.database).update(ME, {"nickname": "z"})
    accounts = SqlAccounts(core.store.database)
    yield "a group as its users see it", core.groups.view(ME, BIG)
    yield "hidden from", core.store.conversations.hidden_from(ME, USERS[:100])
    yield "sessions that changed", accounts.sessions_changed(1995)
    new = TokenHash("new", f"f{ME}")
    yield "refresh", accounts.rotate_token(TokenHash(f"t{ME}", ""), new, 30_000, 60_000)
    yield "refresh again", accounts.rotate_token(TokenHash("new", f"f{ME}"), TokenHash("newer", f"f{ME}"), 0, 60_000)
    yield "reuse", accounts.rotate_token(TokenHash("old", f"f{ME}"), TokenHash("x", f"f{ME}"), 0, 60_000)
    yield "revoke", accounts.revoke_session(f"s{USERS[3]}")
    yield "journal", core.store.journal.page(Place(JOURNAL_ROWS, 0), 256)
    yield "journal of reads", core.store.journal.page(Place(JOURNAL_ROWS, 0), 256, {"conversation.read"})


async def _statements(core: Core) -> dict[str, tuple[str, list[Any]]]:
    """The distinct statements of all that, each with the parameters it was first run with."""
    found: dict[str, tuple[str, list[Any]]] = {}
    for name, work in _reads(core):
        with recorded(core) as recording:
            await work
        assert recording.statements, f"{name} asked the database nothing"
        for statement in recording.single_statements:
            if statement.mode in (Mode.NOW, Mode.PROOF, Mode.MARK) or statement.sql.startswith("INSERT"):
                continue
            found.setdefault(statement.sql, (name, _params(statement)))
    return found


def _params(statement: Stmt) -> list[Any]:
    each = statement.mode in (Mode.EACH, Mode.MANY)
    return list(statement.params[0] if each else statement.params)


async def _scans(core: Core, sql: str, params: list[Any]) -> list[str]:
    """The lines of a statement's plan that read a whole table or index."""
    engine = core.store.database.engine.name
    word = "EXPLAIN QUERY PLAN" if engine == "sqlite" else "EXPLAIN"

    def explain() -> Script[list[tuple[Any, ...]]]:
        return [tuple(row) for row in (yield rows(f"{word} {sql}", *params))]

    plan = await core.store.database.write(explain)
    if engine == "sqlite":  # lists of parameters and derived tables have to be scanned
        bad = [row[3] for row in plan if row[3].startswith("SCAN")]
        return [line for line in bad if line.split()[1] not in ("json_each", "p", "CONSTANT")]
    if engine == "mysql":
        return [str(row) for row in plan if row[3] in ("ALL", "index") and not str(row[2]).startswith("<")]
    return [row[0] for row in plan if "Seq Scan" in row[0]]


async def test_no_statement_reads_a_whole_table(core_url: str) -> None:
    async with open_test_core(core_url, store__lock_timeout_ms=20_000, edit__window_s=10**11) as core:
        database = core.store.database
        await database.write(_fill)
        if database.engine.name != "sqlite":  # nobody analyzes a SQLite file; its plans must be right without
            await database.write(lambda: _analyze(database.engine.name))
        wrong = []
        statements = await _statements(core)
        for sql, (name, params) in statements.items():
            wrong += [f"{name}: {line}\n    {sql}" for line in await _scans(core, sql, params)]
        if database.engine.name == "sqlite":
            await database.write(lambda: _analyze("sqlite"))
            for sql, (name, params) in statements.items():
                wrong += [f"{name}, analyzed: {line}\n    {sql}" for line in await _scans(core, sql, params)]
        assert not wrong, "\n".join(wrong)
        for scan in ("SELECT seq FROM messages WHERE content=?", "UPDATE members SET role=1 WHERE peer_id=?"):
            assert await _scans(core, scan, ["x"]), "a scan would not be noticed"
