"""No statement that serves a user reads a whole table, on any engine: the plans of the real statements, captured."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any

from harness.core import open_test_core, say
from harness.statements import recorded
from nexo.app import Core
from nexo.store.engine import Mode, Script, Stmt, do, rows

USERS = [f"u{n:04}" for n in range(2000)]
ME = USERS[1000]
BIG = "g_000000000000"  # 6000 messages, 60 members; ME has come back to it once
CHATS_EACH = 3
BIG_MESSAGES = 6000
CHUNK = 300
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
    marks = [(FIRST_ID, user, seq, "x") for user in USERS[:60] for seq in range(1, 60)]
    yield from _insert("mentions", "conv,user_id,seq,sender_id", marks)
    requests = [(f"g_{n:012}", user) for n in range(20) for user in USERS[1500:1600]]
    yield from _insert("join_requests", "group_id,user_id", requests)


def _analyze(engine: str) -> Script[None]:
    if engine == "mysql":
        tables = "users,conversations,members,member_spans,chat_groups,messages,mentions,join_requests"
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
    yield "recall", conversations.recall(USERS[970], in_big)
    yield "transfer", core.groups.transfer(USERS[970], BIG, ME)
    yield "dismiss", core.groups.dismiss(ME, BIG)


async def _statements(core: Core) -> dict[str, tuple[str, list[Any]]]:
    """The distinct statements of all that, each with the parameters it was first run with."""
    found: dict[str, tuple[str, list[Any]]] = {}
    for name, work in _reads(core):
        with recorded(core) as recording:
            await work
        assert recording.statements, f"{name} asked the database nothing"
        for statement in recording.statements:
            if statement.mode in (Mode.NOW, Mode.PROOF) or statement.sql.startswith("INSERT"):
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
    async with open_test_core(core_url, store__lock_timeout_ms=20_000) as core:
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
