"""The documentation says what the code does: generated pages are compared with their generators."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexo.cli.docs import RENDERERS, Page
from nexo.config import describe
from nexo.errors import ERRORS

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", Page)
def test_the_page_is_what_the_code_generates(page: Page) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert text == RENDERERS[page]() + "\n", "run: nexo docs --write docs"


def test_every_setting_and_every_error_has_its_row() -> None:
    config, errors = RENDERERS[Page.config](), RENDERERS[Page.errors]()
    for field in describe():
        assert f"| `{field.key}`<br>`{field.env}` |" in config
    for row in ERRORS.values():
        assert f"| {row.number} | `{row.name}` |" in errors
