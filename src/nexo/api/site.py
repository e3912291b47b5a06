"""Serves the web client at `/`, the console at `/admin`, their files under `/web/` and the SDK under `/sdk/`, all from
memory.

A page contains its styles. It names its joined module and its other files by a digest of all files (`/web/<digest>/…`):
browsers may keep these files for ever, and fetch a new version as a whole or not at all. Without the digest the same
files are served as they are written, and browsers ask for them again each time.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

import nexo
from nexo.api.asgi import Receive, Scope, Send
from nexo.api.joined_modules import JoinError
from nexo.api.middleware import CONTEXT, Context
from nexo.api.replies import Headers, Reply, error_reply, send_reply
from nexo.api.site_pages import build_page, build_worker, join_page, policy
from nexo.config import Config
from nexo.errors import NexoError, StartupError

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
_NEEDED = ("index.html", "admin.html", "sw.js", "js/app.js", "admin/admin.js", "sdk/index.js")
_JOIN_LINK = "/j/"  # an invite link leads to the web client, which shows the group


class SiteSettings(Struct):
    """What the web client needs to know of this server before and after signing in: numbers in its texts."""

    version: str
    min_password_length: int
    min_create_members: int
    recall_window_s: int
    recall_admin: bool
    edit_window_s: int
    files_max_bytes: int
    user_search: bool
    registration: str  # `open`, `invite` or `closed`


class _File(Struct, frozen=True):
    content_type: bytes
    etag: bytes
    body: bytes
    zipped: bytes | None
    policy: bytes


class Site:
    """An ASGI application for every path that is not the API's."""

    def __init__(self, config: Config) -> None:
        files = _load_files()
        settings = msgspec.json.encode(_settings(config))
        files["settings.json"] = settings
        self._digest = _digest(b"".join(name.encode() + b"\0" + files[name] for name in sorted(files)))
        index, admin, worker = (files.pop(name) for name in ("index.html", "admin.html", "sw.js"))
        self._written = {name: _file(name, body) for name, body in files.items()}
        try:
            joined = join_page(files, "admin/admin.js", "admin.js") | join_page(files, "js/app.js", "app.js")
        except JoinError as error:
            raise StartupError(f"the web client cannot be put together: {error}") from error
        self._kept = self._written | {name: _file(name, body) for name, body in joined.items()}
        pages = [build_page(page, self._digest, files, settings) for page in (index, admin)]
        self._index, self._admin = (_file("index.html", page.body, policy(page)) for page in pages)
        self._worker = _file("sw.js", build_worker(worker, self._digest, pages[0]))

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
        if path == "/" or (path.startswith(_JOIN_LINK) and "/" not in path[len(_JOIN_LINK) :]):
            return self._index, _ASK_AGAIN
        if path == "/admin":
            return self._admin, _ASK_AGAIN
        if path == "/sw.js":  # at the top: a service worker sees what lies below its own address
            return self._worker, _ASK_AGAIN
        if not path.startswith("/"):  # `OPTIONS *`
            return None
        _, first, rest = (*path.split("/", 2), "")[:3]
        if first == "sdk":
            file, kept = self._written.get(f"sdk/{rest}"), _ASK_AGAIN
        elif first == "web" and rest.startswith(f"{self._digest}/"):
            file, kept = self._kept.get(rest.removeprefix(f"{self._digest}/")), _KEEP
        elif first == "web":
            file, kept = self._written.get(rest), _ASK_AGAIN
        else:
            return None
        return None if file is None else (file, kept)


def _settings(config: Config) -> SiteSettings:
    return SiteSettings(
        nexo.__version__,
        config.auth.min_password_length,
        config.group.min_create_members,
        config.recall.window_s,
        config.recall.admin,
        config.edit.window_s,
        config.files.max_bytes,
        config.user.search,
        config.auth.registration,
    )


def _load_files() -> dict[str, bytes]:
    """Returns all files of the site by name; raises a StartupError when the package was built without some of them."""
    try:
        files = dict(_read_files())
    except OSError as error:
        raise StartupError(f"the file {error.filename} of the web client cannot be read: {error.strerror}") from error
    missing = [name for name in _NEEDED if name not in files]
    if missing:
        raise StartupError(
            f"this installation of Nexo in {_PACKAGE} is incomplete ({', '.join(missing)} of the web client missing): "
            "install it again, from a wheel or a whole checkout with clients/js/src"
        )
    return files


def _read_files() -> Iterator[tuple[str, bytes]]:
    sdk = next((place for place in _SDK_PLACES if place.is_dir()), _SDK_PLACES[0])
    for folder, prefix in ((_WEB, ""), (sdk, "sdk/")):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TYPES:
                yield prefix + path.relative_to(folder).as_posix(), path.read_bytes()


def _file(name: str, body: bytes, rules: bytes = policy()) -> _File:
    suffix = Path(name).suffix
    zipped = None if suffix in _PLAIN else gzip.compress(body, mtime=0)
    if zipped is not None and len(zipped) >= len(body):
        zipped = None
    return _File(_TYPES[suffix].encode(), _digest(body).encode(), body, zipped, rules)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _reply(file: _File, kept: tuple[bytes, bytes], asked: dict[bytes, bytes]) -> Reply:
    zipped = file.zipped is not None and b"gzip" in asked.get(b"accept-encoding", b"")
    etag = b'"%s%s"' % (file.etag, b"-gz" if zipped else b"")
    headers: Headers = [(b"content-security-policy", file.policy), kept, (b"etag", etag), (b"vary", b"accept-encoding")]
    if etag in asked.get(b"if-none-match", b""):
        return Reply(304, headers, b"")
    body = file.body
    if zipped and file.zipped is not None:
        body = file.zipped
        headers.append((b"content-encoding", b"gzip"))
    headers += [(b"content-type", file.content_type), (b"content-length", b"%d" % len(body))]
    return Reply(200, headers, body)
