"""The two SDKs offer the same: names, parameters, options and events, camelCase there and snake_case here.

The JavaScript side is read from its type declarations, which the compiler makes of the code (`npm run types`; a test of
that SDK compares them), the Python side from the code itself."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from nexo.client import ClientError, Conversation, Message, NexoClient, OutgoingMessage, Quote, Session, events
from nexo.client.options import Options
from nexo.client.people import Groups, Presence, Users

TYPES = Path(__file__).parents[2] / "clients" / "js" / "types"

# Where the languages differ: an iterator for `async for`; a message on its way is the message once it is saved.
ONLY_PYTHON = {"NexoClient.events"}
ONLY_JAVASCRIPT = {"OutgoingMessage.message", "Conversation.once", "Conversation.off"}
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
    objects = re.findall(r"\{([^{}]*)\}", re.sub(r"\{[^{}:]*\}\??:", "", text))
    named = {name for body in objects for name in properties(body)}
    alone = re.sub(r"(\{[^{}]*\}|\w+)\??: \{[^{}]*\}", "", text)
    return named | set(re.findall(r"(\w+)\??:", alone))


SEND_OPTIONS = properties(declared("types.d.ts", "SendOptions"))


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
    ("client.d.ts", NexoClient, ("storage", "users", "groups", "presence")),
    ("conversation.d.ts", Conversation, ()),
    ("outgoing.d.ts", OutgoingMessage, ()),
    ("users.d.ts", Users, ()),
    ("groups.d.ts", Groups, ()),
    ("presence.d.ts", Presence, ()),
]
EMITTER = javascript("emitter.d.ts", "Emitter")


@pytest.mark.parametrize(("file", "kind", "fields"), CLASSES, ids=lambda one: getattr(one, "__name__", ""))
def test_classes_have_the_same_members_with_the_same_parameters(file: str, kind: type, fields: tuple[str, ...]) -> None:
    there = javascript(file, kind.__name__)
    if kind in (NexoClient, Conversation):
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


@pytest.mark.parametrize(("name", "kind"), [("Message", Message), ("Session", Session), ("Quote", Quote)])
def test_shapes_have_the_same_fields(name: str, kind: Any) -> None:
    assert {snake(field) for field in properties(declared("types.d.ts", name))} == set(kind.__struct_fields__)


def test_the_options_are_the_same() -> None:
    there = properties(declared("interface.d.ts", "ClientOptions")) - ONLY_JAVASCRIPT_OPTIONS
    here = set(inspect.signature(NexoClient).parameters) - {"url", "options"} | set(Options.__struct_fields__)
    assert here == {snake(name) for name in there}


def test_the_events_are_the_same() -> None:
    there = {snake(name) for name in properties(declared("interface.d.ts", "ClientEvents"))}
    kinds = (kind for _, kind in inspect.getmembers(events, inspect.isclass) if kind.__module__ == events.__name__)
    assert {kind.name for kind in kinds if getattr(kind, "name", "")} == there


def test_errors_tell_the_same() -> None:
    there = {name for name in javascript("errors.d.ts", "NexoError") if name != "name"}
    assert {name for name in there if hasattr(ClientError("network"), name)} == there
