"""The web client at `/`, the live page at `/admin`, their files under `/web/`, the SDK under `/sdk/`: from memory.

The page names its files by the digest of them all (`/web/<digest>/…`). Those may be kept for ever, a new version is
fetched as a whole or not at all, and modules find each other by relative addresses. Without the digest the same files
are asked for again each time.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from starlette.types import Receive, Scope, Send

import nexo
from nexo.api.middleware import CONTEXT, Context
from nexo.api.replies import Headers, Reply, error_reply, send_reply
from nexo.config import Config
from nexo.errors import NexoError

# Pictures are sent by URL in this release, so they may come from anywhere; nothing else may.
POLICY = (
    b"content-security-policy",
    b"default-src 'self'; img-src 'self' https: http: data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
)
_ASK_AGAIN = (b"cache-control", b"no-cache")
_KEEP = (b"cache-control", b"public, max-age=31536000, immutable")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
_PLAIN = {".png"}  # what gzip does not make smaller

_PACKAGE = Path(nexo.__file__).parent
_WEB = _PACKAGE / "web"
# A wheel has the SDK beside the web client, a checkout where it is written.
_SDK_PLACES = (_WEB / "sdk", _PACKAGE.parents[1] / "clients" / "js" / "src")


class Settings(Struct):
    """What the web client needs to know of this server before and after signing in: numbers in its texts."""

    version: str
    min_password_length: int
    min_create_members: int
    recall_window_s: int
    recall_admin: bool
    user_search: bool


class _File(Struct, frozen=True):
    content_type: bytes
    etag: bytes
    body: bytes
    zipped: bytes | None


class Site:
    """An ASGI application for every path that is not the API's."""

    def __init__(self, config: Config) -> None:
        files = dict(_read_files())
        files["settings.json"] = msgspec.json.encode(_settings(config))
        index, admin = files.pop("index.html"), files.pop("admin.html")
        self._digest = _digest(b"".join(name.encode() + b"\0" + files[name] for name in sorted(files)))
        self._files = {name: _file(name, body) for name, body in files.items()}
        self._index = _file("index.html", _page(index, self._digest, files, ("js/", "i18n/", "sdk/")))
        self._admin = _file("admin.html", _page(admin, self._digest, files, ("admin/",)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_reply(send, self._answer(scope))

    def _answer(self, scope: Scope) -> Reply:
        found = self._find(scope["path"])
        if found is None:
            raise NexoError("not_found")
        if scope["method"] not in ("GET", "HEAD"):
            return error_reply(NexoError("method_not_allowed"), headers=((b"allow", b"GET, HEAD"),))
        context: Context = scope[CONTEXT]
        return _reply(*found, context.headers)

    def _find(self, path: str) -> tuple[_File, tuple[bytes, bytes]] | None:
        if path == "/":
            return self._index, _ASK_AGAIN
        if path == "/admin":
            return self._admin, _ASK_AGAIN
        _, first, rest = (*path.split("/", 2), "")[:3]
        if first == "sdk":
            rest, kept = f"sdk/{rest}", _ASK_AGAIN
        elif first == "web":
            kept = _KEEP if rest.startswith(f"{self._digest}/") else _ASK_AGAIN
            rest = rest.removeprefix(f"{self._digest}/")
        else:
            return None
        file = self._files.get(rest)
        return None if file is None else (file, kept)


def _settings(config: Config) -> Settings:
    return Settings(
        nexo.__version__,
        config.auth.min_password_length,
        config.group.min_create_members,
        config.recall.window_s,
        config.recall.admin,
        config.user.search,
    )


def _read_files() -> Iterator[tuple[str, bytes]]:
    sdk = next((place for place in _SDK_PLACES if place.is_dir()), None)
    if sdk is None:
        raise FileNotFoundError("The JavaScript SDK is missing, and the web client needs it")
    for folder, prefix in ((_WEB, ""), (sdk, "sdk/")):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TYPES:
                yield prefix + path.relative_to(folder).as_posix(), path.read_bytes()


def _page(index: bytes, digest: str, files: dict[str, bytes], parts: tuple[str, ...]) -> bytes:
    """The page with its files' addresses and its icons; modules are named ahead, to be fetched side by side."""
    modules = (
        name for name in sorted(files) if name.endswith(".js") and name.startswith(parts) and name != "js/theme.js"
    )
    ahead = "".join(f'<link rel="modulepreload" href="/web/{name}">\n' for name in modules)
    page = index.replace(b"<!-- modules -->\n", ahead.encode()).replace(b"<!-- icons -->\n", files["img/icons.svg"])
    return page.replace(b'"/web/', f'"/web/{digest}/'.encode())


def _file(name: str, body: bytes) -> _File:
    suffix = Path(name).suffix
    zipped = None if suffix in _PLAIN else gzip.compress(body, mtime=0)
    if zipped is not None and len(zipped) >= len(body):
        zipped = None
    return _File(_TYPES[suffix].encode(), _digest(body).encode(), body, zipped)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _reply(file: _File, kept: tuple[bytes, bytes], asked: dict[bytes, bytes]) -> Reply:
    zipped = file.zipped is not None and b"gzip" in asked.get(b"accept-encoding", b"")
    etag = b'"%s%s"' % (file.etag, b"-gz" if zipped else b"")
    headers: Headers = [POLICY, kept, (b"etag", etag), (b"vary", b"accept-encoding")]
    if etag in asked.get(b"if-none-match", b""):
        return Reply(304, headers, b"")
    body = file.body
    if zipped and file.zipped is not None:
        body = file.zipped
        headers.append((b"content-encoding", b"gzip"))
    headers += [(b"content-type", file.content_type), (b"content-length", b"%d" % len(body))]
    return Reply(200, headers, body)
