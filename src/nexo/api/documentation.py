"""`/docs`: a page that shows the OpenAPI document and can try its calls, without files from other hosts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from nexo.api.dispatch import Page
from nexo.api.openapi import make_document
from nexo.api.replies import Reply, page_reply
from nexo.api.routes import ROUTES

_FILES = Path(__file__).parent / "docs"
_POLICY = (
    b"content-security-policy",
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)
_ASK_AGAIN = (b"cache-control", b"no-cache")
_FRONT_PAGE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Nexo</title>
<h1>Nexo runs here</h1>
<p>The HTTP API is described at <a href="docs">/docs</a>.</p>
</html>
"""


def pages() -> dict[str, Page]:
    return {
        "/openapi.json": _openapi,
        "/docs": _file("docs.html", "text/html; charset=utf-8"),
        "/docs/docs.js": _file("docs.js", "text/javascript; charset=utf-8"),
        "/docs/docs.css": _file("docs.css", "text/css; charset=utf-8"),
    }


def front_page(headers: Mapping[bytes, bytes]) -> Reply:
    return page_reply(_FRONT_PAGE, "text/html; charset=utf-8", _ASK_AGAIN)


def _openapi(headers: Mapping[bytes, bytes]) -> Reply:
    return page_reply(_document(), "application/json", _ASK_AGAIN)


@cache
def _document() -> bytes:
    return msgspec.json.encode(make_document(ROUTES))


def _file(name: str, content_type: str) -> Page:
    body = (_FILES / name).read_bytes()

    def answer(headers: Mapping[bytes, bytes]) -> Reply:
        return page_reply(body, content_type, _POLICY, _ASK_AGAIN)

    return answer
