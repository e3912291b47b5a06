"""The types of formats that hold other formats: which of them is inside."""

from __future__ import annotations

_OFFICE = (
    (b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
)
_STORED_TYPES = (
    b"application/vnd.oasis.opendocument.text",
    b"application/vnd.oasis.opendocument.spreadsheet",
    b"application/vnd.oasis.opendocument.presentation",
    b"application/vnd.oasis.opendocument.graphics",
    b"application/epub+zip",
)
_STILL_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"hevc": "image/heic",
    b"hevx": "image/heic",
    b"heim": "image/heic",
    b"heis": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
}
_FILM_BRANDS = {
    b"qt  ": "video/quicktime",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"M4P ": "audio/mp4",
    b"3gp": "video/3gpp",
    b"3g2": "video/3gpp2",
    b"crx ": "image/x-canon-cr3",
}
_RIFF = {
    b"WEBP": "image/webp",
    b"WAVE": "audio/wav",
    b"AVI ": "video/x-msvideo",
    b"AIFF": "audio/aiff",
    b"AIFC": "audio/aiff",
}


def zip_type(head: bytes, tail: bytes) -> str:
    """Returns the type of a ZIP archive by the names in it."""
    if head[30:38] == b"mimetype":
        for stored in _STORED_TYPES:
            if head[38:].startswith(stored):
                return stored.decode()
    directory = head + tail
    if b"[Content_Types].xml" in directory:
        for name, mime in _OFFICE:
            if name in directory:
                return mime
    if b"AndroidManifest.xml" in directory:
        return "application/vnd.android.package-archive"
    if b"META-INF/MANIFEST.MF" in directory:
        return "application/java-archive"
    return "application/zip"


def riff_type(head: bytes) -> str | None:
    return _RIFF.get(head[8:12])


def base_media_type(head: bytes) -> str:
    """Returns the type of a file of the family of MP4, by its brands."""
    size = min(int.from_bytes(head[:4], "big"), len(head), 256)
    brands = [head[8:12], *(head[place : place + 4] for place in range(16, size - 3, 4))]
    for brand in brands[:1]:
        for known, mime in _FILM_BRANDS.items():
            if brand.startswith(known):
                return mime
    found = [_STILL_BRANDS[brand] for brand in brands if brand in _STILL_BRANDS]
    if brands[0] in _STILL_BRANDS:  # `mif1` says only: a picture
        return next((mime for mime in found if mime != "image/heif"), "image/heif")
    return "video/mp4"


def matroska_type(head: bytes) -> str:
    return "video/webm" if b"webm" in head[:64] else "video/x-matroska"


def ogg_type(head: bytes) -> str:
    """Returns the type of an Ogg file by the codecs that its first pages name."""
    if b"theora" in head[:512] or b"\x01video" in head[:512]:
        return "video/ogg"
    return "audio/ogg"
