"""Names and titles of the migrations between two revisions of the schema, for commands that report them."""

from __future__ import annotations

from typing import NamedTuple

from alembic.script import ScriptDirectory

from nexo.store import migrations


class Revision(NamedTuple):
    name: str
    title: str


def between(before: str | None, after: str) -> list[Revision]:
    """Returns the migrations that lead from one revision (None: an empty database) to another, oldest first."""
    directory = ScriptDirectory(migrations.__path__[0])
    scripts = list(directory.iterate_revisions(after, before or "base"))
    return [Revision(script.revision, script.doc) for script in reversed(scripts)]
