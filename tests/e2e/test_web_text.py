"""Text as the web client draws it, by its own module in Node: what is a link, and how long that may take."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.test_sdk_js import missing

RICH_TEXT = Path(__file__).parents[2] / "src" / "nexo" / "web" / "js" / "richtext.js"
SCRIPT = """
const element = () => ({ children: [], attributes: {}, append(...c) { this.children.push(...c); },
  setAttribute(name, value) { this.attributes[name] = value; } });
globalThis.document = { createElement: element, createTextNode: (text) => text };
globalThis.Node = class {};
const { richText } = await import(process.argv[1]);
const texts = JSON.parse(process.argv[2]);
richText("https://warm.up");
const drawn = texts.map((text) => {
  const started = performance.now();
  const parts = richText(text);
  const ms = performance.now() - started;
  return { ms, links: parts.filter((part) => typeof part !== "string").map((part) => part.attributes.href) };
});
console.log(JSON.stringify(drawn));
"""


def draw(*texts: str) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        missing("Node.js is not installed (Debian: apt-get install nodejs)")
    command = [str(node), "--input-type=module", "-e", SCRIPT, RICH_TEXT.as_uri(), json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    drawn: list[dict[str, Any]] = json.loads(done.stdout)
    return drawn


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see https://a.example/b.", "https://a.example/b"),
        ("(https://a.example/b)", "https://a.example/b"),
        ("(https://a.example/b).)!", "https://a.example/b"),
        ("https://a.example/b_(c)", "https://a.example/b_(c)"),
        ("https://a.example/b_(c)).", "https://a.example/b_(c)"),
        ("https://a.example/b_(c).)", "https://a.example/b_(c)"),
        ("https://a.example/b)c", "https://a.example/b)c"),
        ("https://a.example/?q=1!?", "https://a.example/?q=1"),
    ],
)
def test_punctuation_behind_an_address_is_no_part_of_it(text: str, link: str) -> None:
    assert draw(text)[0]["links"] == [link]


def test_no_text_takes_long_to_draw() -> None:
    """A sender chooses the text, every receiver draws it: the time must grow with the length and no faster."""
    hostile = [
        "https://a" + "." * 2720 + "x" + ")" * 1360,
        "https://a" + ".)" * 2040,
        "https://a/" + "(" * 2000 + ")" * 2080,
        "https://a/" + "!" * 4080,
        "http://" * 585,
    ]
    assert [text[:20] for text, drawn in zip(hostile, draw(*hostile), strict=True) if drawn["ms"] > 50] == []
