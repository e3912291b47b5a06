"""Joining modules: what a page gets is what its modules do."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from nexo.api.joined_modules import JoinError, join, stand_in


def run(source: bytes) -> str:
    node = shutil.which("node")
    if node is None and os.environ.get("CI"):
        pytest.fail("node is not installed", pytrace=False)
    if node is None:
        pytest.skip("node is not installed")
    command = [node, "--input-type=module", "-"]
    return subprocess.run(command, input=source, capture_output=True, check=True, timeout=30).stdout.decode()


def test_every_form_of_import_and_export_that_is_used_is_joined() -> None:
    files = {
        "js/app.js": b"""/** A comment with
 * import x from "nothing.js";
 */
import texts, { one as first } from "./texts.js";
import * as names from "./deep/names.js";
import {
  later,
  Name,
} from "../sdk/index.js";

console.log(texts.hello, first, names.who(), later(), new Name().text, import.meta.url.endsWith("/js/app.js"));
""",
        "js/texts.js": b'export const one = 1;\nexport default {\n  hello: "hello",\n};\n',
        "js/deep/names.js": b'export async function* many() {}\nexport function who() {\n  return "who";\n}\n',
        "sdk/index.js": b'export { Name } from "./name.js";\nconst late = () => "later";\nexport { late as later };\n',
        "sdk/name.js": b'export class Name {\n  text = "name"; // of a class\n}\n',
    }
    body, exports = join(files, "js/app.js")
    assert exports["sdk/index.js"] == ["Name", "later"]
    assert run(body) == "hello 1 who later name true\n"


def test_modules_that_import_each_other_are_refused() -> None:
    files = {"a.js": b'import { b } from "./b.js";\nexport const a = 1;\n', "b.js": b'import { a } from "./a.js";\n'}
    with pytest.raises(JoinError, match=r"a\.js -> b\.js -> a\.js"):
        join(files, "a.js")


@pytest.mark.parametrize("line", ["export let a = 1;", "export * from './b.js';", "export const { a, b } = {};"])
def test_what_cannot_be_joined_is_refused(line: str) -> None:
    with pytest.raises(JoinError):
        join({"a.js": f"{line}\n".encode()}, "a.js")


def test_a_stand_in_hands_out_what_the_joined_file_has() -> None:
    text = stand_in("app.js", "js/views/chat.js", 7, ["ChatView", "default"]).decode()
    assert text == (
        'import { $7 } from "../../app.js";\nexport const ChatView = $7.ChatView;\nexport default $7.default;\n'
    )
