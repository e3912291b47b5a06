"""Writes the emoji of the web client with their names in English and Chinese.

    python scripts/emoji_names.py /usr/share/unicode/emoji/emoji-test.txt

The order and the groups are Unicode's (Debian package `unicode-data`), the names those of the package `emoji` of PyPI,
which only this script needs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src" / "nexo" / "web" / "data" / "emoji.js"
GROUPS = {
    "Smileys & Emotion": "smileys",
    "People & Body": "people",
    "Animals & Nature": "nature",
    "Food & Drink": "food",
    "Travel & Places": "travel",
    "Activities": "activities",
    "Objects": "objects",
    "Symbols": "symbols",
    "Flags": "flags",
}
LINE = re.compile(r"^(?P<code>[0-9A-F ]+?)\s*; fully-qualified\s+# (?P<emoji>\S+) E")
TONES = {chr(tone) for tone in range(0x1F3FB, 0x1F400)}


def main(path: str) -> None:
    import emoji  # noqa: PLC0415 - not a package of this project

    emoji.config.load_language("zh")
    groups: dict[str, list[str]] = {}
    toned: set[str] = set()
    group = ""
    for line in Path(path).read_text().splitlines():
        if line.startswith("# group: "):
            group = GROUPS.get(line.removeprefix("# group: "), "")
        found = LINE.match(line)
        if not group or not found:
            continue
        sign = "".join(chr(int(code, 16)) for code in found["code"].split())
        if TONES & set(sign):
            toned.add("".join(char for char in sign if char not in TONES).replace("\ufe0f", ""))
            continue
        groups.setdefault(group, []).append(sign)
    lines = [f"  {name}: `{'|'.join(entry(sign, toned, emoji.EMOJI_DATA) for sign in signs)}`,"
             for name, signs in groups.items()]  # fmt: skip
    head = "/** Emoji by group: the sign (+: it has skin tones), its names in English, its name in Chinese. */\n"
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(head + "export default {\n" + "\n".join(lines) + "\n};\n", encoding="utf-8")


def entry(sign: str, toned: set[str], data: dict[str, Any]) -> str:
    """One emoji: `sign;name,alias;Chinese name`."""
    known = data.get(sign) or {}
    names = [known.get("en", ""), *known.get("alias", ())]
    english = ",".join(dict.fromkeys(plain(name) for name in names if name))
    mark = "+" if sign.replace("\ufe0f", "") in toned else ""
    return f"{sign}{mark};{english};{plain(known.get('zh', ''))}"


def plain(name: str) -> str:
    return name.strip(":").replace("’", "'").replace("|", "").replace(";", "").replace("`", "").lower()


if __name__ == "__main__":
    main(sys.argv[1])
