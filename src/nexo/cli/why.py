"""`nexo why`: where is my message?"""

from __future__ import annotations

import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.config import Config
from nexo.core.trace_shapes import TracedConnection, TracedReceiverShape, TraceReply, trace_shape
from nexo.core.tracing import TracesFound
from nexo.errors import StartupError
from nexo.ids import parse_server_msg_id
from nexo.store.tracing import SqlTracing

app = typer.Typer(add_completion=False)

ANSWER_S = 10.0
STATES = {
    "sender": "sent it",
    "read": "has read it",
    "delivered": "has received it",
    "pushed": "was sent it and has not acknowledged it",
    "back_pressure": "did not take it: the connection was full, and was made to resync",
    "notify_mode": "got a notice to pull it, because the group is large",
    "no_push": "got only the new head, because the group is large",
    "muted": "has set this conversation to receive nothing (recv_msg_opt 1)",
    "offline": "was not connected",
    "not_member": "was no member at that time",
    "unknown": "has not received it; what was pushed is not known",
}


class _Answer(msgspec.Struct):
    err_code: int
    err_msg: str
    data: msgspec.Raw = msgspec.Raw(b"null")


@app.command()
def why(
    message: Annotated[str, typer.Argument(metavar="MSG", help="Its server_msg_id.", show_default=False)],
    user: Annotated[str, typer.Argument(metavar="[USER]", help="One receiver; without it the first 50.")] = "",
    server: Annotated[
        str, typer.Option(metavar="URL", help="A running server, which asks all instances what they pushed.")
    ] = "",
    key: Annotated[str, typer.Option(help="A key with the scope moderate, for --server; - reads it from input.")] = "",
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show where a message is: saved, delivered and read by the database; with --server also to which connections it
    was pushed, or why not. Never its text."""
    reply = _ask(server, key, message, user) if server else _look(load_config(config, data), message, user)
    if as_json:
        print_json(reply)
        return
    for line in _lines(reply, asked=bool(server)):
        print_text(line)


def _look(settings: Config, message: str, user: str) -> TraceReply:
    async def work() -> TraceReply:
        async with opened(settings) as database:
            stored = await SqlTracing(database).trace(parse_server_msg_id(message), user or None)
            return trace_shape(stored, TracesFound([], []))

    return run(work())


def _ask(server: str, key: str, message: str, user: str) -> TraceReply:
    query = urllib.parse.urlencode({"server_msg_id": message, **({"user_id": user} if user else {})})
    secret = sys.stdin.readline().strip() if key == "-" else key
    if not server.startswith(("http://", "https://")):
        raise StartupError("--server is an address that begins with http:// or https://")
    request = urllib.request.Request(
        f"{server.rstrip('/')}/admin/trace?{query}", headers={"Authorization": f"Bearer {secret}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as response:
            body = response.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    except OSError as error:
        raise StartupError(f"{server} cannot be reached: {error}") from error
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        if answer.err_code:
            raise StartupError(f"{server} refuses: {answer.err_msg}")
        return msgspec.json.decode(answer.data, type=TraceReply)
    except msgspec.MsgspecError as error:
        raise StartupError(f"{server} is no Nexo server of this version") from error


def _lines(reply: TraceReply, *, asked: bool) -> Iterator[str]:
    message = reply.message
    state = {0: "", 1: ", recalled since", 2: ", expired since"}.get(message.status, "")
    yield f"Message {message.server_msg_id} of {message.sender_id}: {message.conversation_id}, seq {message.seq}{state}"
    yield f"  accepted {_time(message.accepted_at)}, saved {_time(message.saved_at)}"
    counts = f"{reply.delivered_count} have received and {reply.read_count} have read it"
    yield f"  of {reply.receiver_count} receivers {counts}"
    for receiver in reply.receivers:
        yield from _receiver(receiver)
    if not asked:
        yield "What was pushed to which connection is known by the servers: add --server URL --key KEY."
    for instance in reply.instances:
        if not instance.answered:
            yield f"The instance {instance.instance} did not answer in time."
        elif instance.pushed_at:
            yield f"Pushed by {instance.instance} at {_time(instance.pushed_at)} (mode {instance.mode})."
        else:
            yield f"{instance.instance} remembers no push; it remembers from {_time(instance.remembers_since)} on."


def _receiver(receiver: TracedReceiverShape) -> Iterator[str]:
    yield f"{receiver.user_id} {STATES.get(receiver.state, receiver.state)}"
    for connection in receiver.connections:
        yield f"  {_connection(connection)}"
    for push in receiver.offline_push:
        word = {"sent": "notified", "waiting": "is being notified"}.get(push.state, "not notified")
        answer = f": {push.result}" if push.result else ""
        at = f" at {_time(push.at)}" if push.at else ""
        yield f"  {word} on the device {push.device_id} ({push.kind}{answer}){at}"


def _connection(one: TracedConnection) -> str:
    ended = f" to {_time(one.until)}" if one.until else ""
    device = f" device {one.device_id}" if one.device_id else ""
    return f"{one.result}: {one.conn_id}{device} on platform {one.platform_id}, since {_time(one.since)}{ended}"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
