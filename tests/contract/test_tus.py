"""Uploads in parts by tus 1.0.0, on every database, with files in a folder and in S3."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from harness.api import Api, open_api
from harness.migrated import migrated_database
from harness.seaweedfs import SeaweedFs, settings_of
from nexo.files import uploads
from nexo.files.arriving import PiecesBody
from nexo.files.spool import Spool
from nexo.store.engine import Script, do

VERSION = {"Tus-Resumable": "1.0.0"}
TYPE = {"Content-Type": "application/offset+octet-stream"}
HOUR_MS = 3_600_000
LEFT = 10_000 if os.environ.get("NEXO_LONG_TESTS") else 400


@pytest.fixture(scope="module")
def seaweed() -> Iterator[SeaweedFs]:
    with SeaweedFs() as server:
        yield server


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.servers)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """The settings of a storage; only one database has to be tried with each of them."""
    if request.param == "folder":
        return {"data__dir": str(tmp_path / "data")}
    bucket = request.getfixturevalue("seaweed").bucket()
    return {"data__dir": str(tmp_path / "data"), **settings_of(bucket)}


class Client:
    """A client that does single steps of the protocol."""

    def __init__(self, api: Api, user: str) -> None:
        self.api = api
        self.token = {"Authorization": f"Bearer {api.tokens[user]}"}

    async def call(self, method: str, path: str, content: Any = None, **headers: Any) -> httpx.Response:
        named = {name.replace("_", "-"): str(value) for name, value in headers.items()}
        return await self.api.http.request(method, path, content=content, headers={**self.token, **VERSION, **named})

    async def create(self, length: int, **headers: Any) -> httpx.Response:
        return await self.call("POST", "/files/tus", Upload_Length=length, **headers)

    async def begin(self, length: int, **headers: Any) -> str:
        answer = await self.create(length, **headers)
        assert answer.status_code == 201, answer.text
        assert answer.headers["tus-resumable"] == "1.0.0"
        return str(answer.headers["location"])

    async def patch(self, path: str, offset: int, data: Any, **headers: Any) -> httpx.Response:
        return await self.call("PATCH", path, data, Upload_Offset=offset, **TYPE_NAMES, **headers)

    async def offset(self, path: str) -> int:
        answer = await self.call("HEAD", path)
        assert answer.status_code == 200
        return int(answer.headers["upload-offset"])

    async def download(self, path: str) -> bytes:
        answer = await self.api.http.get(f"/files/{path.rpartition('/')[2]}", headers=self.token)
        assert answer.status_code == 200, answer.text
        return answer.content


TYPE_NAMES = {name.replace("-", "_"): value for name, value in TYPE.items()}


@asynccontextmanager
async def opened(url: str, storage: dict[str, object], **settings: object) -> AsyncIterator[tuple[Api, Client]]:
    async with open_api(url, ("ann", "ben"), **storage, **settings) as api:
        try:
            yield api, Client(api, "ann")
        finally:
            await api.files.storage.close()


async def cut(data: bytes) -> AsyncIterator[bytes]:
    """A body whose connection is lost before its end."""
    yield data
    raise ConnectionResetError


async def shift(api: Api, ms: int) -> None:
    def script() -> Script[None]:
        for column in ("expires_at", "touched_at"):
            yield do(f"UPDATE uploads SET {column}={column}-?", ms)

    await api.core.store.database.write(script)


async def test_an_upload_in_parts_becomes_a_file(core_url: str, tmp_path: Path) -> None:
    data = secrets.token_bytes(1_000_003)
    name = base64.b64encode("Bäume.bin".encode()).decode()
    async with opened(core_url, {"data__dir": str(tmp_path / "data")}) as (api, ann):
        path = await ann.begin(len(data), Upload_Metadata=f"filetype dGV4dA==,filename {name}")
        assert await ann.offset(path) == 0
        for start in range(0, len(data), 300_000):
            answer = await ann.patch(path, start, data[start : start + 300_000])
            assert answer.status_code == 204, answer.text
            assert int(answer.headers["upload-offset"]) == min(start + 300_000, len(data))
        assert await ann.offset(path) == len(data)
        assert await ann.download(path) == data
        file = await api.core.store.files.read(path.rpartition("/")[2])
        assert (file.name, file.size, file.sha256) == ("Bäume.bin", len(data), hashlib.sha256(data).hexdigest())
        assert [one.name async for one in api.files.storage.listed("uploads/")] == [], "no part is left"


@pytest.mark.parametrize("engine_name", ["sqlite"])
async def test_both_storages_take_uploads(core_url: str, storage: dict[str, object]) -> None:
    data = secrets.token_bytes(20 * 1024 * 1024 + 5)
    async with opened(core_url, storage) as (api, ann):
        path = await ann.begin(len(data))
        half = len(data) // 2
        with pytest.raises((httpx.HTTPError, ConnectionResetError)):
            await ann.patch(path, 0, cut(data[:half]))
        offset = await ann.offset(path)
        assert 0 < offset <= half, "what arrived counts"
        assert (await ann.patch(path, offset, data[offset:])).status_code == 204
        assert await ann.download(path) == data
        assert [one.name async for one in api.files.storage.listed("uploads/")] == []
        assert os.listdir(api.files.storage.scratch) == []


async def test_the_protocol_is_kept_to_the_letter(core_url: str, tmp_path: Path) -> None:
    async with opened(core_url, {"data__dir": str(tmp_path / "data")}, files__max_bytes=1000) as (api, ann):
        options = await api.http.options("/files/tus")
        assert options.headers["tus-version"] == "1.0.0"
        assert set(options.headers["tus-extension"].split(",")) == {
            "creation", "creation-with-upload", "expiration", "checksum", "termination",
        }  # fmt: skip
        assert options.headers["tus-max-size"] == "1000"
        assert (await ann.call("POST", "/files/tus", Upload_Length=5, Tus_Resumable="0.2.2")).status_code == 412
        assert (await ann.create(1001)).status_code == 413
        assert (await ann.create(0)).status_code == 422
        assert (await ann.call("POST", "/files/tus")).status_code == 400
        assert (await ann.call("POST", "/files/tus", Upload_Length=5, Upload_Metadata="filename ?")).status_code == 400
        path = await ann.begin(10)
        assert (await ann.call("PATCH", path, b"x", Upload_Offset=0, Content_Type="text/plain")).status_code == 415
        assert (await ann.patch(path, 3, b"x")).status_code == 409
        assert (await ann.patch(path, 0, b"x" * 11)).status_code == 400, "longer than announced"
        assert await ann.offset(path) == 0
        answer = await ann.patch(path, 0, b"01234")
        assert answer.headers["upload-expires"].endswith("GMT")
        assert (await Client(api, "ben").call("HEAD", path)).status_code == 404, "another user's"
        assert (await api.http.head(path, headers=VERSION)).status_code == 401
        assert (await api.http.get(f"/files/{path[-24:]}", headers=ann.token)).status_code == 404, "not complete"


async def test_an_upload_can_be_created_with_its_bytes_and_checked(core_url: str, tmp_path: Path) -> None:
    data = b"some bytes"
    good = "sha256 " + base64.b64encode(hashlib.sha256(data).digest()).decode()
    bad = "sha256 " + base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    async with opened(core_url, {"data__dir": str(tmp_path / "data")}) as (_, ann):
        answer = await ann.call("POST", "/files/tus", data, Upload_Length=len(data), **TYPE_NAMES)
        assert (answer.status_code, answer.headers["upload-offset"]) == (201, str(len(data)))
        assert await ann.download(answer.headers["location"]) == data
        path = await ann.begin(len(data))
        assert (await ann.patch(path, 0, data, Upload_Checksum=bad)).status_code == 460
        assert await ann.offset(path) == 0
        assert (await ann.patch(path, 0, data, Upload_Checksum="crc32 eA==")).status_code == 400
        assert (await ann.patch(path, 0, data, Upload_Checksum=good)).status_code == 204
        assert await ann.download(path) == data


async def test_uploads_end_by_request_by_time_and_for_newer_ones(core_url: str, tmp_path: Path) -> None:
    async with opened(core_url, {"data__dir": str(tmp_path / "data")}) as (api, ann):
        path = await ann.begin(10)
        await ann.patch(path, 0, b"01234")
        assert (await ann.call("DELETE", path)).status_code == 204
        assert (await ann.call("HEAD", path)).status_code == 404
        assert (await ann.call("DELETE", path)).status_code == 404

        path = await ann.begin(10)
        await ann.patch(path, 0, b"01234")
        await shift(api, 25 * HOUR_MS)
        assert (await ann.call("HEAD", path)).status_code == 410
        while await api.files.collecting.step():
            pass
        assert (await ann.call("HEAD", path)).status_code == 404

        paths = [await ann.begin(10) for _ in range(4)]
        assert (await ann.create(10)).status_code == 429
        assert (await Client(api, "ben").create(10)).status_code == 201
        await shift(api, uploads.IDLE_MS)
        await ann.begin(10)
        states = [(await ann.call("HEAD", path)).status_code for path in paths]
        assert sorted(states) == [200, 200, 200, 404], "one that rests gives way"
        assert [one.name async for one in api.files.storage.listed("uploads/")] == []


async def test_uploads_that_are_begun_and_left_are_bounded(core_url: str, tmp_path: Path) -> None:
    async with opened(core_url, {"data__dir": str(tmp_path / "data")}, limits__requests_per_s=0) as (api, ann):
        states = [(await ann.create(10_000_000)).status_code for _ in range(50)]
        assert (states.count(201), states.count(429)) == (4, 46)
        assert len(await api.core.store.files.open_uploads()) == 4


@pytest.mark.parametrize("engine_name", ["sqlite"])
async def test_thousands_of_uploads_that_are_left_cost_little_and_end(core_url: str, tmp_path: Path) -> None:
    """By many users, as each has few at a time; every tenth has brought a byte."""

    async def a_byte() -> AsyncIterator[bytes]:
        yield b"x"

    async with opened(core_url, {"data__dir": str(tmp_path / "data")}) as (api, _):
        process, uploading = psutil.Process(), api.files.uploads
        await uploading.begin("left", "a", 10)
        before = process.memory_info().rss
        for number in range(LEFT):
            upload = await uploading.begin(f"u{number // 4}", "a", 100_000_000)
            if number % 10 == 0:
                await uploading.append(upload.file_id, upload.owner_id, 0, PiecesBody(a_byte()))
        assert len(await api.core.store.files.open_uploads()) == LEFT + 1
        assert process.memory_info().rss - before < 48 * 1024 * 1024
        stored = [one.size async for one in api.files.storage.listed()]
        assert stored == [1] * len(range(0, LEFT, 10)), "room is taken by what has arrived only"
        assert len(uploading._digests) <= uploads.DIGESTS_MAX
        await shift(api, 25 * HOUR_MS)
        while await api.files.collecting.step():
            pass
        assert await api.core.store.files.open_uploads() == set()
        assert [one async for one in api.files.storage.listed()] == []


async def test_a_server_that_was_killed_before_the_last_step_finishes_it_when_asked(
    core_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(core_url, {"data__dir": str(tmp_path / "data")}) as (api, ann):
        path = await ann.begin(10)

        async def die(*_: Any) -> Any:
            raise RuntimeError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(api.files.uploads._receiving, "make_file", die)
            assert (await ann.patch(path, 0, b"0123456789")).status_code == 500
        assert await ann.offset(path) == 10
        assert await ann.download(path) == b"0123456789"


async def test_a_file_that_is_refused_ends_its_upload(core_url: str, tmp_path: Path) -> None:
    async with opened(core_url, {"data__dir": str(tmp_path / "data")}, files__types_allowed=["image/*"]) as (_, ann):
        path = await ann.begin(10)
        assert (await ann.patch(path, 0, b"plain text")).status_code == 415
        assert (await ann.call("HEAD", path)).status_code == 404


@pytest.mark.parametrize("engine_name", ["sqlite"])
async def test_a_full_disk_refuses_files_and_nothing_else(
    core_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Spool, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with opened(core_url, {"data__dir": str(tmp_path / "data")}) as (api, ann):
        path = await ann.begin(10)
        await ann.patch(path, 0, b"01234")
        with monkeypatch.context() as patch:
            patch.setattr(Spool, "_write_now", full)
            answer = await ann.patch(path, 5, b"56789")
            assert (answer.status_code, answer.json()["err_msg"]) == (507, "storage_full")
            assert (await api.request("ann", "POST", "/files", content=b"x")).error == "storage_full"
            sent = await api.post("ann", "/msg/send", client_msg_id="c", recv_id="ben", content="still here")
            assert sent.status == 200
        assert os.listdir(api.files.storage.scratch) == []
        assert (await ann.patch(path, 5, b"56789")).status_code == 204
        assert await ann.download(path) == b"0123456789"


async def test_another_instance_goes_on_with_an_upload(tmp_path: Path) -> None:
    data = secrets.token_bytes(100_000)
    storage: dict[str, object] = {"data__dir": str(tmp_path / "data")}
    with migrated_database("sqlite", tmp_path) as url:
        async with opened(url, storage) as (api, ann):
            path = await ann.begin(len(data))
            await ann.patch(path, 0, data[:40_000])
            tokens = api.tokens
        async with open_api(url, (), **storage) as second:
            second.tokens = tokens
            other = Client(second, "ann")
            assert await other.offset(path) == 40_000
            assert (await other.patch(path, 40_000, data[40_000:])).status_code == 204
            assert await other.download(path) == data
