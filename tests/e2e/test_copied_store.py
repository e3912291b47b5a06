"""From the embedded database to a server database, with clients that notice nothing."""

from __future__ import annotations

import subprocess
from typing import Any

import httpx
import pytest

from harness import servers
from harness.processes import new_dir
from harness.server_process import NEXO, ServerProcess, environment


def call(server: ServerProcess, method: str, path: str, token: str = "", **options: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = httpx.request(method, f"http://127.0.0.1:{server.port}{path}", headers=headers, timeout=30, **options)
    body = answer.json()
    assert body["err_code"] == 0, body
    return body["data"]


@pytest.mark.servers
def test_clients_go_on_with_their_tokens_and_cursors_after_the_store_was_copied() -> None:
    database = servers.postgres()
    target = database.create_database()
    with ServerProcess() as old:
        for user in ("ann", "bob"):
            call(old, "POST", "/user/register", json={"user_id": user, "password": "password-of-both"})
        ann, bob = (
            call(old, "POST", "/auth/login", json={"user_id": user, "password": "password-of-both"})
            for user in ("ann", "bob")
        )
        first = {"client_msg_id": "one", "recv_id": "bob", "content": "before"}
        sent = call(old, "POST", "/msg/send", ann["access_token"], json=first)
        place = {"conversation_id": sent["conversation_id"]}
        call(old, "POST", "/conversation/read", bob["access_token"], json={**place, "seq": 1})
        old.stop()
        source = f"sqlite:///{old.data}/nexo.db"
        command = [NEXO, "copy-store", "--from", source, "--to", "env:NEW_DB"]
        copied = subprocess.run(
            command,
            env={**environment({}), "NEW_DB": target},
            cwd=new_dir("copy"),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert copied.returncode == 0, copied.stderr
        assert str(old.data / "secret") in copied.stdout
        secret = (old.data / "secret").read_text().strip()
        assert secret not in copied.stdout + copied.stderr
    with ServerProcess(store__url=target, auth__secret=secret) as new:
        again = call(new, "POST", "/msg/send", ann["access_token"], json=first)
        assert again == sent, "a retry after the move is still the same message"
        second = {**first, "client_msg_id": "two", "content": "after"}
        assert call(new, "POST", "/msg/send", ann["access_token"], json=second)["seq"] == 2
        refreshed = call(new, "POST", "/auth/refresh", json={"refresh_token": bob["refresh_token"]})
        heads = call(new, "GET", "/conversation/sync", refreshed["access_token"])["conversations"]
        assert [(head["head_seq"], head["read_seq"], head["unread"]) for head in heads] == [(2, 1, 1)]
    database.drop_database(target)
