"""Joins the ES modules that a page needs into one file, when the server starts: on a slow line one file loads faster
than a hundred.

Each module becomes a function that returns its exports, in the order of their imports. Only `import` and `export`
statements at the beginning of a line are parsed. A module that cannot be joined is refused; a test joins all pages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

_IMPORT = re.compile(r'^import\s+(?:(?P<names>[^"\';]+?)\s+from\s+)?"(?P<module>[^"]+)";\n?', re.M)
_EXPORT_FROM = re.compile(r'^export\s+(?P<names>\*|\{[^}]*\})\s+from\s+"(?P<module>[^"]+)";\n?', re.M)
_EXPORT_LIST = re.compile(r"^export\s+\{(?P<names>[^}]*)\};\n?", re.M)
_EXPORT_DEFAULT = re.compile(r"^export default ", re.M)
_EXPORT_ONE = re.compile(r"^export (?P<kind>async function\*?|function\*?|class|const) ?(?P<name>[\w$]+)", re.M)
_ANY_LEFT = re.compile(r"^(?:import\s*[\w{*\"]|export\b)[^\n]*", re.M)
_LATER = re.compile(r'\bimport\("(?P<module>\.[^"]+)"\)')
_COMMENT = re.compile(r"^[ \t]*/\*(?:(?!\*/)[\s\S])*\*/[ \t]*\n|^[ \t]*//[^\n]*\n", re.M)


class JoinError(Exception):
    """Modules that cannot be joined: a cycle, or a form of `import` or `export` that is not known here."""


class _Module(Struct):
    body: str
    exports: dict[str, str]  # the name outside, and what it is inside


def join(files: Mapping[str, bytes], entry: str) -> tuple[bytes, dict[str, list[str]]]:
    """Returns the file that does what the module `entry` does, and the exports of every module in it. The file exports
    each module's exports under its number, `$0` for the first."""
    order: list[str] = []
    _collect(files, entry, order, ())
    numbers = {name: number for number, name in enumerate(order)}
    parts = []
    exports = {}
    for name in order:
        module = _rewrite(name, files[name].decode(), numbers)
        exports[name] = list(module.exports)
        given = ", ".join(f"{outer}: {inner}" if outer != inner else outer for outer, inner in module.exports.items())
        parts.append(f"const ${numbers[name]} = (() => {{ // {name}\n{module.body}\nreturn {{ {given} }};\n}})();\n")
    names = ", ".join(f"${number}" for number in range(len(order)))
    return f"{''.join(parts)}export {{ {names} }};\n".encode(), exports


def stand_in(joined: str, name: str, number: int, exports: list[str]) -> bytes:
    """Returns a module that hands out what the joined file already has, for modules that are loaded later."""
    path = posixpath.relpath(joined, posixpath.dirname(name) or ".")
    path = path if path.startswith(".") else f"./{path}"
    lines = [f'import {{ ${number} }} from "{path}";']
    lines += [f"export const {one} = ${number}.{one};" for one in exports if one != "default"]
    if "default" in exports:
        lines.append(f"export default ${number}.default;")
    return ("\n".join(lines) + "\n").encode()


def _collect(files: Mapping[str, bytes], name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in order:
        return
    if name in above:
        raise JoinError(f"modules import each other: {' -> '.join((*above, name))}")
    if name not in files:
        raise JoinError(f"{above[-1] if above else 'the page'} imports {name}, which does not exist")
    for needed in _needed(name, _COMMENT.sub("", files[name].decode())):
        _collect(files, needed, order, (*above, name))
    order.append(name)


def _needed(name: str, source: str) -> Iterator[str]:
    found = [*_IMPORT.finditer(source), *_EXPORT_FROM.finditer(source)]
    for statement in sorted(found, key=lambda one: one.start()):
        yield _resolve(name, statement["module"])


def _resolve(name: str, module: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), module))


def _rewrite(name: str, source: str, numbers: dict[str, int]) -> _Module:
    exports: dict[str, str] = {}
    source = _COMMENT.sub("", source)

    def imported(statement: re.Match[str]) -> str:
        module = f"${numbers[_resolve(name, statement['module'])]}"
        return "" if statement["names"] is None else _bindings(statement["names"].strip(), module)

    def passed_on(statement: re.Match[str]) -> str:
        if statement["names"] == "*":
            raise JoinError(f"{name}: `export *` cannot be joined; name what is exported")
        module = f"${numbers[_resolve(name, statement['module'])]}"
        for inner, outer in _pairs(statement["names"].strip("{}")):
            exports[outer] = f"{module}.{inner}"
        return ""

    def listed(statement: re.Match[str]) -> str:
        exports.update({outer: inner for inner, outer in _pairs(statement["names"])})
        return ""

    def exported(statement: re.Match[str]) -> str:
        exports[statement["name"]] = statement["name"]
        return f"{statement['kind']} {statement['name']}"

    def default(statement: re.Match[str]) -> str:
        exports["default"] = "$default"
        return "const $default = "

    source = _IMPORT.sub(imported, source)
    source = _EXPORT_FROM.sub(passed_on, source)
    source = _EXPORT_LIST.sub(listed, source)
    source = _EXPORT_DEFAULT.sub(default, source)
    source = _EXPORT_ONE.sub(exported, source)
    if left := _ANY_LEFT.search(source):
        raise JoinError(f"{name}: cannot be joined: {left[0]}")
    source = _LATER.sub(lambda found: f'import("./{_resolve(name, found["module"])}")', source)
    # The joined file lies at the top: what a module names from its own place is named from there.
    source = source.replace("import.meta.url", f'new URL("./{name}", import.meta.url).href')
    return _Module(source, exports)


def _bindings(names: str, module: str) -> str:
    """The names of an import statement as constants."""
    lines = []
    if "{" in names:
        before, inside = names.split("{", 1)
        parts = ", ".join(
            inner if inner == outer else f"{inner}: {outer}" for inner, outer in _pairs(inside.strip("} "))
        )
        lines.append(f"const {{ {parts} }} = {module};")
        names = before.strip().rstrip(",").strip()
    if names.startswith("* as "):
        lines.append(f"const {names[5:].strip()} = {module};")
    elif names:
        lines.append(f"const {names} = {module}.default;")
    return "\n".join(lines) + "\n"


def _pairs(names: str) -> Iterator[tuple[str, str]]:
    """`a, b as c` as (inner, outer) names."""
    for part in filter(None, (one.strip() for one in names.split(","))):
        inner, _, outer = part.partition(" as ")
        yield inner.strip(), outer.strip() or inner.strip()
