"""The page of all commands: the output of `nexo … --help` in one place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import typer

from nexo.cli import GROUPS

INTRODUCTION = """\
`nexo COMMAND --help` shows the same. Exit codes: 0 it is done, 1 the answer is no (something is not consistent, a
request was refused), 2 it could not be tried (wrong usage or configuration). Every setting can also be given by a
config file or the environment, see [config.md](config.md).
""".splitlines()


def lines() -> Iterator[str]:
    for name, group in GROUPS.items():
        if not group.hidden:
            command = typer.main.get_command(import_module(group.module).app)
            yield ""
            yield f"## nexo {name}"
            yield from _command(f"nexo {name}", command, command.help or group.help)


def _command(path: str, command: Any, text: str) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    yield ""
    yield from inspect.cleandoc(text.partition("\f")[0]).splitlines()
    parts = dict(getattr(command, "commands", {}))
    if not parts:
        yield ""
        yield f"    {' '.join(_plain(word) for word in (path, *command.collect_usage_pieces(context)))}"
    shown = [parameter for parameter in command.params if not parameter.hidden]
    if shown:
        yield ""
        yield "| | default | meaning |"
        yield "|---|---|---|"
        for parameter in shown:
            yield _parameter(parameter)
    for name, part in parts.items():
        yield ""
        yield f"### {path} {name}"
        yield from _command(f"{path} {name}", part, part.help or "")


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{(parameter.metavar or parameter.name).upper()}`"
    else:
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    known = default if isinstance(default, (str, int, float)) and not isinstance(default, bool) else ""
    shown = f"`{known}`" if known not in ("", 0) else ""
    meaning = _plain(parameter.help or "").replace("|", "\\|")
    return f"| {names} | {shown} | {meaning} |"


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
