"""`nexo backup` beside a server that writes; another server continues from what `nexo restore` made of it."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
from pathlib import Path

from harness import processes
from harness.chat import meet
from harness.server_process import NEXO, ServerProcess, environment


def nexo(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NEXO, *arguments], env=environment({}), capture_output=True, text=True, check=False, timeout=60
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_backup_beside_a_busy_server_holds_what_was_acknowledged_before_it_and_sessions_continue() -> None:
    with ServerProcess() as server:
        backups = server.directory / "backups"
        backups.mkdir()
        async with meet(server, "ann", "ben") as (ann, ben):
            before = [await ann.say(ben, f"before {number}") for number in range(50)]
            stop = asyncio.Event()

            async def go_on() -> int:
                count = 0
                while not stop.is_set():
                    await ann.say(ben, f"meanwhile {count}")
                    count += 1
                return count

            writing = asyncio.create_task(go_on())
            done = await asyncio.to_thread(server.run, "backup", backups, "--json")
            stop.set()
            assert await writing > 0, "the server wrote while it was backed up"
            assert done.returncode == 0, done.stderr
            report = json.loads(done.stdout)
            assert "copying" in done.stderr
        tokens = ann.me.tokens
    backup = Path(report["backup"])
    assert backup.parent == backups
    assert [path.name for path in backups.iterdir()] == [backup.name], "nothing else is left there"
    assert mode(backup) == 0o600
    assert report["secret"]
    assert report["laws_checked"]
    assert report["findings"] == {}
    assert report["messages"] >= len(before)
    restored = processes.new_dir("restored") / "data"
    done = nexo("restore", backup, "--data", restored)
    assert done.returncode == 0, done.stderr
    assert mode(restored / "nexo.db") == mode(restored / "secret") == 0o600
    with ServerProcess(data=restored) as again:
        again.check()
        async with meet(again, "cid") as (cid,):
            headers = {"Authorization": f"Bearer {tokens.access}"}
            chat = "si_" + ":".join(sorted((ann.user_id, ben.user_id)))
            range_asked = {"conversation_id": chat, "begin_seq": 1, "limit": 50}
            pulled = await cid.me.world.call("GET", "/msg/pull", params=range_asked, headers=headers)
            found = [message["server_msg_id"] for message in pulled["messages"]]
            assert found == [ack["serverMsgId"] for ack in before]
