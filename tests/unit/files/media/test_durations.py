from __future__ import annotations

import io
import random
import struct
import wave

import pytest

from nexo.files.media.durations import Recording, read_recording


def wav(seconds: float) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * int(8000 * seconds))
    return out.getvalue()


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), kind) + content


def mp4(milliseconds: int, width: int, height: int, *, turned: bool = False) -> bytes:
    header = box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 1000, milliseconds) + b"\0" * 80)
    matrix = (
        (0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x40000000)
        if turned
        else (0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
    )
    sound = box(b"trak", box(b"tkhd", b"\0" * 84))
    track = b"\0" * 40 + struct.pack(">9i", *matrix) + struct.pack(">II", width << 16, height << 16)
    film = box(b"trak", box(b"tkhd", track))
    return box(b"ftyp", b"isom\0\0\0\0isom") + box(b"mdat", b"x" * 100) + box(b"moov", header + sound + film)


def ogg(samples: int) -> bytes:
    def page(granule: int, content: bytes) -> bytes:
        return b"OggS\0\0" + struct.pack("<q", granule) + b"\0" * 12 + bytes((1, len(content))) + content

    head = b"OpusHead\x01\x01" + struct.pack("<HIhB", 312, 48000, 0, 0)
    return page(0, head) + page(24_000, b"y" * 50) + page(samples + 312, b"x" * 50) + page(-1, b"z" * 10)


def flac(samples: int) -> bytes:
    bits = (44_100 << 44) | (1 << 41) | (15 << 36) | samples
    return b"fLaC\x80\0\0\x22" + b"\0" * 10 + bits.to_bytes(8, "big") + b"\0" * 16


def webm(milliseconds: float) -> bytes:
    info = b"\x2a\xd7\xb1\x83\x0f\x42\x40" + b"\x44\x89\x88" + struct.pack(">d", milliseconds)
    head = b"\x1a\x45\xdf\xa3\x84\x42\x86\x81\x01" + b"\x18\x53\x80\x67\x01" + b"\xff" * 7
    index = b"\x11\x4d\x9b\x74\x87\x53\xab\x84\x15\x49\xa9\x66"  # names Info before it is there
    return head + index + b"\x15\x49\xa9\x66" + bytes((0x80 | len(info),)) + info


@pytest.mark.parametrize(
    ("content", "mime", "found"),
    [
        (wav(1.5), "audio/wav", Recording(1500)),
        (mp4(61_000, 1920, 1080), "video/mp4", Recording(61_000, 1920, 1080)),
        (mp4(61_000, 1920, 1080, turned=True), "video/quicktime", Recording(61_000, 1080, 1920)),
        (ogg(96_000), "audio/ogg", Recording(2000)),
        (flac(88_200), "audio/flac", Recording(2000)),
        (webm(2500.0), "video/webm", Recording(2500)),
        (b"anything", "audio/mpeg", Recording()),
    ],
)
def test_headers_state_how_long_a_recording_is(content: bytes, mime: str, found: Recording) -> None:
    assert read_recording(io.BytesIO(content), mime) == found


def test_a_length_that_cannot_be_is_left_out() -> None:
    assert read_recording(io.BytesIO(mp4(0xFFFFFFFE, 10, 10)), "video/mp4") == Recording(None, 10, 10)
    assert read_recording(io.BytesIO(mp4(1000, 60_000, 10)), "video/mp4") == Recording(1000)


def test_boxes_that_hold_each_other_end() -> None:
    endless = struct.pack(">I4s", 8, b"free") * 200_000
    assert read_recording(io.BytesIO(endless), "video/mp4") == Recording()
    assert read_recording(io.BytesIO(struct.pack(">I4s", 0, b"moov") * 50), "video/mp4") == Recording()


def test_damaged_headers_yield_nothing_or_something_that_can_be() -> None:
    chance = random.Random(5)
    samples = [
        (wav(0.1), "audio/wav"),
        (mp4(61_000, 1920, 1080), "video/mp4"),
        (ogg(96_000), "audio/ogg"),
        (flac(88_200), "audio/flac"),
        (webm(2500.0), "video/webm"),
    ]
    for _ in range(2000):
        content, mime = chance.choice(samples)
        damaged = bytearray(content[: chance.randrange(1, len(content) + 1)])
        for _ in range(chance.randrange(4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        found = read_recording(io.BytesIO(bytes(damaged)), mime)
        assert found.duration_ms is None or found.duration_ms >= 0
