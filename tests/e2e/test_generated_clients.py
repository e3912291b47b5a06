"""What others make of Nexo's documents: clients generated from /openapi.json, and webhooks verified by the libraries of
Standard Webhooks, all unmodified and pinned in `tests/generators`."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import httpx
from standardwebhooks import Webhook

from harness.chat import meet
from harness.generators import FOLDER, node_tool, python_tool, run
from harness.receiver import receiving
from harness.server_process import ServerProcess

TYPESCRIPT_CLIENT = """
import type { paths } from "./nexo.d.ts";
type Send = paths["/msg/send"]["post"];
export const body: Send["requestBody"]["content"]["application/json"] = {
  client_msg_id: "c1", content: "hello", recv_id: "ben",
};
export const seq = (got: Send["responses"]["200"]["content"]["application/json"]) => got.data.seq;
"""


def document_of(server: ServerProcess, folder: Path) -> str:
    """Returns the path of a file with the server's OpenAPI document."""
    path = folder / "openapi.json"
    path.write_bytes(httpx.get(f"{server.address}/openapi.json").content)
    return str(path)


def test_a_python_client_is_generated_without_warnings_and_works(server: ServerProcess, tmp_path: Path) -> None:
    made = run(
        python_tool("openapi-python-client"),
        "generate",
        *("--path", document_of(server, tmp_path), "--output-path", str(tmp_path / "nexo_generated")),
        *("--meta", "none", "--fail-on-warning"),
    )
    assert "arning" not in made
    key = server.run("key", "add", "generated", "--scope", "users,tokens,act,events")
    assert key.returncode == 0, key.stderr
    walked = run(
        python_tool("python"), str(FOLDER / "walk.py"), server.address, key.stdout.strip(), python_path=tmp_path
    )
    assert walked == "WALKED missing_content\n"


def test_typescript_types_are_generated_without_warnings_and_hold(server: ServerProcess, tmp_path: Path) -> None:
    command = node_tool("node_modules/openapi-typescript/bin/cli.js")
    options = ("--default-non-nullable", "false")  # fields that have a default may be left out
    made = run(*command, document_of(server, tmp_path), "--output", str(tmp_path / "nexo.d.ts"), *options)
    assert "warn" not in made.lower()
    assert "⚠" not in made
    (tmp_path / "client.ts").write_text(TYPESCRIPT_CLIENT)
    options = ("--noEmit", "--strict", "--allowImportingTsExtensions", "--skipLibCheck", "false", "client.ts")
    run(*node_tool("node_modules/typescript/bin/tsc"), *options, cwd=tmp_path)


async def test_the_libraries_of_standard_webhooks_verify_a_delivery() -> None:
    async with receiving() as receiver:
        with ServerProcess(hooks__allow_private=True, journal__takeover_s=1) as server:
            async with meet(server, "ann", "ben") as (ann, ben):
                url = receiver.url.replace("127.0.0.1", "localhost")  # a name is looked up when it is used
                done = await asyncio.to_thread(server.run, "hook", "add", url, "--name", "shop")
                assert done.returncode == 0, done.stderr
                secret = done.stdout.strip()
                await ann.say(ben, "hello")
                await receiver.until(lambda: "hello" in receiver.contents())
    delivery = next(request for request in receiver.requests if b"hello" in request.body)
    assert Webhook(secret).verify(delivery.body, delivery.headers)
    given = {"secret": secret, "body": delivery.body.decode(), "headers": delivery.headers}
    said = await asyncio.to_thread(run, *node_tool("verify.mjs"), given=json.dumps(given))
    assert said == "VERIFIED hello WebhookVerificationError\n"


def test_the_lock_files_name_versions_and_hashes_but_no_registry() -> None:
    text = (FOLDER / "package-lock.json").read_text()
    assert '"integrity"' in text
    assert '"resolved"' not in text
    assert "://" not in re.sub(r'"url": "[^"]*"', "", text)  # where a package asks for donations
    lines = (FOLDER / "requirements.txt").read_text().splitlines()
    assert all(re.match(r"[a-z0-9._-]+==\S+ |    --hash=sha256:", line) for line in lines)
