"""The page of all HTTP calls, made from the route table and the schemas of its requests and replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nexo.api.decoding import shape_errors
from nexo.api.openapi import caller_of, make_document
from nexo.api.replies import FileReply
from nexo.api.requests import Nothing
from nexo.api.route import OPEN_PART, Route
from nexo.api.routes import ROUTES, errors_of
from nexo.core.shapes import SentShape

INTRODUCTION = """\
Every call, made from the code that serves it. `/docs` of a running server shows the same and can try calls,
`/openapi.json` is for generators. `GET /metrics` is described in [metrics.md](metrics.md). [product.md](product.md)
leads through the calls that a product needs.

**Requests.** GET and DELETE take their fields in the query (lists separated by commas), POST, PUT and `DELETE /user`
as a JSON object. Fields that are not listed are refused with `bad_request`. Ids are strings, seqs integers (strings
of digits are taken too), times milliseconds since 1970.

**Who is calling.** `Authorization: Bearer …` holds an access token (`/auth/login`, `/server/tokens`), a [token of
your product](product-tokens.md), or a key of a backend (`nexo_sk_…`). A key with the scope `act` calls for the user
that the header `Nexo-User` names; a bot's key, which is bound to its user, without it.

**Answers** are `{err_code, err_msg, data}`. `err_code` 0 is success, and `data` is what is listed as the reply.
Otherwise `err_code` is the number and `err_msg` the name of one of the [errors](errors.md), and `detail` is a
sentence. `429` and `503` have `retry_after_ms` and the header `Retry-After`.
""".splitlines()

_CHAPTERS = {
    "user": "Users and profiles",
    "auth": "Signing in",
    "session": "Own sessions",
    "contact": "Contacts",
    "call": "Calls",
    "msg": "Sending and reading",
    "conversation": "Conversations",
    "group": "Groups",
    "push": "Push notifications",
    "files": "Files",
    "single-chat": "Single chats",
    "admin": "Administrators",
    "server": "Backends, and the server itself",
}

Json = dict[str, Any]


def lines() -> Iterator[str]:
    document = make_document(ROUTES)
    schemas: dict[str, Json] = document["components"]["schemas"]
    yield from _errors_of_all()
    shown: dict[str, None] = {}
    for tag in document["tags"]:
        yield ""
        yield f"## {_CHAPTERS[tag['name']]}"
        yield ""
        yield tag["description"]
        for row in ROUTES:
            operation = document["paths"][row.path][row.method.lower()]
            if tag["name"] in operation["tags"]:
                yield from _call(row, operation, schemas, shown)
    yield from _objects(shown, schemas)


def _errors_of_all() -> Iterator[str]:
    """What is not repeated in each call: the errors that all calls of a kind have."""
    yield ""
    yield "Errors that are not repeated below:"
    yield ""
    always = _shared(lambda row: True)
    limited = _shared(lambda row: row.limited) - always
    most = always | limited
    body = _shared(lambda row: row.has_body) - most
    signed = _shared(lambda row: row.signed_in) - most
    acting = _shared(lambda row: row.signed_in and row.by_key and not row.scopes) - most - signed
    for when, names in (
        ("any call", always),
        ("any call but `/healthz` and `/readyz`", limited),
        ("calls with a body", body),
        ("calls that need a token or a key", signed),
        ("calls of a key for a user", acting),
    ):
        yield f"- {when}: {_names(names)}"


def _shared(applies: Callable[[Route], bool]) -> set[str]:
    return set.intersection(*(errors_of(row) for row in ROUTES if applies(row)))


def _call(row: Route, operation: Json, schemas: dict[str, Json], shown: dict[str, None]) -> Iterator[str]:
    yield ""
    yield f"### {row.method} {row.path}"
    yield ""
    yield f"{row.summary}. By {caller_of(row)}."
    fields = _request_fields(row, operation, schemas)
    if fields:
        yield ""
        yield "| field | | default | meaning |"
        yield "|---|---|---|---|"
        for name, about, required in fields:
            yield f"| `{name}` | {_type(about, shown)} | {_default(about, required)} | {_meaning(about)} |"
    note = schemas.get(row.request.__name__, {}).get("description")
    if note and row.request is not Nothing:
        yield ""
        yield " ".join(note.split())
    yield ""
    reply = row.reply.__name__
    if row.reply is FileReply:
        yield "Reply: the file itself."
    elif row.answers:
        yield (
            "Answers: "
            + "; ".join(f"`{status}` {text}".removesuffix(".") for status, text in row.answers.items())
            + "."
        )
    elif schemas[reply]["properties"]:
        shown[reply] = None
        yield f"Reply: [{reply}](#{reply.lower()})." + (
            " With [two-phase acknowledgement](two-phase.md) the status may be 202." if row.reply is SentShape else ""
        )
    else:
        yield "Reply: an empty object."
    own = {*row.errors, *shape_errors(row.request)} - {"bad_request"}
    if own:
        yield ""
        yield f"Errors: {_names(own)}."


def _request_fields(row: Route, operation: Json, schemas: dict[str, Json]) -> list[tuple[str, Json, bool]]:
    found = []
    if OPEN_PART in row.path:
        found.append(("id", {"type": "string", "description": "In the path."}, True))
    if row.has_body:
        schema = schemas.get(row.request.__name__, {"properties": {}})
        needed = schema.get("required", ())
        return found + [(name, about, name in needed) for name, about in schema["properties"].items()]
    queries = [one for one in operation.get("parameters", ()) if one["in"] == "query"]
    return found + [(one["name"], one["schema"], one["required"]) for one in queries]


def _objects(shown: dict[str, None], schemas: dict[str, Json]) -> Iterator[str]:
    yield ""
    yield "## Objects"
    yield ""
    yield "What replies hold. Fields marked *optional* may be absent."
    done: set[str] = set()
    while open_ := sorted(shown.keys() - done):
        for name in open_:
            done.add(name)
            yield from _object(name, schemas[name], shown)


def _object(name: str, schema: Json, shown: dict[str, None]) -> Iterator[str]:
    yield ""
    yield f"### {name}"
    if "description" in schema:
        yield ""
        yield " ".join(schema["description"].split())
    yield ""
    yield "| field | | meaning |"
    yield "|---|---|---|"
    for field, about in schema["properties"].items():
        kind = _type(about, shown)
        if field not in schema.get("required", ()):
            kind += ", *optional*"
        yield f"| `{field}` | {kind} | {_meaning(about)} |"


def _type(about: Json, shown: dict[str, None]) -> str:
    """Returns the values that a field may have, with their bounds; objects by name are added to `shown`."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        shown[name] = None
        return f"[{name}](#{name.lower()})"
    if "anyOf" in about:
        return " or ".join(_type(one, shown) for one in about["anyOf"])
    if "const" in about:
        return f"`{about['const']}`"
    if "enum" in about:
        return "one of " + ", ".join(f"`{value}`" for value in about["enum"])
    match about.get("type"):
        case "array":
            items = _type(about["items"], shown) if about.get("items") else "any JSON"
            return f"list of {items}{_range(about, 'Items', ' entries')}"
        case "string" if "pattern" in about:
            return f"text `{_cell(about['pattern'])}`"
        case "string":
            return f"text{_range(about, 'Length', ' characters')}"
        case "integer" | "number":
            return f"number{_bounds(about.get('minimum'), about.get('maximum'), '')}"
        case "boolean":
            return "true or false"
        case "object":
            inner = about.get("additionalProperties")
            return f"object of {_type(inner, shown)}" if isinstance(inner, dict) and inner else "object"
        case "null":
            return "null"
        case _:
            return "any JSON"


def _meaning(about: Json) -> str:
    texts = [one.get("description", "") for one in (about, *about.get("anyOf", ()))]
    return _cell(" ".join(filter(None, texts)))


def _range(about: Json, what: str, unit: str) -> str:
    return _bounds(about.get(f"min{what}"), about.get(f"max{what}"), unit)


def _bounds(low: int | None, high: int | None, unit: str) -> str:
    if high is not None and high >= (1 << 63) - 1:
        high = None
    if low is not None and high is not None:
        return f", {low} to {high}{unit}"
    if high is not None:
        return f", at most {high}{unit}"
    return f", {low}{unit} or more" if low else ""


def _default(about: Json, required: bool) -> str:
    if required:
        return "*required*"
    value = about.get("default")
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "" if value is None or value == "" else f"`{value}`"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
