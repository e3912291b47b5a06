"""Pictures and recordings, examined by real worker processes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from msgspec import structs
from PIL import Image, ImageCms

from harness.waiting import until
from nexo.config import Config
from nexo.errors import NexoError
from nexo.files.media.ffmpeg import Ffmpeg
from nexo.files.media.processes import Job, NoRoom, WorkerFailed, WorkerLate
from nexo.files.media.reader import Reader
from nexo.files.ports import Examined

RED, BLUE = (200, 30, 30), (30, 30, 200)


def reader_with(**limits: object) -> Reader:
    config = Config()
    media = structs.replace(config.files.media, **limits)
    return Reader(structs.replace(config, files=structs.replace(config.files, media=media)))


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = reader_with()
    yield made
    asyncio.run(made.close())


def picture(width: int = 64, height: int = 48, mode: str = "RGB") -> Image.Image:
    """Red on the left, blue on the right."""
    made = Image.new("RGB", (width, height), RED)
    made.paste(BLUE, (width // 2, 0, width, height))
    return made.convert(mode)


def saved(folder: Path, image: Image.Image, kind: str, **options: object) -> Path:
    path = folder / f"upload-{kind}"
    image.save(path, kind, **options)
    return path


def written(folder: Path, content: bytes) -> Path:
    path = folder / "upload"
    path.write_bytes(content)
    return path


def preview(path: Path | None) -> Image.Image:
    assert path is not None
    with Image.open(path) as image:
        image.load()
        return image


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, *extra: bytes, colour: int = 2) -> bytes:
    """A PNG whose pixels are all zero, and whose size is what it says of itself."""
    packer = zlib.compressobj(9)
    row = b"\0" * (1 + width * (3 if colour == 2 else 4))
    rows = b"".join(packer.compress(row) for _ in range(min(height, 20))) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(extra) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def tiff(width: int, height: int) -> bytes:
    entries = [
        (256, 4, width),
        (257, 4, height),
        (258, 3, 8),
        (259, 3, 1),
        (262, 3, 1),
        (273, 4, 8),
        (278, 4, height),
        (279, 4, 8),
    ]
    directory = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return b"II*\0" + struct.pack("<I", 16) + b"\0" * 8 + struct.pack("<H", len(entries)) + directory + b"\0" * 4


SIDES = b"\xff" * 4
BOMBS = {
    "PNG, 3,600 million pixels": png(60_000, 60_000),
    "PNG, one row too many": png(50_000, 1001),
    "PNG, a text of 20 MB": png(10, 10, chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * 20_000_000, 9))),
    "PNG, a profile of 20 MB": png(10, 10, chunk(b"iCCP", b"p\0\0" + zlib.compress(b"\0" * 20_000_000, 9))),
    "GIF, 4,295 million pixels": b"GIF89a"
    + SIDES
    + b"\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0"
    + SIDES
    + b"\0\x02\x02D\x01\0;",
    "WebP, 268 million pixels": b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x3f\0\xff\x3f\0",
    "WebP, lossless": b"RIFF\x20\0\0\0WEBPVP8L\x10\0\0\0\x2f\xff\xff\xff\x0f" + b"\0" * 20,
    "TIFF, 10,000 million pixels": tiff(100_000, 100_000),
}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"])
async def test_every_kind_of_picture_gets_previews(reader: Reader, tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path, picture(1600, 800), kind)
    found = await reader.examine(path, "anything.bin")
    assert (found.mime, found.width, found.height) == (f"image/{kind.lower()}", 1600, 800)
    assert found.placeholder is not None
    assert len(found.placeholder) <= 64
    small, medium = preview(found.previews.small), preview(found.previews.medium)
    assert (small.format, small.size, medium.size) == ("WEBP", (320, 160), (1280, 640))
    assert is_about(medium.convert("RGB").getpixel((100, 320)), RED)
    assert is_about(small.convert("RGB").getpixel((300, 80)), BLUE)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
async def test_every_kind_of_colours_is_understood(reader: Reader, tmp_path: Path, mode: str) -> None:
    image = Image.new(mode, (30, 20)) if mode == "I;16" else picture(30, 20, mode)
    found = await reader.examine(saved(tmp_path, image, "TIFF" if mode == "CMYK" else "PNG"), "x")
    assert preview(found.previews.medium).size == (30, 20)  # and nothing is enlarged


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "PNG", "TIFF"])
async def test_the_orientation_is_applied(reader: Reader, tmp_path: Path, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right when it is shown: left becomes top
    found = await reader.examine(saved(tmp_path, picture(640, 320), kind, exif=exif), "x")
    assert (found.width, found.height) == (320, 640)
    shown = preview(found.previews.medium).convert("RGB")
    assert shown.size == (320, 640)
    assert is_about(shown.getpixel((160, 100)), RED)
    assert is_about(shown.getpixel((160, 540)), BLUE)


async def test_previews_carry_nothing_but_pixels(reader: Reader, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010F] = "A camera"
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)  # where it was
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    path = saved(tmp_path, picture(), "JPEG", exif=exif, icc_profile=profile, comment=b"secret")
    found = await reader.examine(path, "x")
    for made in (found.previews.small, found.previews.medium):
        assert made is not None
        content = made.read_bytes()
        assert not any(word in content for word in (b"EXIF", b"XMP ", b"ICCP", b"camera", b"secret"))
        assert not preview(made).getexif()


async def test_transparency_stays(reader: Reader, tmp_path: Path) -> None:
    image = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    found = await reader.examine(saved(tmp_path, image, "PNG"), "x")
    assert preview(found.previews.small).convert("RGBA").getpixel((20, 20))[3] == 0  # type: ignore[index]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
async def test_of_many_frames_the_first_is_shown(reader: Reader, tmp_path: Path, kind: str) -> None:
    first, second = Image.new("RGB", (50, 50), RED), Image.new("RGB", (50, 50), BLUE)
    found = await reader.examine(saved(tmp_path, first, kind, save_all=True, append_images=[second] * 200), "x")
    shown = preview(found.previews.medium)
    assert is_about(shown.convert("RGB").getpixel((25, 25)), RED)
    assert getattr(shown, "n_frames", 1) == 1


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_a_bad_file(reader: Reader, tmp_path: Path, name: str) -> None:
    before = psutil.Process().memory_info().rss
    with pytest.raises(NexoError) as error:
        await reader.examine(written(tmp_path, BOMBS[name]), "x.png")
    assert error.value.name == "bad_file"
    assert psutil.Process().memory_info().rss - before < 32 * 1024 * 1024
    assert names_in(tmp_path) == ["upload"]


async def test_a_picture_that_takes_too_much_memory_is_a_bad_file(tmp_path: Path) -> None:
    reader = reader_with(memory_mib=256)
    image = Image.new("RGBA", (9000, 5000))  # 180 MB, and the same again to shrink it
    with pytest.raises(NexoError, match="bad_file"):
        await reader.examine(saved(tmp_path, image, "PNG", compress_level=1), "x")
    await reader.close()


async def test_a_picture_within_the_limits_is_read(reader: Reader, tmp_path: Path) -> None:
    image = Image.new("RGB", (10_000, 5000))
    found = await reader.examine(saved(tmp_path, image, "PNG", compress_level=1), "x")
    assert (found.width, found.height) == (10_000, 5000)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"])
async def test_a_truncated_picture_is_a_bad_file(reader: Reader, tmp_path: Path, kind: str) -> None:
    noise = Image.frombytes("RGB", (200, 200), random.Random(3).randbytes(120_000))
    content = saved(tmp_path, noise, kind).read_bytes()
    with pytest.raises(NexoError, match="bad_file"):
        await reader.examine(written(tmp_path, content[: len(content) // 2]), "x")


async def test_an_empty_file_is_a_bad_file(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(NexoError, match="bad_file"):
        await reader.examine(written(tmp_path, b""), "x.png")


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (b"<html><script>alert(1)</script></html>", "text/html"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "image/svg+xml"),
        (b"GIF89a<script>alert(1)</script>", "text/html"),
    ],
)
async def test_a_page_is_never_decoded(reader: Reader, tmp_path: Path, content: bytes, mime: str) -> None:
    assert await reader.examine(written(tmp_path, content), "holiday.png") == Examined(mime)


async def test_damaged_pictures_are_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    chance = random.Random(11)
    contents = [saved(tmp_path, picture(), kind).read_bytes() for kind in ("JPEG", "PNG", "GIF", "WEBP", "TIFF")]

    async def examine(number: int) -> str:
        damaged = bytearray(chance.choice(contents))
        for _ in range(chance.randrange(1, 8)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path = tmp_path / str(number)
        path.write_bytes(damaged)
        try:
            await reader.examine(path, "x")
        except NexoError as error:
            return error.name
        return "read"

    results = await asyncio.gather(*(examine(number) for number in range(24)))
    assert {"read"} < set(results) <= {"read", "bad_file"}


async def test_twenty_files_at_a_time_are_read_by_a_few_processes(tmp_path: Path) -> None:
    reader = reader_with(workers=2)
    path = saved(tmp_path, picture(1000, 700), "JPEG")
    paths = [path.with_name(f"{number}.jpg") for number in range(20)]
    for each in paths:
        each.write_bytes(path.read_bytes())
    work = asyncio.gather(*(reader.examine(each, "x") for each in paths))
    most = 0
    while not work.done():
        most = max(most, len(workers()))
        await asyncio.wait({work}, timeout=0.005)
    assert {found.width for found in await work} == {1000}
    assert 1 <= most <= 2
    await reader.close()


async def test_more_files_than_may_wait_are_refused(tmp_path: Path) -> None:
    reader = reader_with(workers=1, queue_max=1)
    path = saved(tmp_path, picture(), "PNG")
    results = await asyncio.gather(*(reader.examine(path, "x") for _ in range(4)), return_exceptions=True)
    refused = [result for result in results if isinstance(result, NexoError)]
    assert [error.name for error in refused] == ["server_busy"] * 2
    assert (await reader.examine(path, "x")).width == 64
    await reader.close()


async def test_a_worker_that_computes_too_long_is_killed(tmp_path: Path) -> None:
    job = Job(1, 120, 1 << 30)
    with path_of(tmp_path).open("rb") as file, pytest.raises(WorkerLate):
        await asyncio.to_thread(job.run, "program_worker", file, sys.executable, "-c", "while True: pass")
    assert not workers()


async def test_a_worker_that_does_not_end_is_killed(tmp_path: Path) -> None:
    job = Job(10, 1, 1 << 30)
    with path_of(tmp_path).open("rb") as file, pytest.raises(NoRoom):
        await asyncio.to_thread(job.run, "program_worker", file, "/bin/sleep", "60")
    assert not workers()


async def test_a_crash_is_an_error_of_its_file_alone(reader: Reader, tmp_path: Path) -> None:
    job = Job(10, 60, 1 << 30)
    with path_of(tmp_path).open("rb") as file, pytest.raises(WorkerFailed, match="ended with 1"):
        await asyncio.to_thread(job.run, "program_worker", file, "/bin/false")
    assert (await reader.examine(path_of(tmp_path), "x")).width == 64


async def test_a_caller_that_is_cancelled_ends_the_worker(tmp_path: Path) -> None:
    reader = reader_with(workers=1)
    image = Image.new("RGB", (9000, 5000))
    work = asyncio.ensure_future(reader.examine(saved(tmp_path, image, "PNG", compress_level=1), "x"))
    await until(workers)
    work.cancel()
    await until(lambda: not workers())
    assert names_in(tmp_path) == ["upload-PNG"]
    await reader.close()


def workers() -> list[psutil.Process]:
    """The processes that examine files; the harness may have started others."""
    found = []
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE and any(
                "nexo.files.media" in word for word in process.cmdline()
            ):
                found.append(process)
    return found


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def path_of(folder: Path) -> Path:
    return saved(folder, picture(), "PNG")


def is_about(colour: object, wanted: tuple[int, int, int]) -> bool:
    assert isinstance(colour, tuple)
    return all(abs(a - b) < 40 for a, b in zip(colour, wanted, strict=True))


def program(folder: Path, name: str, lines: str) -> str:
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\nimport sys\n{lines}\n")
    path.chmod(0o755)
    return str(path)


async def test_a_film_gets_length_size_and_a_still_by_ffmpeg(tmp_path: Path) -> None:
    """By programs that stand for ffmpeg: they check what they were given and answer as it does."""
    still = io.BytesIO()
    picture(640, 360).save(still, "PNG")
    checks = "assert open(sys.argv[sys.argv.index('-i') + 1][5:], 'rb').read(8)[4:] == b'ftyp'\n"
    checks += "assert sys.argv[sys.argv.index('-f') + 1] == 'mov' and 'file' in sys.argv\n"
    film_stream = {"codec_type": "video", "width": 360, "height": 640, "side_data_list": [{"rotation": -90}]}
    answer = json.dumps({"streams": [{"codec_type": "audio"}, film_stream], "format": {"duration": "61.5"}})
    probe = program(tmp_path, "ffprobe", f"{checks}print('''{answer}''')")
    film = program(tmp_path, "ffmpeg", f"{checks}sys.stdout.buffer.write({still.getvalue()!r})")
    reader = reader_with()
    reader._ffmpeg = Ffmpeg(film, probe)
    found = await reader.examine(written(tmp_path, b"\0\0\0\x18ftypisom\0\0\2\0isommp42"), "film.bin")
    assert (found.mime, found.width, found.height, found.duration_ms) == ("video/mp4", 640, 360, 61_500)
    assert preview(found.previews.small).size == (320, 180)
    await reader.close()


async def test_a_film_that_ffmpeg_cannot_read_is_kept(tmp_path: Path) -> None:
    reader = reader_with()
    reader._ffmpeg = Ffmpeg("/bin/false", "/bin/false")
    found = await reader.examine(written(tmp_path, b"\0\0\0\x18ftypisom\0\0\2\0isommp42"), "film.bin")
    assert found == Examined("video/mp4")
    await reader.close()
