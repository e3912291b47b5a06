"""Previews and placeholders of uploaded pictures, through a real HTTP server."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

from PIL import Image

from harness.api import Api, open_api, send

LARGE = (70_000, 70_000)


def picture(width: int = 1600, height: int = 800) -> bytes:
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    Image.new("RGB", (width, height), (200, 30, 30)).save(out, "JPEG", exif=exif)
    return out.getvalue()


def bomb() -> bytes:
    head = struct.pack(">IIBBBBB", *LARGE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b""))
    made = b"\x89PNG\r\n\x1a\n"
    for kind, content in chunks:
        made += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return made


async def upload(api: Api, user: str, content: bytes) -> Any:
    return await api.request(user, "POST", "/files?name=a.bin", content=content)


def scratch(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*.part*")]


async def test_a_picture_has_previews_that_its_receivers_may_open(core_url: str, tmp_path: Path) -> None:
    async with open_api(core_url, ("ann", "ben", "cy"), data__dir=str(tmp_path)) as api:
        file = (await upload(api, "ann", picture())).data
        assert (file["mime"], file["width"], file["height"]) == ("image/jpeg", 800, 1600)
        assert len(file["preview"]) <= 64
        sent = await send(api, "ann", "ben", {"file_id": file["file_id"]}, msg_type=2)
        page = await api.get("ben", "/msg/pull", conversation_id=sent["conversation_id"], begin_seq=1)
        url = page.data["messages"][0]["content"]["url"]
        for preview, size in (("small", (160, 320)), ("medium", (640, 1280))):
            path = f"/files/{file['file_id']}/{preview}"
            answer = await api.http.get(url.replace("?", f"/{preview}?"))
            assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
            with Image.open(io.BytesIO(answer.content)) as shown:
                assert (shown.size, dict(shown.getexif())) == (size, {})
            assert (await api.request("ben", "GET", path)).status == 200
            assert (await api.request("cy", "GET", path)).status == 404
        assert scratch(tmp_path) == []


async def test_a_bomb_is_refused_and_leaves_nothing(core_url: str, tmp_path: Path) -> None:
    async with open_api(core_url, ("ann",), data__dir=str(tmp_path)) as api:
        for content in (bomb(), picture()[:3000]):
            answer = await upload(api, "ann", content)
            assert (answer.status, answer.error) == (422, "bad_file")
        assert scratch(tmp_path) == []
        assert (await upload(api, "ann", b"<svg onload='alert(1)'/>")).data["mime"] == "image/svg+xml"
