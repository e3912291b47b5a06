"""The two SDKs offer the same: names, parameters, options and events, camelCase there and snake_case here.

The JavaScript side is read from its type declarations, which the compiler makes of the code (`npm run types`; a test of
that SDK compares them), the Python side from the code itself."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from nexo_client import (
    ClientError,
    Conversation,
    InboxMessage,
    Message,
    NexoClient,
    OutgoingMessage,
    Quote,
    Session,
    events,
    webhooks,
)
from nexo_client.account import Account
from nexo_client.acting_user import ActingUser
from nexo_client.backend import BackendSessions, BackendTokens, BackendUsers, NexoBackend
from nexo_client.backend_events import BackendEvents
from nexo_client.calls import Call, CallRecord, Calls
from nexo_client.contacts import Contacts
from nexo_client.core.options import Options
from nexo_client.devices import Devices, Push
from nexo_client.groups import Groups
from nexo_client.presence import Presence
from nexo_client.types import (
    AccountExport,
    BackendEvent,
    BackendUser,
    Contact,
    ContactRequest,
    ContactStatus,
    ConversationSettings,
    Device,
    Draft,
    EditResult,
    Forwarded,
    ForwardedFrom,
    GivenReaction,
    Group,
    GroupLink,
    HistoryPage,
    IssuedToken,
    LinkedGroup,
    MediaPage,
    Member,
    Reaction,
    ReactionsPage,
    SearchPage,
    SearchResult,
    SentMessage,
    User,
)
from nexo_client.users import Users

TYPES = Path(__file__).parents[2] / "clients" / "js" / "types"

# Where the languages differ: a message on its way is the message once it is saved.
ONLY_PYTHON: set[str] = set()
ONLY_JAVASCRIPT = {
    "OutgoingMessage.message",
    "Conversation.once",
    "Conversation.off",
    *(f"{kind}.{name}" for kind in ("Call", "Calls") for name in ("once", "off")),
    "BackendEvents.next",
    "BackendEvents.return",
}
ONLY_JAVASCRIPT_OPTIONS = {"url", "WebSocket", "fetch"}  # `url` is no option there; the others have no choice here


def snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def block(text: str, start: int, opening: str = "{", closing: str = "}") -> str:
    """What is between the next bracket and its partner."""
    start = text.index(opening, start) + 1
    depth, at = 1, start
    while depth:
        depth += (text[at] == opening) - (text[at] == closing)
        at += 1
    return text[start : at - 1]


def declared(file: str, name: str) -> str:
    text = without_comments((TYPES / file).read_text())
    found = re.search(rf"export (?:class|type) {name}\b(?: extends Emitter<(?:\w+|\{{[^}}]*\}})>)?", text)
    assert found, f"{name} in {file}"
    return block(text, found.end())


def properties(body: str) -> set[str]:
    """The names of an object type, of its first level."""
    flat = re.sub(r"\{[^{}]*\}", "", body)
    return {name for name in re.findall(r"(?:^|[;,\n])\s*(?:readonly )?(\w+)\??\s*:", "\n" + flat)}


def parameters(text: str) -> set[str]:
    """Names of parameters; an object of named ones counts as these."""
    text = re.sub(r"\([^()]*\) =>", "", text)  # of handlers
    if "SendOptions" in text:
        text = re.sub(r"\w+\??: SendOptions", ", ".join(f"{name}: any" for name in SEND_OPTIONS), text)
    if "FileOptions" in text:
        text = re.sub(r"\w+\??: FileOptions", ", ".join(f"{name}: any" for name in FILE_OPTIONS), text)
    objects = re.findall(r"\{([^{}]*)\}", re.sub(r"\{[^{}:]*\}\??:", "", text))
    named = {name for body in objects for name in properties(body)}
    alone = re.sub(r"(\{[^{}]*\}|\w+)\??: \{[^{}]*\}", "", text)
    return named | set(re.findall(r"(\w+)\??:", alone))


SEND_OPTIONS = properties(declared("types.d.ts", "SendOptions"))
FILE_OPTIONS = {*SEND_OPTIONS, "name", "caption", "onProgress"}


def javascript(file: str, name: str) -> dict[str, set[str] | None]:
    """Public members: the parameters of methods, None for anything else."""
    body = declared(file, name)
    members: dict[str, set[str] | None] = {}
    for found in re.finditer(r"^    (?:(get|set) )?(?!constructor)([a-z]\w*)(?:<[^\n(]*>)?([(:])", body, re.MULTILINE):
        accessor, member, follows = found.groups()
        is_method = follows == "(" and not accessor
        members[snake(member)] = (
            {snake(one) for one in parameters(block(body, found.end() - 1, "(", ")"))} if is_method else None
        )
    return members


def python(kind: type, instance: dict[str, Any] | None = None) -> dict[str, set[str] | None]:
    members: dict[str, set[str] | None] = {}
    for name, value in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        is_method = inspect.isfunction(value)
        members[name] = set(inspect.signature(value).parameters) - {"self"} if is_method else None
    return members | dict.fromkeys(instance or ())


CLASSES = [
    (
        "client.d.ts",
        NexoClient,
        ("storage", "users", "contacts", "groups", "devices", "push", "account", "presence", "calls"),
    ),
    ("conversation.d.ts", Conversation, ()),
    ("outgoing-message.d.ts", OutgoingMessage, ("on_progress",)),
    ("inbox-stream.d.ts", InboxMessage, ("message", "conversation")),
    ("users.d.ts", Users, ()),
    ("contacts.d.ts", Contacts, ()),
    ("groups.d.ts", Groups, ()),
    ("devices.d.ts", Devices, ()),
    ("devices.d.ts", Push, ()),
    ("account.d.ts", Account, ()),
    ("presence.d.ts", Presence, ()),
    ("calls.d.ts", Calls, ()),
    (
        "calls.d.ts",
        Call,
        ("call_id", "user_id", "kind", "direction", "sdp", "state", "reason", "duration_ms", "candidates"),
    ),
    ("backend.d.ts", NexoBackend, ("users", "tokens", "sessions")),
    ("backend.d.ts", BackendUsers, ()),
    ("backend.d.ts", BackendTokens, ()),
    ("backend.d.ts", BackendSessions, ()),
    ("backend-events.d.ts", BackendEvents, ("cursor",)),
    ("acting-user.d.ts", ActingUser, ("user_id", "users", "contacts", "groups")),
]
EMITTER = javascript("emitter.d.ts", "Emitter")


@pytest.mark.parametrize(("file", "kind", "fields"), CLASSES, ids=lambda one: getattr(one, "__name__", ""))
def test_classes_have_the_same_members_with_the_same_parameters(file: str, kind: type, fields: tuple[str, ...]) -> None:
    there = javascript(file, kind.__name__)
    if kind in (NexoClient, Conversation, Call, Calls):
        there |= EMITTER
    here = python(kind, dict.fromkeys(fields))
    for one, only in ((there, ONLY_JAVASCRIPT), (here, ONLY_PYTHON)):
        for name in [name for name in one if f"{kind.__name__}.{name}" in only]:
            del one[name]
    assert sorted(here) == sorted(there)
    for name, names in there.items():
        mine = here[name]
        assert (mine is None) == (names is None), name
        if mine is not None and names is not None and "options" not in mine:
            assert mine == names, name


def test_custom_messages_take_the_options_of_others() -> None:
    assert "options" in inspect.signature(Conversation.send_custom).parameters


SHAPES = [
    Message,
    Session,
    Quote,
    Reaction,
    ForwardedFrom,
    ConversationSettings,
    Draft,
    User,
    Group,
    Member,
    GroupLink,
    LinkedGroup,
    Contact,
    ContactRequest,
    ContactStatus,
    Device,
    AccountExport,
    EditResult,
    GivenReaction,
    ReactionsPage,
    MediaPage,
    SearchResult,
    SearchPage,
    Forwarded,
    HistoryPage,
    SentMessage,
    BackendUser,
    IssuedToken,
    BackendEvent,
    CallRecord,
]


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.__name__)
def test_shapes_have_the_same_fields(kind: Any) -> None:
    there = properties(declared("types.d.ts", kind.__name__))
    if issubclass(kind, User) and kind is not User:
        there |= properties(declared("types.d.ts", "User"))
    assert {snake(field) for field in there} == set(kind.__struct_fields__)


def test_webhooks_are_verified_by_the_same_call() -> None:
    text = without_comments((TYPES / "webhooks.d.ts").read_text())
    there = block(text, text.index("function verifyWebhook"), "(", ")")
    names = [snake(name) for name in re.findall(r"(\w+)\??: ", re.sub(r"Record<[^>]*>", "any", there))]
    assert names == list(inspect.signature(webhooks.verify_webhook).parameters)


def test_the_options_are_the_same() -> None:
    there = properties(declared("core/options.d.ts", "ClientOptions")) - ONLY_JAVASCRIPT_OPTIONS
    here = set(inspect.signature(NexoClient).parameters) - {"url", "options"} | set(Options.__struct_fields__)
    assert here == {snake(name) for name in there}


def test_the_events_are_the_same() -> None:
    there = {snake(name) for name in properties(declared("events.d.ts", "ClientEvents"))}
    kinds = (kind for _, kind in inspect.getmembers(events, inspect.isclass) if kind.__module__ == events.__name__)
    assert {kind.name for kind in kinds if getattr(kind, "name", "")} == there


def test_errors_tell_the_same() -> None:
    there = {name for name in javascript("errors.d.ts", "NexoError") if name != "name"}
    assert {name for name in there if hasattr(ClientError("network"), name)} == there
