"""The OpenAPI document says what the server does: compared with the table, and tried out by schemathesis."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from harness.api import Api, make_group, open_api, send
from harness.migrated import migrated_database
from nexo import __version__
from nexo.api.openapi import make_document
from nexo.api.routes import ROUTES, errors_of
from nexo.errors import ERRORS

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
# By number, not by time: a busy machine would leave out the routes that come last.
EXAMPLES = 500 if os.environ.get("NEXO_LONG_TESTS") else 20 if IN_CI else 5
SCHEMATHESIS = Path(sys.executable).with_name("st")
UNLIMITED = {
    "limits__sends_per_s": 0,
    "limits__logins_per_min": 0,
    "limits__login_failures_per_address_per_min": 0,
    "limits__refreshes_per_min": 0,
    "limits__registers_per_min": 0,
    "limits__group_creates_per_min": 0,
    "limits__membership_per_min": 0,
    "limits__requests_per_s": 0,
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with migrated_database("sqlite", tmp_path) as url:
        yield url


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


async def test_the_server_gives_out_the_document_of_its_table(url: str) -> None:
    async with open_api(url) as api:
        answer = await api.get(None, "/openapi.json")
        assert answer.body == msgspec.to_builtins(make_document(ROUTES))
        assert (answer.body["openapi"], answer.body["info"]["version"]) == ("3.1.0", __version__)


def test_every_route_is_in_the_document_with_its_statuses() -> None:
    document = make_document(ROUTES)
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(row.method, row.path) for row in ROUTES} | {("GET", "/metrics")}
    for row in ROUTES:
        operation = document["paths"][row.path][row.method.lower()]
        statuses = {str(ERRORS[name].http_status) for name in errors_of(row)}
        done = {"200", "202"} if row.path == "/msg/send" else {"200"}  # accepted, and not saved yet
        if row.answers:
            done = {str(status) for status in row.answers}
        assert set(operation["responses"]) == statuses | done
        assert operation["security"] == ([{"bearer": []}] if row.signed_in else [])
        assert operation["summary"]
        named = {
            name
            for status in statuses
            for name in operation["responses"][status]["content"]["application/json"]["schema"]["properties"][
                "err_msg"
            ]["enum"]
        }
        assert named == errors_of(row)


def test_every_operation_has_a_name_of_its_own_and_a_known_group() -> None:
    document = make_document(ROUTES)
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    groups = {tag["name"] for tag in document["tags"]}
    assert {tag for operation in operations for tag in operation["tags"]} == groups


def test_the_document_refers_only_to_what_is_in_it() -> None:
    document = make_document(ROUTES)
    schemas = document["components"]["schemas"]
    used = {reference.removeprefix("#/components/schemas/") for reference in references(document)}
    assert used == schemas.keys()


OPTIONAL = {"recv_id", "group_id", "quote", "recalled_at", "edited_at", "reactions", "forwarded_from", "expires_at"}


def test_optional_parts_of_a_message_are_told_as_optional() -> None:
    schemas = make_document(ROUTES)["components"]["schemas"]
    message = schemas["MessageShape"]
    assert set(message["properties"]) - set(message["required"]) == OPTIONAL
    assert schemas["SendRequest"]["required"] == ["client_msg_id", "content"]
    assert schemas["SendRequest"]["additionalProperties"] is False


async def known_values(api: Api) -> dict[str, list[Any]]:
    """Something to find: ids that exist, for fields of these names."""
    group = await make_group(api, "ann", "bob", "cat")
    in_group = await send(api, "ann", group["group_id"])
    single = await send(api, "ann", "bob")
    message_ids = [in_group["server_msg_id"], single["server_msg_id"]]
    return {
        "group_id": [group["group_id"]],
        "groupId": [group["group_id"]],
        "conversation_id": ["si_ann:bob", group["conversation_id"]],
        "user_id": ["bob", "dan"],
        "recv_id": ["bob"],
        "peerUserId": ["bob"],
        "server_msg_id": message_ids,
        "reply_to": message_ids,
        "last_msg_id": message_ids,
    }


def with_examples(document: dict[str, Any], values: dict[str, list[Any]]) -> dict[str, Any]:
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] in values:
                    parameter["schema"]["examples"] = values[parameter["name"]]
    whole = {"client_msg_id": "tried", "content": "hello", "recv_id": "bob"}
    body = document["paths"]["/msg/send"]["post"]["requestBody"]["content"]["application/json"]
    body["examples"] = {"a text": {"value": whole}}
    for schema in document["components"]["schemas"].values():
        for name, about in schema.get("properties", {}).items():
            if name in values:
                about["examples"] = values[name]
    return document


@pytest.mark.slow
async def test_schemathesis_finds_no_server_error_and_nothing_undocumented(url: str, tmp_path: Path) -> None:
    """Every check but one: requests that fit the schema may still be refused, say for an unknown user."""
    async with open_api(url, ["ann", "bob", "cat", "dan"], **UNLIMITED) as api:

        async def stay_signed_in(*_: object) -> None: ...

        api.accounts.logout = stay_signed_in  # type: ignore[method-assign]
        document = with_examples((await api.get(None, "/openapi.json")).body, await known_values(api))
        (tmp_path / "openapi.json").write_bytes(msgspec.json.encode(document))
        with capture_logs() as logs:
            run = await asyncio.create_subprocess_exec(
                SCHEMATHESIS,
                "run",
                "openapi.json",
                f"--url={api.http.base_url}",
                f"--header=Authorization: Bearer {api.tokens['ann']}",
                f"--max-examples={EXAMPLES}",
                "--phases=examples,coverage,fuzzing",
                "--exclude-checks=positive_data_acceptance",
                "--exclude-operation-id=user_delete",  # a session that is fresh may close its account
                "--continue-on-failure",
                "--warnings=off",
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await run.communicate()
        assert run.returncode == 0, output.decode()
        # schemathesis also tries header values that are no HTTP; those never reach a route
        serious = [line for line in logs if line["log_level"] not in ("debug", "info")]
        assert [line for line in serious if line.get("says") != "Invalid HTTP request received."] == []
        reached = {line["path"] for line in logs if line["event"] == "request" and line["status"] == 200}
        refused = {line["status"] for line in logs if line["event"] == "request"}
        assert {"/msg/send", "/msg/pull", "/group/info", "/conversation/read"} <= reached
        assert {400, 401, 403, 404, 405} <= refused
