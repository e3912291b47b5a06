"""Push on a running server: notifications of a day away, every kind of device, and what no log has."""

from __future__ import annotations

import contextlib
import json
import secrets
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from e2e.test_calls import invitation
from harness.chat import Refused, fresh_id, world
from harness.push_services import browser_subscription
from harness.receiver import Event, receiving
from harness.server_process import ServerProcess
from harness.waiting import until
from nexo.core.webhook_signature import new_secret
from nexo.push.web_crypto import new_key

NOWHERE = "https://127.0.0.1:1"


def account_file(folder: Path) -> Path:
    """A service account of FCM whose tokens are nowhere to be had."""
    key = rsa.generate_private_key(65537, 2048)
    pkcs8, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    account = {
        "type": "service_account",
        "project_id": "chat-42",
        "private_key_id": "k1",
        "private_key": key.private_bytes(serialization.Encoding.PEM, pkcs8, none).decode(),
        "client_email": "push@chat-42.example.com",
        "token_uri": f"{NOWHERE}/token",
    }
    file = folder / "account.json"
    file.write_text(json.dumps(account))
    return file


def every_kind(folder: Path) -> dict[str, Any]:
    key = folder / "key.p8"
    key.write_text(new_key())
    return {
        "hooks__allow_private": True,
        "push__apns__key_file": key,
        "push__apns__key_id": "KEY1234567",
        "push__apns__team_id": "TEAM123456",
        "push__apns__topic": "com.example.chat",
        "push__apns__url": NOWHERE,
        "push__fcm__service_account_file": account_file(folder),
        "push__fcm__url": NOWHERE,
    }


async def test_no_token_key_or_credential_is_in_a_log_or_shown_to_an_operator(tmp_path: Path) -> None:
    async with receiving() as receiver:

        async def fail(events: list[Event]) -> int:
            return 500

        receiver.decide = fail
        mark = secrets.token_hex(16)  # also a token of APNs
        hidden = {"turn_secret": f"turn-{mark}", "hook_secret": f"whsec_{mark}"}
        settings = {
            "push__wait_ms": 100,
            "push__hook__url": receiver.url,
            "push__hook__secret": hidden["hook_secret"],
            "calls__turn": "turn:127.0.0.1:3478",
            "calls__turn_secret": hidden["turn_secret"],
            **every_kind(tmp_path),
        }
        with ServerProcess(log_level="debug", **settings) as server:
            async with world(server, check_pushes=False) as here:
                ann, ben = await here.people("ann", "ben")
                caller = await ann.connect()
                subscription = browser_subscription(f"{NOWHERE}/{mark}", secrets.token_bytes(16))
                hidden |= subscription["keys"]
                tokens = {"hook": f"hook-{mark}", "apns": mark, "fcm": f"fcm:{mark}"}
                for kind, token in tokens.items():
                    await ben.post("/push/register", kind=kind, token=token, device_id=kind)
                await ben.post("/push/register", kind="web", subscription=subscription, device_id="web")
                for wrong in (
                    {"kind": "apns", "token": f"not hexadecimal {mark}", "device_id": "d"},
                    {"kind": "hook", "token": [mark], "device_id": "d"},
                    {"kind": "web", "subscription": {"endpoint": mark, "keys": mark}, "device_id": "d"},
                    {"kind": mark, "token": mark, "device_id": "d"},
                ):
                    with contextlib.suppress(Refused):
                        await ben.post("/push/register", **wrong)
                        raise AssertionError(f"taken: {wrong}")
                await here.http.post(
                    "/push/register",
                    content=f'{{"token": "{mark}", ',
                    headers={"Authorization": f"Bearer {ben.tokens.access}"},
                )
                await ann.send(ben, "hello")
                await caller.ask(invitation(ben, sdp=f"v=0 {mark}"), "CALL_INVITE_OK")
                ice = await ben.get("/call/ice")
                (turn,) = ice["ice_servers"]
                hidden["credential"] = turn["credential"]
                metrics = ("hook", "apns", "fcm", "web")

                async def failed() -> bool:
                    text = (await here.http.get("/metrics")).text
                    return all(_count(text, kind) for kind in metrics)

                await until(failed)
                shown = [server.run("push", word, ben.user_id) for word in ("list", "test")]
                said = server.output + "".join(one.stdout + one.stderr for one in shown)
                assert ben.user_id in said
                leaked = {name for name, value in hidden.items() if value in said}
                assert not leaked
                assert mark not in said


def _count(text: str, kind: str) -> float:
    """Notifications of a kind that have failed."""
    lines = [line for line in text.splitlines() if line.startswith("nexo_push_notifications_total")]
    found = [line for line in lines if f'kind="{kind}"' in line and 'result="failed"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in found)


async def test_a_call_rings_by_push_also_when_the_service_fails_at_first_and_stops_on_all_devices() -> None:
    async with receiving() as receiver:
        answers = iter((503, 429))

        async def fail_twice(events: list[Event]) -> int:
            return next(answers, 200)

        receiver.decide = fail_twice
        with ServerProcess(push__hook__url=receiver.url, push__hook__secret=new_secret()) as server:
            async with world(server, check_pushes=False) as here:
                ann, ben = await here.people("ann", "ben")
                caller = await ann.connect()
                await ben.post("/push/register", kind="hook", token="t", device_id="phone")
                call_id = (await caller.ask(invitation(ben), "CALL_INVITE_OK"))["callId"]
                await receiver.until_taken(1)
                rung = receiver.taken[0]
                assert (rung["kind"], rung["call_id"], rung["call_kind"]) == ("call", call_id, "video")
                assert (rung["ended"], rung["sender_id"]) == (False, ann.user_id)
                assert len({one.headers["webhook-id"] for one in receiver.requests}) == 1
                phone = await ben.connect()  # woken by it
                await phone.expect("CALL_INVITE", callId=call_id)
                await phone.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": "v=0"})
                await receiver.until_taken(2)
                assert (receiver.taken[1]["ended"], receiver.taken[1]["tag"]) == (True, rung["tag"])
                assert len({one.headers["webhook-id"] for one in receiver.requests}) == 2


async def test_a_thousand_messages_while_away_are_one_notification() -> None:
    async with receiving() as receiver:
        with ServerProcess(push__wait_ms=3000, push__hook__url=receiver.url, limits__inflight_sends=0) as server:
            async with world(server, check_pushes=False) as here:
                ann, ben, cid = await here.people("ann", "ben", "cid")
                writer = await ann.connect()
                await ben.post("/push/register", kind="hook", token="t", device_id="phone")
                frames = [writer.message(ben, str(number)) for number in range(1000)]
                await writer.send_at_once(*frames)
                for frame in frames:
                    await writer.expect("ACK", ackType="saved", clientMsgId=frame["clientMsgId"])
                await cid.send(ben, "later than all of them", client_msg_id=fresh_id())
                await receiver.until(lambda: any(one["sender_id"] == cid.user_id for one in receiver.taken))
                made = [one for one in receiver.taken if one["sender_id"] == ann.user_id]
                assert [(one["unread"], one["body"]) for one in made[-1:]] == [(1000, "999")]
                assert len({one["tag"] for one in made}) == 1
                span_s = (made[-1]["ts"] - made[0]["ts"]) / 1000
                assert len(made) <= 1 + span_s / 2.9, "at most one in each time that connections have"
