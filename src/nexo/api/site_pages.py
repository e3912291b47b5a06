"""Makes the pages of the site as they are sent: styles inside, addresses with the digest, one joined module; and their
content policy."""

from __future__ import annotations

import base64
import hashlib
import html
import re

import msgspec
from msgspec import Struct

from nexo.api.joined_modules import join, stand_in

_STYLE = re.compile(r'<link rel="stylesheet" href="/web/([^"]+)">\n')
_ADDRESS = re.compile(r'(?:href|src)="(/web/[^"]+)"')
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
# Pictures may be sent by URL, so they may come from anywhere; nothing else may. `blob:`: what a user is about to send.
_RULES = (
    "default-src 'self'; img-src 'self' https: http: data: blob:; media-src 'self' blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types nexo"
)


class SitePage(Struct):
    body: bytes
    styles: str  # what is inside `<style>`
    addresses: list[str]


def policy(page: SitePage | None = None) -> bytes:
    """The content security policy of a file; of a page it also names the digest of the page's own styles."""
    if page is None:
        return _RULES.encode()
    digest = base64.b64encode(hashlib.sha256(page.styles.encode()).digest()).decode()
    return f"{_RULES}; style-src 'self' 'sha256-{digest}'".encode()


def build_page(template: bytes, digest: str, files: dict[str, bytes], settings: bytes) -> SitePage:
    """The page with its styles, its icons and the settings of the server inside: the first answer can be drawn."""
    text = template.decode()
    styles = "".join(_COMMENT.sub("", files[name].decode()) for name in _STYLE.findall(text))
    first = True

    def style(found: re.Match[str]) -> str:
        nonlocal first
        now, first = first, False
        return f"<style>{styles}</style>\n" if now else ""

    text = _STYLE.sub(style, text)
    text = text.replace("<!-- icons -->\n", files["img/icons.svg"].decode())
    text = text.replace("<!-- settings -->", f'<meta name="nexo-settings" content="{html.escape(settings.decode())}">')
    text = text.replace('"/web/', f'"/web/{digest}/')
    return SitePage(text.encode(), styles, _ADDRESS.findall(text))


def build_worker(source: bytes, digest: str, page: SitePage) -> bytes:
    """Returns the service worker; its text changes whenever a file of the page changes."""
    shell = msgspec.json.encode(["/", *page.addresses])
    return b'const VERSION = "%s";\nconst SHELL = %s;\n%s' % (digest.encode(), shell, source)


def join_page(files: dict[str, bytes], entry: str, name: str) -> dict[str, bytes]:
    """The joined file of a page under its name, and stand-ins for the modules in it: what is loaded later by `import()`
    then gets the same modules as the page."""
    body, exports = join(files, entry)
    found = {one: stand_in(name, one, number, given) for number, (one, given) in enumerate(exports.items())}
    return {**found, name: body}
