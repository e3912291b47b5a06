"""The type of a file, decided by its bytes. The name decides only between kinds of plain text.

A file that is two things at once (a picture whose first bytes a browser could also take for a page, a picture with an
archive behind it) has the type of the more dangerous one.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from nexo.files.media.containers import base_media_type, matroska_type, ogg_type, riff_type, zip_type

HEAD_BYTES = 4096
TAIL_BYTES = 65_557  # the longest end record of a ZIP archive with its comment
_MARKUP_BYTES = 1536  # no browser looks further to find markup

BINARY = "application/octet-stream"
TEXT = "text/plain"
HTML = "text/html"
SVG = "image/svg+xml"
XML = "application/xml"
PDF = "application/pdf"

# Shown by a browser without running anything in it. Every other type is for downloading.
_SHOWN_TYPES = frozenset({TEXT})
_SHOWN_KINDS = ("image/", "audio/", "video/")

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"II+\x00", "image/tiff"),
    (b"MM\x00+", "image/tiff"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"\xff\x0a", "image/jxl"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "image/jp2"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"MThd", "audio/midi"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-asf"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"%!PS", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"\x00asm", "application/wasm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
    (b"MZ", "application/vnd.microsoft.portable-executable"),
    (b"\x7fELF", "application/x-elf"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xca\xfe\xba\xbe", "application/x-mach-binary"),
)

# Formats that are text; a plain text may begin with the letters of any other.
_TEXT_MAGIC = (b"%!PS", b"{\\rtf")
_BMP_HEADERS = {bytes((size,)) for size in (12, 40, 52, 56, 108, 124)}

# What makes a browser, or a reader that is generous, take bytes for a page.
_MARKUP = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|script|iframe|frameset|object|embed|applet|style|link|meta|base|form|svg|"
    rb"math|img|video|audio|template|a\s+href)[\s/>]",
    re.IGNORECASE,
)
_SVG = re.compile(rb"<(?:[\w.-]+:)?svg[\s/>]|<!doctype\s+svg", re.IGNORECASE)
_PAGE = re.compile(rb"<(?:[\w.-]+:)?(?:html|script)[\s/>]|<!doctype\s+html", re.IGNORECASE)
_CONTROLS = frozenset(range(0x20)) - {0x09, 0x0A, 0x0C, 0x0D, 0x1B}
# Text whose name says more than its bytes; a browser runs none of them.
_TEXT_NAMES = {".csv": "text/csv", ".md": "text/markdown", ".json": "application/json", ".vcf": "text/vcard"}


def sniff(head: bytes, tail: bytes = b"", name: str = "") -> str:
    """Returns the type of a file from its first `HEAD_BYTES` and its last `TAIL_BYTES`, which overlap in small ones."""
    found = _by_magic(head, tail)
    if found is None:
        return _text_type(head, name)
    if found.startswith(_SHOWN_KINDS):
        return _more_dangerous(head, tail) or found
    return found


def is_shown(mime: str) -> bool:
    """Whether a browser may show it in place: it runs nothing of it. Other types are served for downloading, and PDF
    only in a sandbox."""
    return mime in _SHOWN_TYPES or (mime.startswith(_SHOWN_KINDS) and not mime.endswith("+xml"))


def _by_magic(head: bytes, tail: bytes) -> str | None:
    if b"%PDF-" in head[:1024]:  # where readers look for it, whatever stands before
        return PDF
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return zip_type(head, tail)
    if head[:4] in (b"RIFF", b"FORM"):
        return riff_type(head)
    if head[4:8] == b"ftyp":
        return base_media_type(head)
    if head[4:8] in (b"moov", b"mdat", b"wide", b"free", b"skip") and head[0] == 0:
        return "video/quicktime"
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return matroska_type(head)
    if head.startswith(b"OggS"):
        return ogg_type(head)
    for magic, mime in _MAGIC:
        if head.startswith(magic):
            return mime if magic in _TEXT_MAGIC or not magic.isascii() or _as_text(head) is None else None
    if head.startswith(b"BM") and head[6:10] == b"\0\0\0\0" and head[14:15] in _BMP_HEADERS:
        return "image/bmp"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    return _stream_type(head)


def _stream_type(head: bytes) -> str | None:
    """Returns the type of formats that are only a series of packets."""
    if len(head) > 376 and head[0] == head[188] == head[376] == 0x47:
        return "video/mp2t"
    if len(head) >= 4 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        if head[1] & 0xF6 == 0xF0:
            return "audio/aac"
        layer, rate, frequency = head[1] >> 1 & 3, head[2] >> 4, head[2] >> 2 & 3
        if layer in (1, 2) and rate != 15 and frequency != 3 and head[1] >> 3 & 3 != 1:
            return "audio/mpeg"
    return None


def _more_dangerous(head: bytes, tail: bytes) -> str | None:
    """Returns what else the bytes of a picture, a sound or a film could be taken for."""
    start = head[:_MARKUP_BYTES]
    if _MARKUP.search(start):
        return SVG if _SVG.search(start) and not _PAGE.search(start) else HTML
    return "application/zip" if _ends_as_archive(tail) else None


def _ends_as_archive(tail: bytes) -> bool:
    """Whether a reader of ZIP archives finds one: it looks for the end record from behind."""
    end = tail.rfind(b"PK\x05\x06")
    record = tail[end : end + 22]
    if end < 0 or len(record) < 22:
        return False
    entries, comment_bytes = (int.from_bytes(record[at : at + 2], "little") for at in (10, 20))
    return entries > 0 and len(tail) - end - 22 >= comment_bytes and b"PK\x01\x02" in tail


def _text_type(head: bytes, name: str) -> str:
    text = _as_text(head)
    if text is None:
        return HTML if _PAGE.search(head[:_MARKUP_BYTES]) else BINARY
    start = text.lstrip()
    if start.startswith(b"<?xml") or _SVG.match(start):
        if _SVG.search(text) and not re.search(rb"<html[\s/>]", text, re.IGNORECASE):
            return SVG
        return "application/xhtml+xml" if _PAGE.search(text) else XML
    if _MARKUP.match(start) or start.startswith(b"<!--") or _PAGE.search(text[:_MARKUP_BYTES]):
        return HTML
    if start.startswith(b"<!DOCTYPE"):
        return XML
    return _TEXT_NAMES.get(PurePath(name).suffix.lower(), TEXT)


def _as_text(head: bytes) -> bytes | None:
    """Returns the text as UTF-8; None if the bytes are no text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        whole = head[: len(head) & ~1]
        return whole.decode("utf-16", "replace").encode("utf-8", "replace")
    head = head.removeprefix(b"\xef\xbb\xbf")
    if any(byte in _CONTROLS for byte in head):
        return None
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = error.start >= len(head) - 3 and len(head) >= HEAD_BYTES - 3  # in the middle of a character
        if not is_cut and not _is_latin(head):
            return None
    return head


def _is_latin(head: bytes) -> bool:
    """Whether text of an older encoding: mostly letters of ASCII, and no control characters of the second half."""
    high = sum(byte >= 0x80 for byte in head)
    return high * 4 < len(head) and not any(0x80 <= byte < 0xA0 for byte in head)
