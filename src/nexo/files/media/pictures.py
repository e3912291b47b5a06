"""Previews of a picture. Runs only in a process that is limited to it, see `worker`."""

from __future__ import annotations

import copy
import io
from typing import BinaryIO, NamedTuple

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageCms,
    ImageColor,
    ImagePalette,
    JpegImagePlugin,
    MpoImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from nexo.files.media.blurhash import blurhash

MEDIUM_PX = 1280
SMALL_PX = 320
_PLACEHOLDER_PX = 32
_QUALITY = 80
_ORIENTATION = 0x0112

# Imported by the library when it first needs them, which is too late: a limited process imports nothing.
LOADED = (
    copy,
    ImageColor,
    ImagePalette,
    MpoImagePlugin,
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)
AvifImagePlugin.DEFAULT_MAX_THREADS = 1
Image.MAX_IMAGE_PIXELS = None  # the limit is ours, and an error

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class TooManyPixels(Exception):
    """The picture says of itself that it is larger than allowed."""


class Picture(NamedTuple):
    width: int  # as it is shown: the orientation is applied
    height: int
    placeholder: str
    small: bytes
    medium: bytes


def prepare(image_format: str) -> None:
    """Load what decoding a picture of this format loads later, by decoding one."""
    sample = io.BytesIO()
    Image.new("RGB", (2, 2)).save(sample, image_format)
    sample.seek(0)
    read_picture(sample, image_format, 4)
    _ = ImageCms.createProfile("sRGB")


def read_picture(stream: BinaryIO, image_format: str, pixels_max: int) -> Picture:
    """Returns size, placeholder and previews of the first frame. Any exception means: not a picture of this format,
    damaged, or too large."""
    if image_format == "WEBP":  # its decoder takes the memory for all pixels when it opens a file
        _check_pixels(_webp_size(stream.read(30)), pixels_max)
        stream.seek(0)
    with Image.open(stream, formats=[image_format]) as image:
        _check_pixels(image.size, pixels_max)
        width, height = image.size
        orientation = 1 if image_format == "TIFF" else _orientation(image)  # TIFF is turned while it is decoded
        shrunk = _shrink(image)
        if image_format == "TIFF":
            width, height = image.size
    turned = shrunk.transpose(_TURNS[orientation]) if orientation in _TURNS else shrunk
    if orientation >= 5:
        width, height = height, width
    small = turned.copy()
    small.thumbnail((SMALL_PX, SMALL_PX), Image.Resampling.LANCZOS)
    return Picture(width, height, _placeholder(small), _encode(small), _encode(turned))


def _check_pixels(size: tuple[int, int], pixels_max: int) -> None:
    width, height = size
    if width * height > pixels_max:
        raise TooManyPixels(f"{width} x {height} pixels")
    if width < 1 or height < 1:
        raise ValueError("no pixels")


def _shrink(image: Image.Image) -> Image.Image:
    """Returns the picture in at most `MEDIUM_PX`, in the colours of the web, without anything that is not a pixel."""
    image.draft("RGB", (MEDIUM_PX * 2, MEDIUM_PX * 2))  # JPEG: decoded at a half, a quarter or an eighth
    image.load()
    profile = image.info.get("icc_profile")
    plain = _as_colours(image)
    scale = min(1.0, MEDIUM_PX / max(image.size))
    size = (max(1, round(plain.width * scale)), max(1, round(plain.height * scale)))
    shrunk = plain.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0) if size != plain.size else plain.copy()
    shrunk.info = {}
    return _in_web_colours(shrunk, profile)


def _as_colours(image: Image.Image) -> Image.Image:
    """Returns it as RGB, or RGBA if a part of it is transparent."""
    if image.mode in ("RGB", "RGBA"):
        is_keyed = image.mode == "RGB" and "transparency" in image.info
        return image.convert("RGBA") if is_keyed else image
    if image.mode.startswith("I;16"):
        return image.convert("I").point(lambda value: value / 256, "L").convert("RGB")
    if image.mode in ("LA", "La", "PA", "RGBa") or "transparency" in image.info:
        return image.convert("RGBA")
    return image.convert("RGB")


def _in_web_colours(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Returns it in sRGB, which previews have because they carry no profile."""
    if not profile or image.mode != "RGB":
        return image
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):  # a profile for other colours, or a broken one
        return image
    return converted if converted is not None else image


def _orientation(image: Image.Image) -> int:
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # broken metadata are no reason to refuse a picture
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _placeholder(image: Image.Image) -> str:
    tiny = image.copy()
    tiny.thumbnail((_PLACEHOLDER_PX, _PLACEHOLDER_PX))
    if tiny.mode == "RGBA":
        ground = Image.new("RGBA", tiny.size, (255, 255, 255, 255))
        tiny = Image.alpha_composite(ground, tiny)
    pixels = tiny.convert("RGB").tobytes()
    colours = [(pixels[at], pixels[at + 1], pixels[at + 2]) for at in range(0, len(pixels), 3)]
    return blurhash(colours, tiny.width, tiny.height)


def _encode(image: Image.Image) -> bytes:
    image.info = {}
    out = io.BytesIO()
    image.save(out, "WEBP", quality=_QUALITY, method=4)
    return out.getvalue()


def _webp_size(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    raise ValueError("not WebP")
