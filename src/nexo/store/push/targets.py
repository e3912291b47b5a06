"""Devices that are registered for push, as rows. Each belongs to a session: a row without a live one counts as none."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from nexo.core.calls import CallState
from nexo.core.model import SessionOrigin
from nexo.core.push import KINDS, PushTarget
from nexo.errors import NexoError
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

SWEPT = 200
_TARGET = "p.push_id,p.user_id,p.kind,p.address,p.device_id,p.lang"
# A session that cannot be refreshed lasts as its token does, which is shorter than a device is to be reached.
LIVE = (
    "s.revoked_at=0 AND s.version=u.session_version AND u.disabled_at=0 AND u.deleted_at=0 "
    f"AND (s.expires_at>? OR s.family_hash='' OR s.origin={int(SessionOrigin.EXTERNAL)})"
)
JOINED = "push_targets p JOIN sessions s ON s.sid=p.sid AND s.user_id=p.user_id JOIN users u ON u.user_id=p.user_id"


class NewTarget(NamedTuple):
    user_id: str
    sid: str
    kind: str
    address: str
    device_id: str
    lang: str


def address_hash(kind: str, address: str) -> str:
    return hashlib.sha256(f"{kind}:{address}".encode()).hexdigest()


def register(sql: Sql, new: NewTarget, max_per_user: int) -> Script[None]:
    """Registers a device. The same address of another session or user moves here; what the session had of this kind is
    replaced; above `max_per_user` the oldest ones are removed."""
    now_ms = yield NOW
    live = yield query(f"SELECT 1 FROM sessions WHERE sid=? AND revoked_at=0{sql.for_update}", new.sid)
    if not live:
        raise NexoError("session_invalid")
    hashed = address_hash(new.kind, new.address)
    found = yield query(f"SELECT push_id,user_id FROM push_targets WHERE address_hash=?{sql.for_update}", hashed)
    if found:
        ((push_id, user_id),) = found
        if user_id != new.user_id:  # what the device shows of the other account is not this one's
            yield do("DELETE FROM push_notes WHERE push_id=?", push_id)
        yield do(
            "UPDATE push_targets SET user_id=?,sid=?,address=?,device_id=?,lang=?,created_at=? WHERE push_id=?",
            new.user_id,
            new.sid,
            new.address,
            new.device_id,
            new.lang,
            now_ms,
            push_id,
        )
    else:
        columns = "user_id,sid,kind,address_hash,address,device_id,lang,created_at"
        values = (new.user_id, new.sid, new.kind, hashed, new.address, new.device_id, new.lang, now_ms)
        yield do(f"INSERT INTO push_targets ({columns}) VALUES (?,?,?,?,?,?,?,?)", *values)
    rows = yield query(
        "SELECT push_id,sid,kind,address_hash FROM push_targets WHERE user_id=? ORDER BY created_at DESC,push_id DESC",
        new.user_id,
    )
    doomed = [row[0] for row in rows if (row[1], row[2]) == (new.sid, new.kind) and row[3] != hashed]
    doomed += [row[0] for row in [row for row in rows if row[0] not in doomed][max_per_user:]]
    yield from remove(sql, doomed)


def unregister(
    sql: Sql, user_id: str, sid: str, kind: str | None, address: str | None, device_id: str | None
) -> Script[int]:
    """Removes devices of a user: that of an address or of a `device_id`, otherwise those of the session."""
    where, params = "user_id=?", list[Any]([user_id])
    if address is not None:
        kinds = KINDS if kind is None else (kind,)
        chosen = sql.one_of("address_hash", [address_hash(one, address) for one in kinds])
        where, params = f"{where} AND {chosen.sql}", [*params, *chosen.params]
    if device_id is not None:
        where, params = f"{where} AND device_id=?", [*params, device_id]
    if address is None and device_id is None:
        where, params = f"{where} AND sid=?", [*params, sid]
    if kind is not None:
        where, params = f"{where} AND kind=?", [*params, kind]
    found = yield query(f"SELECT push_id FROM push_targets WHERE {where}", *params)
    yield from remove(sql, [row[0] for row in found])
    return len(found)


def remove(sql: Sql, push_ids: list[int]) -> Script[None]:
    if push_ids:
        chosen = sql.one_of("push_id", push_ids, "bigint")
        yield do(f"DELETE FROM push_notes WHERE {chosen.sql}", *chosen.params)
        yield do(f"DELETE FROM push_targets WHERE {chosen.sql}", *chosen.params)


def forget_targets(user_id: str) -> Script[None]:
    """Removes everything of an account that is closed."""
    yield do("DELETE FROM push_notes WHERE push_id IN (SELECT push_id FROM push_targets WHERE user_id=?)", user_id)
    yield do("DELETE FROM push_targets WHERE user_id=?", user_id)


def of_users(sql: Sql, user_ids: list[str]) -> Script[list[PushTarget]]:
    """Returns the devices of these users, of live sessions only."""
    now_ms = yield NOW
    chosen = sql.one_of("p.user_id", user_ids)
    found = yield query(
        f"SELECT {_TARGET} FROM {JOINED} WHERE {chosen.sql} AND {LIVE} ORDER BY p.push_id", *chosen.params, now_ms
    )
    return [PushTarget(*row) for row in found]


def name_of(user_id: str) -> Script[str]:
    found = yield query("SELECT nickname FROM users WHERE user_id=?", user_id)
    return found[0][0] or user_id if found else user_id


def is_ringing(call_id: int) -> Script[bool]:
    return bool((yield query(f"SELECT 1 FROM calls WHERE call_id=? AND state={int(CallState.RINGING)}", call_id)))


def is_any() -> Script[bool]:
    """Returns whether any device is registered."""
    return bool((yield query("SELECT 1 FROM push_targets LIMIT 1")))


def sweep(sql: Sql, keep_ms: int) -> Script[int]:
    """Removes some devices whose sessions have ended, and notes that show nothing and are old. Returns how many."""
    now_ms = yield NOW
    ended = yield query(
        "SELECT p.push_id FROM push_targets p LEFT JOIN sessions s ON s.sid=p.sid AND s.user_id=p.user_id "
        f"LEFT JOIN users u ON u.user_id=p.user_id WHERE s.sid IS NULL OR NOT ({LIVE}) LIMIT {SWEPT}",
        now_ms,
    )
    yield from remove(sql, [row[0] for row in ended])
    old = yield query(
        f"SELECT push_id,conv FROM push_notes WHERE state=0 AND shown_seq=0 AND sent_at<? AND made_at<? LIMIT {SWEPT}",
        now_ms - keep_ms,
        now_ms - keep_ms,
    )
    for push_id, conv in old:
        yield do("DELETE FROM push_notes WHERE push_id=? AND conv=? AND state=0", push_id, conv)
    return len(ended) + len(old)
