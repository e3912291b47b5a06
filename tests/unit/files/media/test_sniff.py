from __future__ import annotations

import io
import random
import zipfile

import pytest

from nexo.files.media.sniff import BINARY, HEAD_BYTES, HTML, PDF, SVG, TEXT, XML, is_shown, sniff

GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00"


def archive(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, "content " * 20)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (JPEG, "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png"),
        (GIF, "image/gif"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"II*\x00\x08\x00\x00\x00", "image/tiff"),
        (b"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", "image/bmp"),
        (b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf", "image/avif"),
        (b"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1heic", "image/heic"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "image/heic"),
        (b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42", "video/mp4"),
        (b"\x00\x00\x00\x14ftypqt  \x00\x00\x00\x00qt  ", "video/quicktime"),
        (b"\x00\x00\x00\x18ftypM4A \x00\x00\x00\x00M4A mp42", "audio/mp4"),
        (b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm", "video/webm"),
        (b"OggS\x00\x02" + b"\x00" * 22 + b"OpusHead\x01", "audio/ogg"),
        (WAV, "audio/wav"),
        (b"fLaC\x00\x00\x00\x22", "audio/flac"),
        (b"ID3\x04\x00\x00\x00\x00\x00\x00", "audio/mpeg"),
        (b"\xff\xfb\x90\x64\x00\x00", "audio/mpeg"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", PDF),
        (b"MZ\x90\x00\x03\x00\x00\x00", "application/vnd.microsoft.portable-executable"),
        (b"\x7fELF\x02\x01\x01\x00", "application/x-elf"),
        (b"\x1f\x8b\x08\x00\x00\x00", "application/gzip"),
        (bytes(range(256)), BINARY),
        (b"plain text\nof two lines", TEXT),
        ("Grüße, 你好".encode(), TEXT),
        ("Herzliche Grüße aus Köln".encode("latin-1"), TEXT),
        ("text".encode("utf-16"), TEXT),
        (b"<?xml version='1.0'?><feed/>", XML),
        (b"<!DOCTYPE html><title>x</title>", HTML),
        (b"  \n<HTML><body>", HTML),
        (b"<!-- a page -->", HTML),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", SVG),
        (b"<?xml version='1.0'?>\n<svg:svg xmlns:svg='http://www.w3.org/2000/svg'/>", SVG),
        (b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>", "application/xhtml+xml"),
    ],
)
def test_the_type_is_decided_by_the_bytes(content: bytes, mime: str) -> None:
    assert sniff(content, content, "holiday.png") == mime


@pytest.mark.parametrize(
    ("names", "mime"),
    [
        (("a.txt",), "application/zip"),
        (
            ("[Content_Types].xml", "_rels/.rels", "word/document.xml"),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (
            ("[Content_Types].xml", "xl/workbook.xml"),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        (("META-INF/MANIFEST.MF", "A.class"), "application/java-archive"),
    ],
)
def test_an_archive_has_the_type_of_the_document_in_it(names: tuple[str, ...], mime: str) -> None:
    content = archive(*names)
    assert sniff(content[:HEAD_BYTES], content) == mime


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (GIF[:-1] + b"<script>alert(1)</script>", HTML),
        (JPEG + b"<html><body onload=alert(1)>", HTML),
        (b"GIF89a<script>alert(1)</script>", HTML),
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 40 + b"<svg onload='x'>", SVG),
        (JPEG + b"\n%PDF-1.4\n1 0 obj", PDF),
        (GIF + archive("Evil.class"), "application/zip"),
        (WAV + b"<iframe src=x>", HTML),
        (b"\x00\x01\x02<script>alert(1)</script>", HTML),
    ],
)
def test_what_is_two_things_at_once_has_the_type_of_the_dangerous_one(content: bytes, mime: str) -> None:
    assert sniff(content[:HEAD_BYTES], content) == mime
    assert not is_shown(sniff(content[:HEAD_BYTES], content))


def test_the_name_decides_only_between_kinds_of_text() -> None:
    assert sniff(b"a,b\n1,2\n", name="table.csv") == "text/csv"
    assert sniff(b"<html>", name="table.csv") == HTML
    assert sniff(b"a,b\n1,2\n", name="table.png") == TEXT
    assert sniff(b"MZ and Co. is a company", name="note.txt") == TEXT


def test_a_text_that_is_cut_in_a_character_is_still_text() -> None:
    content = "é".encode() * HEAD_BYTES
    assert sniff(content[: HEAD_BYTES - 1]) == TEXT
    assert sniff(content[:HEAD_BYTES]) == TEXT


@pytest.mark.parametrize(
    ("mime", "shown"),
    [
        ("image/png", True),
        ("video/mp4", True),
        (TEXT, True),
        (HTML, False),
        (SVG, False),
        (XML, False),
        (PDF, False),
        ("application/xhtml+xml", False),
        (BINARY, False),
        ("text/javascript", False),
    ],
)
def test_only_what_runs_nothing_is_shown_in_place(mime: str, shown: bool) -> None:
    assert is_shown(mime) is shown


def test_any_bytes_have_a_type() -> None:
    chance = random.Random(23)
    starts = (
        b"",
        b"RIFF",
        b"\x00\x00\x00\x18ftyp",
        b"PK\x03\x04",
        b"OggS",
        b"\x1a\x45\xdf\xa3",
        b"<",
        b"\xff\xfe",
        b"BM",
    )
    for _ in range(3000):
        content = chance.choice(starts) + chance.randbytes(chance.randrange(60))
        assert "/" in sniff(content, content, "x.bin")
