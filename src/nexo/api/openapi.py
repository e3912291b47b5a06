"""The OpenAPI document, made from the route table and its structs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from nexo import __version__
from nexo.api.replies import ErrorBody, FileReply
from nexo.api.requests import Nothing
from nexo.api.route import OPEN_PART, Route
from nexo.api.routes import errors_of
from nexo.core.shapes import SentShape
from nexo.errors import ERRORS, ErrorRow

_SERVER_PATHS = ("healthz", "readyz", "metrics")
_TAGS = {
    "user": "Users: profiles, who is online, blocking.",
    "auth": "Signing in and out.",
    "session": "A user's own sessions.",
    "contact": "Contacts and contact requests.",
    "call": "Calls, and servers for their media.",
    "msg": "Messages.",
    "conversation": "A user's conversations, their cursors and settings.",
    "group": "Groups and their members.",
    "push": "Devices that are notified while their user is away.",
    "files": "Files: upload, download, delete. Uploads in parts are tus 1.0.0.",
    "single-chat": "Single chats, by the other user.",
    "admin": "For administrators.",
    "server": "For a product's backend, by its key; and the state of the server itself.",
}
_ABOUT = (
    "Every answer is `{err_code, err_msg, data}`. `err_code` 0 is success; otherwise it is the number of the error, "
    "`err_msg` its name and `detail` a sentence. Ids are strings, seqs integers (strings of digits are taken too), "
    "times milliseconds. Fields that are not in the schema are refused."
)

_BEARER = (
    "An access token, a token of the product, or a key (`nexo_sk_…`). A key with the scope `act` calls for the user "
    "that the header `Nexo-User` names."
)

Json = dict[str, Any]

_PATH_ID: Json = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 128}}


def make_document(routes: Iterable[Route]) -> Json:
    rows = tuple(routes)
    schemas = _schemas(rows)
    paths: dict[str, Json] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row, schemas)
    paths["/metrics"] = {"get": _metrics_operation()}
    bodies = {row.request for row in rows if row.has_body and row.request is not Nothing}
    unused = {row.request.__name__ for row in rows if row.request not in bodies}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Nexo HTTP API", "version": __version__, "description": _ABOUT},
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": {
            # queries are described parameter by parameter
            "schemas": {name: schema for name, schema in schemas.items() if name not in unused},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": _BEARER}},
        },
    }


def _schemas(rows: Iterable[Route]) -> dict[str, Json]:
    types: dict[type, None] = {ErrorBody: None}
    for row in rows:
        types[row.request] = None
        if row.reply is not FileReply:
            types[row.reply] = None
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    return components


def _operation(row: Route, schemas: dict[str, Json]) -> Json:
    words = row.path.replace("-", "_").replace("/{id}", "").strip("/").split("/")
    operation: Json = {
        "operationId": "_".join([*words, *_suffix(row)]),
        "summary": row.summary,
        "description": f"By {caller_of(row)}.",
        "tags": [_tag(row.path)],
        "security": [{"bearer": []}] if row.signed_in else [],
        "responses": {
            **_done(row),
            **(_accepted(row) if row.reply is SentShape else {}),
            **{str(status): {"description": text} for status, text in row.answers.items()},
            **_refusals(errors_of(row)),
        },
    }
    schema = schemas[row.request.__name__]
    if OPEN_PART in row.path:
        operation["parameters"] = [_PATH_ID]
    if not row.has_body:
        operation["parameters"] = [*operation.get("parameters", ()), *_parameters(schema)]
    elif row.request is not Nothing:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(row.request)}},
        }
    return operation


def caller_of(row: Route) -> str:
    """Returns in words which callers may use a route."""
    if not row.signed_in:
        return "anyone, without a token"
    if row.scopes:
        key = "a key with the scope " + " or ".join(f"`{scope}`" for scope in row.scopes)
        return f"{key}, or an administrator" if "moderate" in row.scopes else key
    if row.path.startswith("/admin"):
        return "an administrator"
    return "a user, or a key with `act` for one" if row.by_key else "a user"


def _done(row: Route) -> Json:
    if row.answers:
        return {}
    return {"200": {"description": "Done.", "content": _content(row.reply)}}


def _suffix(row: Route) -> list[str]:
    """Returns what makes the id of an operation different from others at the same address."""
    if row.method == "DELETE":
        return ["delete"]
    if row.path in ("/server/hooks", "/group/link") and row.has_body:
        return ["add"]
    if row.path == "/user/export" and row.has_body:
        return ["begin"]
    if row.stream is not None:
        return [row.method.lower()]
    return ["one"] if row.path.endswith(OPEN_PART) else []


def _parameters(schema: Json) -> list[Json]:
    found: list[Json] = []
    for name, about in schema["properties"].items():
        parameter: Json = {"name": name, "in": "query", "required": name in schema["required"]}
        if about.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        if "description" in about:
            parameter["description"] = about["description"]
        found.append(parameter | {"schema": about})
    return found


def _accepted(row: Route) -> Json:
    return {
        "202": {
            "description": "Accepted and not saved yet (two-phase acknowledgement); there is no `seq`.",
            "content": {"application/json": {"schema": _envelope(row.reply)}},
        }
    }


def _content(reply: type) -> Json:
    if reply is FileReply:
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"application/json": {"schema": _envelope(reply)}}


def _envelope(reply: type) -> Json:
    return {
        "type": "object",
        "properties": {"err_code": {"const": 0}, "err_msg": {"const": ""}, "data": _ref(reply)},
        "required": ["err_code", "err_msg", "data"],
        "additionalProperties": False,
    }


def _refusals(names: set[str]) -> dict[str, Json]:
    by_status: dict[int, list[ErrorRow]] = {}
    for error in sorted((ERRORS[name] for name in names), key=lambda error: error.number):
        by_status.setdefault(error.http_status, []).append(error)
    return {str(status): _refusal(status, by_status[status]) for status in sorted(by_status)}


def _refusal(status: int, errors: list[ErrorRow]) -> Json:
    answer: Json = {
        "description": "\n".join(f"- `{error.name}` ({error.number}): {error.sentence}" for error in errors),
        "content": {
            "application/json": {
                "schema": {
                    "allOf": [_ref(ErrorBody)],
                    "properties": {
                        "err_code": {"enum": [error.number for error in errors]},
                        "err_msg": {"enum": [error.name for error in errors]},
                    },
                }
            }
        },
    }
    if status == 429:
        answer["headers"] = {
            "Retry-After": {"description": "Seconds to wait.", "required": True, "schema": {"type": "integer"}}
        }
    return answer


def _metrics_operation() -> Json:
    return {
        "operationId": "metrics",
        "summary": "Counters and timings for Prometheus",
        "tags": ["server"],
        "security": [],
        "responses": {
            "200": {
                "description": "The text exposition format.",
                "content": {
                    "text/plain": {"schema": {"type": "string"}},
                    "application/openmetrics-text": {"schema": {"type": "string"}},
                },
            }
        },
    }


def _tag(path: str) -> str:
    first = path.split("/")[1]
    return "server" if first in _SERVER_PATHS else first


def _ref(struct: type) -> Json:
    return {"$ref": f"#/components/schemas/{struct.__name__}"}
