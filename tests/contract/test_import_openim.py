"""`nexo import-openim`: what an export of OpenIM's MongoDB becomes, on every engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.core import open_test_core
from nexo import cli
from nexo.config import parse_store_url
from nexo.errors import StartupError
from nexo.openim.export.documents import documents, plain
from nexo.openim.export.staging import digest_of, fill
from nexo.store.check import check
from nexo.store.engines.sqlite.import_tables import made_tables
from nexo.store.legacy.id_mapping import group_id_of
from nexo.store.openim.sql_openim import SqlOpenim
from nexo.wire.openim.shown import msg_data

AT = 1_700_000_000_000
CHAT = "si_ann_ben"


def message(seq: int, sender: str, text: str, **more: Any) -> dict[str, Any]:
    made = {
        "send_id": sender, "recv_id": "ben" if sender == "ann" else "ann", "group_id": "",
        "client_msg_id": f"{seq:032x}", "server_msg_id": f"{seq:x}", "sender_platform_id": 2, "session_type": 1,
        "msg_from": 100, "content_type": 101, "content": json.dumps({"content": text}), "seq": seq,
        "send_time": AT + seq, "create_time": AT + seq, "status": 2, "options": {}, "at_user_id_list": [], "ex": "",
    }  # fmt: skip
    return made | more


def stored(*messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"msg": one, "revoke": None, "del_list": [], "is_read": False} | more for one in messages]


def export() -> dict[str, list[dict[str, Any]]]:
    """What OpenIM keeps of three people, a chat of 130 messages and a group."""
    texts = [message(seq, "ann" if seq % 2 else "ben", f"text {seq}") for seq in range(1, 131)]
    documents_of = [stored(*texts[:100]), stored(*texts[100:])]
    documents_of[0][2]["revoke"] = {"role": 0, "user_id": "ann", "nickname": "Ann", "time": AT + 500}
    documents_of[1] += [{"msg": None, "revoke": None, "del_list": []}] * 70  # places that are not used yet
    in_group = {"session_type": 3, "group_id": "4711", "recv_id": ""}
    group = stored(
        message(1, "ann", "", content_type=1501, msg_from=200, **in_group),
        message(2, "ann", "", content_type=106, content='{"text":"hello @Ben","atUserList":["ben"]}',
                at_user_id_list=["ben"], **in_group),
        message(3, "ben", "", content_type=102, **in_group, content=json.dumps(
            {"sourcePicture": {"url": "https://files.example/p.png", "size": 7, "width": 1, "height": 2}})),
        message(4, "cid", "", content_type=109, content='{"description":"here","longitude":1.5,"latitude":2.5}',
                **in_group),
    )  # fmt: skip
    own = {"conversation_type": 1, "conversation_id": CHAT}
    return {
        "user": [{"user_id": name, "nickname": name.title(), "create_time": {"$date": "2023-11-14T22:13:20Z"}}
                 for name in ("ann", "ben", "cid")],
        "group": [{"group_id": "4711", "group_name": "Team", "creator_user_id": "ann", "status": 0,
                   "need_verification": 2, "create_time": {"$date": {"$numberLong": str(AT)}}}],
        "group_member": [{"group_id": "4711", "user_id": name, "role_level": role, "join_time": AT}
                         for name, role in (("ann", 100), ("ben", 60), ("cid", 20))],
        "conversation": [{"owner_user_id": "ann", "user_id": "ben", "recv_msg_opt": 2, "is_pinned": True, **own},
                         {"owner_user_id": "ben", "user_id": "ann", "recv_msg_opt": 0, **own}],
        "msg": [{"doc_id": f"{CHAT}:{number}", "msgs": listed} for number, listed in enumerate(documents_of)]
               + [{"doc_id": "sg_4711:0", "msgs": group},
                  {"doc_id": "n_4711:0", "msgs": stored(message(1, "ann", ""))}],
        "seq_user": [{"user_id": "ben", "conversation_id": CHAT, "min_seq": 0, "max_seq": 0,
                      "read_seq": {"$numberLong": "120"}},
                     {"user_id": "cid", "conversation_id": "sg_4711", "min_seq": 0, "max_seq": 0, "read_seq": 2}],
        "friend": [{"owner_user_id": "ann", "friend_user_id": "ben"}],
    }  # fmt: skip


def write(folder: Path, found: dict[str, list[dict[str, Any]]]) -> Path:
    folder.mkdir()
    for name, listed in found.items():
        (folder / f"{name}.json").write_text("".join(json.dumps(one) + "\n" for one in listed))
    return folder


async def nexo(cwd: Path, source: Path, target: str, *more: str) -> Result:
    """The command in this process, in a thread with an event loop of its own."""
    env = {name: None for name in os.environ if name.startswith("NEXO_")}
    arguments = ["import-openim", "--from", str(source), "--to", target, "--json", *more]
    with contextlib.chdir(cwd):
        return await asyncio.to_thread(CliRunner().invoke, cli.app, arguments, env=env, prog_name="nexo")


async def test_an_export_becomes_a_store(store_url: str, tmp_path: Path) -> None:
    done = await nexo(tmp_path, write(tmp_path / "export", export()), store_url)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["good"], report["users"], report["messages"], report["recalls"]) == (True, 3, 133, 1)
    assert report["issues"] == {
        "notification_left_out": 2, "setting_left_out": 1, "table_not_imported": 1, "group_id_changed": 1,
        "password_not_usable": 3,
    }  # fmt: skip
    assert not (tmp_path / "nexo-import-openim/tables.db").exists()
    assert not (await check(parse_store_url(store_url))).counts
    async with open_test_core(store_url, ()) as core:
        store = SqlOpenim(core.store.database, core.config, 0)
        group = group_id_of("4711")
        heads = {head.conversation_id: head for head in await store.heads("ben")}
        assert (heads["si_ann:ben"].head, heads["si_ann:ben"].unread) == (130, 5)
        page = await store.pull("ben", "si_ann:ben", 1, 130, 200)
        shown = [msg_data(one.message, one.number) for one in page.messages]
        assert [one["seq"] for one in shown] == list(range(1, 131))
        assert [one["clientMsgID"] for one in shown] == [f"{seq:032x}" for seq in range(1, 131)]
        assert shown[2]["contentType"] == 2101
        assert json.loads(shown[3]["content"]) == {"content": "text 4"}
        in_group = await store.pull("cid", f"sg_{group}", 1, 9, 9)
        kinds = [msg_data(one.message, one.number) for one in in_group.messages]
        assert [one["contentType"] for one in kinds] == [106, 102, 109]
        assert json.loads(kinds[0]["content"])["text"] == "hello @Ben"
        assert json.loads(kinds[1]["content"])["sourcePicture"]["url"] == "https://files.example/p.png"
        assert json.loads(kinds[2]["content"])["longitude"] == 1.5
        assert {head.conversation_id: head.unread for head in await store.heads("cid")} == {f"sg_{group}": 1}
        found = await core.groups.info(group)
        assert (found.owner_id, found.name, found.join_policy) == ("ann", "Team", "open")


async def test_a_second_run_goes_on_and_finds_the_same(store_url: str, tmp_path: Path) -> None:
    source = write(tmp_path / "export", export())
    file, seen = tmp_path / "a.db", []

    def make() -> list[tuple[str, str, int]]:
        def filled(tables: Any) -> list[tuple[str, str, int]]:
            seen.append(digest_of(source))
            return fill(source, tables, lambda *_: None)

        return made_tables(file, digest_of(source), filled)

    assert make() == make()
    (source / "user.json").write_text('{"user_id":"dan"}\n')
    make()
    assert len(seen) == 2  # made once, found again, and made anew of another export
    assert (await nexo(tmp_path, source, store_url)).exit_code == 0
    refused = await nexo(tmp_path, source, store_url)
    assert refused.exit_code == 1
    assert "not empty" in refused.stderr


async def test_what_a_user_deleted_needs_a_decision(tmp_path: Path) -> None:
    found = export()
    found["msg"][0]["msgs"][5]["del_list"] = ["ben"]
    target = f"sqlite:///{tmp_path}/data/nexo.db"
    refused = await nexo(tmp_path, write(tmp_path / "export", found), target)
    assert refused.exit_code == 1
    assert "deletion_left_out" in refused.stderr
    assert (await nexo(tmp_path, tmp_path / "export", target, "--accept")).exit_code == 0


def bson(value: dict[str, Any]) -> bytes:
    out = b""
    for name, item in value.items():
        key = name.encode() + b"\0"
        if isinstance(item, bool):
            out += b"\x08" + key + bytes((item,))
        elif isinstance(item, int):
            out += b"\x12" + key + struct.pack("<q", item)
        elif isinstance(item, str):
            raw = item.encode() + b"\0"
            out += b"\x02" + key + struct.pack("<i", len(raw)) + raw
        elif item is None:
            out += b"\x0a" + key
        elif isinstance(item, list):
            out += b"\x04" + key + bson({str(i): one for i, one in enumerate(item)})
        else:
            out += b"\x03" + key + bson(item)
    return struct.pack("<i", len(out) + 5) + out + b"\0"


def test_bson_is_read_as_json_is(tmp_path: Path) -> None:
    source = write(tmp_path / "export", export())
    (tmp_path / "bson").mkdir()
    for name, listed in export().items():
        made = [{key: plain(value) for key, value in one.items()} for one in listed]
        (tmp_path / "bson" / f"{name}.bson").write_bytes(b"".join(bson(one) for one in made))
        assert list(documents(tmp_path / "bson", name)) == list(documents(source, name)) == made


@pytest.mark.parametrize(
    "data", [b"\x05\0\0", b"\xff\xff\xff\x7f", b"\x0c\0\0\0\x63a\0\0\0\0\0\0", bson({"a": "b"})[:-3]]
)
def test_a_broken_export_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "user.bson").write_bytes(data)
    with pytest.raises(StartupError):
        list(documents(tmp_path, "user"))
