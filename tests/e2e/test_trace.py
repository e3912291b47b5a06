"""Where is my message: across instances, by the reasons why it did not arrive."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from harness.chat import Client, Person, Refused, world
from harness.cluster import Cluster
from harness.server_process import ServerProcess

TEXT = "the text that no trace shows"


def make_key(server: Any) -> str:
    done = server.run("key", "add", f"trace{id(object())}", "--scope", "moderate", "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["key"])


async def trace(address: str, key: str, server_msg_id: str, user: Person | None = None) -> Any:
    query = {"server_msg_id": server_msg_id, **({"user_id": user.user_id} if user else {})}
    async with httpx.AsyncClient(base_url=address) as http:
        answer = await http.get("/admin/trace", params=query, headers={"Authorization": f"Bearer {key}"})
    assert TEXT not in answer.text
    assert answer.json()["err_code"] == 0, answer.text
    return answer.json()["data"]


def only(found: Any) -> tuple[str, list[str]]:
    (receiver,) = found["receivers"]
    return receiver["state"], sorted(one["result"] for one in receiver["connections"])


async def test_each_step_of_a_message_is_shown(server: ServerProcess) -> None:
    key = make_key(server)
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        first = await ann.send(ben, TEXT)
        assert only(await trace(server.address, key, first["server_msg_id"])) == ("offline", [])
        client = await ben.connect()
        await client.expect("SINGLE_CHAT", body=TEXT)  # resent
        found = await trace(server.address, key, first["server_msg_id"])
        assert only(found)[1] == ["later"]
        message = found["message"]
        assert (message["seq"], message["sender_id"], "content" in message) == (1, ann.user_id, False)
        second = await ann.send(ben, TEXT)
        got = await client.expect("SINGLE_CHAT", serverMsgId=second["server_msg_id"])
        found = await trace(server.address, key, second["server_msg_id"], ben)
        assert only(found) == ("pushed", ["pushed"])
        assert found["instances"][0]["pushed_at"] >= message["saved_at"] - 1000
        for ack, state in (("delivered", "delivered"), ("read", "read")):
            await client.acknowledge(got, ack)
            await _becomes(server, key, second["server_msg_id"], state)
        assert only(await trace(server.address, key, second["server_msg_id"], cid))[0] == "not_member"
        assert only(await trace(server.address, key, second["server_msg_id"], ann))[0] == "sender"
        await ben.put("/conversation/update", conversation_id=second["conversation_id"], recv_msg_opt=1)
        third = await ann.send(ben, TEXT)
        assert only(await trace(server.address, key, third["server_msg_id"]))[0] == "muted"
        for address, person in ((server.address, ann),):
            with pytest.raises(Refused, match="no_permission"):
                await person.get("/admin/trace", server_msg_id=third["server_msg_id"])
            shown = server.run("why", third["server_msg_id"], ben.user_id, "--server", address, "--key", key)
            assert shown.returncode == 0, shown.stderr
            assert "has set this conversation to receive nothing" in shown.stdout
        shown = server.run("why", second["server_msg_id"])
        assert f"{ben.user_id} has read it" in shown.stdout, shown.stderr
        assert "--server URL" in shown.stdout
        assert server.run("why", "12345").returncode == 1


async def _becomes(server: ServerProcess, key: str, server_msg_id: str, state: str) -> None:
    for _ in range(100):
        if only(await trace(server.address, key, server_msg_id))[0] == state:
            return
    raise AssertionError(f"not {state}")


@pytest.mark.servers
@pytest.mark.xdist_group("three")
async def test_all_instances_are_asked_and_one_that_is_silent_is_named(three: Cluster) -> None:
    key = make_key(three)
    async with world(three, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        clients: list[Client] = []
        for number in range(3):
            client = await ben.open(uri=three[number].ws_address)
            await client.sign_in()
            clients.append(client)
        sent = await ann.send(ben, TEXT)
        for client in clients:
            await client.expect("SINGLE_CHAT", serverMsgId=sent["server_msg_id"])
        for number in range(3):
            found = await trace(three[number].address, key, sent["server_msg_id"])
            assert only(found) == ("pushed", ["pushed"] * 3)
            assert [one["answered"] for one in found["instances"]] == [True] * 3
        with three[2].paused():
            found = await trace(three[0].address, key, sent["server_msg_id"])
            assert only(found) == ("pushed", ["pushed"] * 2)
            assert [one["answered"] for one in found["instances"]] == [True, True, False]
