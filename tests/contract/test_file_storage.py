"""One contract for every storage of files: a folder, and a service that speaks S3."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness.seaweedfs import SeaweedFs
from nexo.files.folder import FolderStorage
from nexo.files.ports import PIECE_BYTES, BlobMissing, Storage, StorageError
from nexo.files.s3 import S3Settings, S3Storage


@pytest.fixture(scope="module")
def seaweed() -> Iterator[SeaweedFs]:
    with SeaweedFs() as server:
        yield server


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.servers)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | S3Settings:
    if request.param == "folder":
        return tmp_path / "files"
    settings: S3Settings = request.getfixturevalue("seaweed").bucket()
    return settings


@asynccontextmanager
async def opened(place: Path | S3Settings, tmp_path: Path) -> AsyncIterator[Storage]:
    storage: Storage = FolderStorage(place) if isinstance(place, Path) else S3Storage(place, tmp_path / "scratch")
    storage.scratch.mkdir(parents=True, exist_ok=True)
    await storage.check()
    try:
        yield storage
    finally:
        await storage.close()


def new_source(storage: Storage, data: bytes) -> Path:
    path = storage.scratch / secrets.token_hex(4)
    path.write_bytes(data)
    return path


async def read(storage: Storage, name: str, start: int = 0, end: int | None = None) -> bytes:
    pieces = [piece async for piece in storage.pieces(name, start, end)]
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    return b"".join(pieces)


async def test_a_blob_is_read_back_whole_and_in_parts(place: Path | S3Settings, tmp_path: Path) -> None:
    data = secrets.token_bytes(3 * PIECE_BYTES + 17)
    async with opened(place, tmp_path) as storage:
        source = new_source(storage, data)
        await storage.put("abcd-1", source)
        assert not source.exists()
        assert await storage.size_of("abcd-1") == len(data)
        assert await read(storage, "abcd-1") == data
        for start, end in ((0, 1), (5, 5), (PIECE_BYTES - 1, PIECE_BYTES + 1), (100, len(data)), (len(data) - 1, None)):
            assert await read(storage, "abcd-1", start, end) == data[start:end]
        with pytest.raises(StorageError):
            await read(storage, "abcd-1", 0, len(data) + 1)


async def test_a_name_that_is_put_again_keeps_its_bytes(place: Path | S3Settings, tmp_path: Path) -> None:
    async with opened(place, tmp_path) as storage:
        for _ in range(2):
            await storage.put("same", new_source(storage, b"bytes"))
        assert await read(storage, "same") == b"bytes"
        await asyncio.gather(*(storage.put("at once", new_source(storage, b"bytes")) for _ in range(5)))
        assert await read(storage, "at once") == b"bytes"


async def test_what_is_not_there_is_missing_and_counts_as_deleted(place: Path | S3Settings, tmp_path: Path) -> None:
    async with opened(place, tmp_path) as storage:
        assert await storage.size_of("nothing") is None
        with pytest.raises(BlobMissing):
            await read(storage, "nothing")
        await storage.delete("nothing")
        await storage.delete("uploads/nothing/")
        await storage.put("gone", new_source(storage, b"x"))
        await storage.delete("gone")
        assert await storage.size_of("gone") is None


async def test_blobs_are_listed_and_deleted_by_folder(place: Path | S3Settings, tmp_path: Path) -> None:
    names = ["aa11-1", "aa11-1.small", "uploads/f_1/0000-a", "uploads/f_1/0005-b", "uploads/f_12/0000-c"]
    async with opened(place, tmp_path) as storage:
        for name in names:
            await storage.put(name, new_source(storage, name.encode()))
        found = {one.name: one.size async for one in storage.listed()}
        assert found == {name: len(name) for name in names}
        assert {one.name async for one in storage.listed("uploads/")} == set(names[2:])
        assert all([-5 < one.age_s < 100 async for one in storage.listed()])
        await storage.delete("uploads/f_1/")
        assert {one.name async for one in storage.listed()} == {"aa11-1", "aa11-1.small", "uploads/f_12/0000-c"}
        await storage.put("uploads/f_1/0000-d", new_source(storage, b"again"))


async def test_a_source_that_is_gone_leaves_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "files", tmp_path) as storage:
        with pytest.raises(StorageError):
            await storage.put("x", tmp_path / "is not there")
        assert await storage.size_of("x") is None
        assert os.listdir(storage.scratch) == []


async def test_a_service_that_is_away_is_a_failure_and_no_missing_blob(tmp_path: Path) -> None:
    settings = S3Settings("bucket", "", "http://127.0.0.1:9", "us-east-1", "key", "secret")
    async with S3Storage(settings, tmp_path)._http():
        storage = S3Storage(settings, tmp_path)
        with pytest.raises(StorageError) as failure:
            await storage.size_of("x")
        assert not isinstance(failure.value, BlobMissing)
        await storage.close()
