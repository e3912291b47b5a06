"""The file of a form, whatever pieces it arrives in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from nexo.api.multipart import FormReader, boundary_of, file_name_of
from nexo.errors import NexoError

FORM = (
    b'preamble\r\n--xyz\r\nContent-Disposition: form-data; name="other"\r\n\r\nvalue\r\n--xyz\r\n'
    b'Content-Disposition: form-data; name="file"; filename="a \\"b\\".png"\r\nContent-Type: image/png\r\n\r\n'
    b"\r\n--xy not the end\r\n--\r\n--xyz--\r\n"
)
CONTENT = b"\r\n--xy not the end\r\n--"


async def in_pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
async def test_a_file_is_found_however_the_form_is_cut(size: int) -> None:
    form = FormReader(in_pieces(FORM, size), b"xyz")
    assert await form.find("file") == 'a "b".png'
    assert b"".join([piece async for piece in form.pieces()]) == CONTENT


async def test_an_empty_file_has_no_bytes() -> None:
    form = FormReader(in_pieces(b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n\r\n--x--', 4), b"x")
    assert await form.find("file") == ""
    assert [piece async for piece in form.pieces()] == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"--x--",
        b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\nvalue\r\n--x--',
        b"--x\r\n" + b"a" * 10_000,
        b"--x",
    ],
)
async def test_a_form_without_the_field_is_refused(data: bytes) -> None:
    with pytest.raises(NexoError):
        await FormReader(in_pieces(data, 100), b"x").find("file")


async def test_a_form_that_ends_early_is_no_file() -> None:
    form = FormReader(in_pieces(FORM[:-12], 10), b"xyz")
    await form.find("file")
    with pytest.raises(NexoError):
        [piece async for piece in form.pieces()]


def test_boundaries_and_names_are_read_from_headers() -> None:
    assert boundary_of("application/json") is None
    assert boundary_of('multipart/form-data; charset=x; boundary="a b"') == b"a b"
    assert boundary_of("Multipart/Form-Data;boundary=abc") == b"abc"
    with pytest.raises(NexoError):
        boundary_of("multipart/form-data")
    assert file_name_of("attachment; filename=a.txt") == "a.txt"
    assert file_name_of("attachment; filename=x; filename*=UTF-8''r%C3%A4d.png") == "räd.png"
    assert file_name_of("attachment") == ""
