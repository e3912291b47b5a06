"""Three instances on one database: what happens on one is seen on the others. (The suites of single instances
run on three in the other test_cluster_*.py files; this is what only exists between instances.)"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from harness.chat import Client, Person, Refused, world
from harness.cluster import Cluster, cluster, cpu_s
from harness.waiting import time_passes, until

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]


async def at(person: Person, three: Cluster, number: int) -> Client:
    """A connection to a certain instance."""
    client = await person.open(uri=three[number].ws_address)
    await client.sign_in()
    return client


async def test_a_message_and_its_receipts_cross(three: Cluster) -> None:
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        sender, own, receiver = await at(ann, three, 0), await at(ann, three, 2), await at(ben, three, 1)
        saved = await sender.say(ben, "across")
        for client in (receiver, own):
            got = await client.expect("SINGLE_CHAT", body="across")
            assert got["serverMsgId"] == saved["serverMsgId"]
        await receiver.acknowledge(got, "delivered")
        for client in (sender, own):
            await client.expect("ACK", ackType="delivered", serverMsgId=saved["serverMsgId"])
        await receiver.acknowledge(got, "read")
        for client in (sender, own):
            await client.expect("ACK", ackType="read", serverMsgId=saved["serverMsgId"], from_=ben.user_id)


async def test_reading_on_one_device_is_told_to_another_elsewhere(three: Cluster) -> None:
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        phone, desk = await at(ann, three, 0), await at(ann, three, 1)
        sent = await ben.send(ann, "read me")
        await phone.acknowledge(await phone.expect("SINGLE_CHAT"), "read")
        await desk.expect("ACK", ackType="read", serverMsgId=sent["server_msg_id"], from_=ann.user_id)


async def test_logging_out_closes_the_sockets_of_the_session_everywhere(three: Cluster) -> None:
    async with world(three, check_pushes=False) as here:
        ann = await here.person("ann")
        sockets = [await at(ann, three, number) for number in range(3)]
        await ann.post("/auth/logout")
        for socket in sockets:
            await socket.expect_error("session_invalid")
            await socket.expect_close()
        for _ in range(3):  # whichever instance is asked, and whatever it had cached
            with pytest.raises(Refused) as refused:
                await ann.get("/user/info")
            assert refused.value.name == "session_invalid"


async def test_a_group_lives_on_all_instances(three: Cluster) -> None:
    async with world(three) as here:
        people = await here.people("ann", "ben", "cid", "dan")
        ann, ben, cid, dan = [await at(person, three, i % 3) for i, person in enumerate(people)]
        group = await ann.me.found_group(ben, cid)
        for client in (ann, ben, cid):
            await client.expect("GROUP_EVENT", msgType=101)
        await ben.me.post("/group/invite", group_id=group, user_ids=[dan.user_id])
        await dan.expect("SYNC")
        await dan.expect("GROUP_EVENT", msgType=102)
        said = await cid.say(group, "all", mentions=[dan.user_id])
        for client in (ann, ben, dan):
            got = await client.expect("GROUP_CHAT", body="all")
            assert got.get("important", False) is (client is dan)
        await cid.ask({"type": "MESSAGE_REVOKE", "serverMsgId": said["serverMsgId"]}, "ACK", ackType="revoked")
        for client in (ann, ben, dan):
            await client.expect("MESSAGE_REVOKED", serverMsgId=said["serverMsgId"])
        await ann.me.post("/group/remove_member", group_id=group, user_id=dan.user_id)
        await dan.expect("GROUP_EVENT", msgType=104)
        await ann.say(group, "without dan")
        await ben.expect("GROUP_CHAT", body="without dan")
        await dan.expect_nothing("GROUP_CHAT", body="without dan")


async def test_settings_count_on_whichever_instance_their_user_is(three: Cluster) -> None:
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        receiver = await at(ben, three, 1)
        sent = await ann.send(ben, "first")
        await receiver.expect("SINGLE_CHAT")
        name = sent["conversation_id"]
        await ben.put("/conversation/update", conversation_id=name, recv_msg_opt=2)
        deadline = time.monotonic() + 5
        while not (await said_to(ann, ben, receiver)).get("silent"):
            assert time.monotonic() < deadline


async def said_to(sender: Person, person: Person, client: Client) -> dict[str, object]:
    sent = await sender.send(person, "again")
    return await client.expect("SINGLE_CHAT", serverMsgId=sent["server_msg_id"])


async def test_presence_is_of_all_instances(three: Cluster) -> None:
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        watcher = await at(ann, three, 0)
        await watcher.ask({"type": "PRESENCE", "subscribe": [ben.user_id]}, "PRESENCE")
        phone = await ben.open(uri=three[1].ws_address)
        await phone.sign_in(await ben.log_in(1, "phone"))
        shown = await watcher.expect("PRESENCE")
        assert shown["users"] == [{"userId": ben.user_id, "online": True, "platforms": [1]}]
        desk = await at(ben, three, 2)
        shown = await watcher.expect("PRESENCE")
        assert shown["users"] == [{"userId": ben.user_id, "online": True, "platforms": [1, 5]}]
        for _ in range(3):
            (told,) = (await ann.get("/user/online", user_ids=ben.user_id))["users"]
            assert told.pop("last_seen_at") > 0
            assert told == {"user_id": ben.user_id, "online": True, "platforms": [1, 5]}
        await phone.close()
        await desk.close()
        shown = await watcher.expect("PRESENCE", where=lambda frame: not frame["users"][0]["online"])
        assert shown["users"][0]["platforms"] == []


async def test_a_retry_through_another_instance_is_the_same_message(three: Cluster) -> None:
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        clients = [await at(ann, three, number) for number in range(3)]
        receiver = await at(ben, three, 1)
        frame = clients[0].message(ben, "once")
        for client in clients:
            await client.send(frame)
        acks = [await client.expect("ACK", ackType="saved") for client in clients]
        assert acks[0] == acks[1] == acks[2]
        await receiver.expect("SINGLE_CHAT", serverMsgId=acks[0]["serverMsgId"])
        page = await ann.get("/msg/pull", conversation_id=acks[0]["conversationId"], begin_seq=1)
        assert len(page["messages"]) == 1


async def test_an_orderly_stop_is_no_loss_and_its_people_come_back_elsewhere(three: Cluster) -> None:
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        listener, leaving = await at(ben, three, 0), await at(ann, three, 2)
        await asyncio.to_thread(three[2].stop)
        await leaving.expect_error("server_shutdown")
        await asyncio.to_thread(three[2].start)
        again = await at(ann, three, 1)
        await again.say(ben, "still here")
        await listener.expect("SINGLE_CHAT", body="still here")
        assert listener.seen("RESYNC") == []


async def test_an_idle_instance_does_not_work_for_the_others(three: Cluster) -> None:
    """Nobody is on the third one while two chat as fast as they can."""
    async with world(three) as here:
        ann, ben = await here.people("ann", "ben")
        sender, receiver = await at(ann, three, 0), await at(ben, three, 1)
        await sender.say(ben, "warm")
        quiet = cpu_s(three[2])
        await time_passes(2)
        quiet = cpu_s(three[2]) - quiet
        busy, started, sent = cpu_s(three[2]), time.monotonic(), 0
        while time.monotonic() - started < 2:
            await sender.send_at_once(*(sender.message(ben, "load") for _ in range(50)))
            for _ in range(50):
                await sender.expect("ACK", ackType="saved")
            sent += 50
        busy = cpu_s(three[2]) - busy
        await receiver.expect("SINGLE_CHAT", msgSeq=sent + 1)
        print(f"idle instance: {quiet / 2:.1%} of a core in silence, {busy / 2:.1%} with {sent / 2:.0f} messages/s")
        assert busy <= quiet + 0.05


@pytest.fixture(scope="module")
def limited() -> Iterator[Cluster]:
    with cluster("postgresql", 2, limits__logins_per_min=5, limits__connections_per_user=2) as running:
        yield running


async def test_wrong_passwords_are_counted_over_all_instances_together(limited: Cluster) -> None:
    async with world(limited, check_pushes=False) as here:
        ann = await here.person("ann")
        for _ in range(6):
            await ann.log_in()  # right ones do not count
        answers = []
        for _ in range(8):
            try:
                await ann.log_in(password="wrong password")
            except Refused as refused:
                answers.append(refused.name)
        assert answers == ["invalid_credentials"] * 5 + ["too_many_requests"] * 3


async def test_connections_of_a_user_are_counted_over_all_instances_together(limited: Cluster) -> None:
    async def try_at(person: Person, number: int) -> Client | None:
        client = await person.open(uri=limited[number].ws_address)
        await client.send({"type": "AUTH", "token": person.tokens.access})
        answer = await client.expect(where=lambda frame: frame["type"] in ("AUTH_OK", "AUTH_FAIL"))
        assert answer.get("reason", "too_many_requests") == "too_many_requests"
        return client if answer["type"] == "AUTH_OK" else None

    async with world(limited) as here:
        ann, ben = await here.people("ann", "ben")
        first, second = await at(ann, limited, 0), await at(ann, limited, 0)  # two tabs: the same platform
        for number in (0, 1):
            assert await try_at(ann, number) is None
        await at(ben, limited, 1)
        await first.close()
        await until(lambda: try_at(ann, 1), "the first one, which is gone, is not counted any more")
        await second.close()


async def test_a_group_too_large_to_look_everybody_up_is_told_everywhere_and_counted_together() -> None:
    """Five members are many here; four of them online, two on each instance, are enough for notices."""
    few = {"bus__lookup_max_members": 4, "group__strategy__online_user_threshold": 4}
    with cluster("mariadb", 2, **few) as two:
        async with world(two) as here:
            people = await here.people("ann", "ben", "cid", "dan", "eve")
            ann, ben, cid = [await at(person, two, i % 2) for i, person in enumerate(people[:3])]
            group = await ann.me.found_group(*people[1:])
            await ann.say(group, "whole")
            for client in (ben, cid):
                await client.expect("GROUP_CHAT", body="whole")
            dan = await at(people[3], two, 1)

            async def both_are_notified() -> bool:
                await ann.say(group, "more")
                return bool(dan.seen("GROUP_NOTIFY") and cid.seen("GROUP_NOTIFY"))

            await until(both_are_notified, "it is known on both instances that there are four")
