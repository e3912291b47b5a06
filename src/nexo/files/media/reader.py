"""Examines files: the type by the first bytes, the rest by worker processes, a few at a time.

The event loop only waits. What waits for a worker is bounded; a worker that crashes, or takes more pixels, memory or
time than allowed, is an error of its file alone.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, BinaryIO

import structlog
from msgspec import Meta, MsgspecError, Struct, json, structs

from nexo.config import Config
from nexo.core.files import MEDIUM, SMALL
from nexo.errors import NexoError
from nexo.files.media.durations import Recording
from nexo.files.media.ffmpeg import Ffmpeg
from nexo.files.media.processes import Job, NoRoom, WorkerFailed
from nexo.files.media.sniff import HEAD_BYTES, TAIL_BYTES, sniff
from nexo.files.ports import PLACEHOLDER_MAX_BYTES, Examined, Previews, preview_beside
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import LONG_SECONDS, Buckets, Tally

log = structlog.get_logger()

# Type → name of the format in the library. Pictures of other types are kept as they are, without previews.
_FORMATS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/tiff": "TIFF",
    "image/bmp": "BMP",
    "image/avif": "AVIF",
}
CLOCK_FACTOR = 3  # on a busy machine a process of low priority gets little processor time

Side = Annotated[int, Meta(ge=1, le=2**20)]


class PictureRefused(WorkerFailed):
    """A decoder found that the file is no picture of its type, damaged or too large."""

    result = "refused"

    @property
    def sentence(self) -> str:
        return "The picture has too many pixels" if str(self).startswith("TooManyPixels") else "The picture is damaged"


class _PictureAnswer(Struct, forbid_unknown_fields=True):
    """What a picture worker writes, checked as if a user had written it."""

    width: Side = 1
    height: Side = 1
    placeholder: Annotated[str, Meta(pattern="^[!-~]*$", max_length=PLACEHOLDER_MAX_BYTES)] = ""
    small_bytes: Annotated[int, Meta(ge=0)] = 0
    medium_bytes: Annotated[int, Meta(ge=0)] = 0
    error: str = ""


class _RecordingAnswer(Struct, forbid_unknown_fields=True):
    duration_ms: Annotated[int, Meta(ge=0)] | None = None
    width: Side | None = None
    height: Side | None = None
    error: str = ""


class Reader:
    """The `MediaReader` of the server."""

    def __init__(self, config: Config) -> None:
        self._limits = config.files.media
        self._ffmpeg = Ffmpeg.find() if self._limits.ffmpeg else None
        self._sniffing = ThreadPoolExecutor(1, thread_name_prefix="sniff")
        self._decoding = ThreadPoolExecutor(self._limits.workers, thread_name_prefix="media")
        self._jobs: set[Job] = set()
        self._results = Tally()
        self._seconds = Buckets(LONG_SECONDS)

    async def close(self) -> None:
        """End every worker."""
        for job in tuple(self._jobs):
            job.cancel()
        self._sniffing.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._decoding.shutdown, cancel_futures=True)

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(len(self._jobs), "media")
        yield f.QUEUE_LIMIT(self._most, "media")
        yield from f.MEDIA_EXAMINED.each(self._results)
        yield f.MEDIA_SECONDS(self._seconds)

    @property
    def _most(self) -> int:
        return self._limits.queue_max + self._limits.workers

    async def examine(self, path: Path, name: str) -> Examined:
        loop = asyncio.get_running_loop()
        mime = await loop.run_in_executor(self._sniffing, _type_of, path, name)
        if mime in _FORMATS:
            return await self._work(lambda job: self._picture(job, path, mime))
        if mime.startswith(("audio/", "video/")):
            return await self._work(lambda job: self._recording(job, path, mime))
        return Examined(mime)

    async def _work(self, look: Callable[[Job], Examined]) -> Examined:
        """Returns what `look` returns, from a thread. A caller that is cancelled ends the worker."""
        if len(self._jobs) >= self._most:
            self._results.add("busy")
            raise NexoError("server_busy", "Too many files are being examined")
        started = time.monotonic()
        seconds = self._limits.timeout_s
        job = Job(seconds, seconds * CLOCK_FACTOR, self._limits.memory_mib * 1024 * 1024)
        self._jobs.add(job)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._decoding, look, job)
        except WorkerFailed as error:
            result = error.result
            self._results.add(result)
            log.info("file_refused", result=result, reason=str(error))
            raise NexoError("bad_file", error.sentence) from error
        except NoRoom as error:
            self._results.add("busy")
            log.warning("file_not_examined", error=str(error))
            raise NexoError("server_busy", "The machine is too busy to examine the file") from error
        finally:
            job.cancel()
            self._jobs.discard(job)
            self._seconds.observe(time.monotonic() - started)
        self._results.add("read")
        return found

    def _picture(self, job: Job, path: Path, mime: str) -> Examined:
        with path.open("rb") as file:
            answer, small, medium = self._decode(job, file, mime)
        job.check()
        previews = _write_previews(path, small, medium)
        return Examined(mime, answer.width, answer.height, None, answer.placeholder, previews)

    def _recording(self, job: Job, path: Path, mime: str) -> Examined:
        """A recording that cannot be read is kept as it is: other players may read it."""
        with path.open("rb") as file:
            found = self._headers(job, file, mime)
            if self._ffmpeg is None or not self._ffmpeg.knows(mime):
                return Examined(mime, found.width, found.height, found.duration_ms)
            found = _joined(self._ffmpeg.read(job, file, mime), found)
            still = None
            if mime.startswith("video/"):
                still = self._ffmpeg.still(job, file, mime, found.duration_ms or 0)
        examined = Examined(mime, found.width, found.height, found.duration_ms)
        if still is None:
            return examined
        with _in_memory(still) as file:
            try:
                answer, small, medium = self._decode(job, file, "image/png")
            except (WorkerFailed, NoRoom):
                return examined
        return structs.replace(examined, placeholder=answer.placeholder, previews=_write_previews(path, small, medium))

    def _headers(self, job: Job, file: BinaryIO, mime: str) -> Recording:
        try:
            answer = json.decode(job.run("recording_worker", file, mime), type=_RecordingAnswer)
        except (WorkerFailed, MsgspecError):
            return Recording()
        return Recording(answer.duration_ms, answer.width, answer.height)

    def _decode(self, job: Job, file: BinaryIO, mime: str) -> tuple[_PictureAnswer, bytes, bytes]:
        """Returns the answer of a worker, and the previews that it made."""
        written = job.run("picture_worker", file, _FORMATS[mime], str(self._limits.pixels_max))
        line, _, blobs = written.partition(b"\n")
        try:
            answer = json.decode(line, type=_PictureAnswer)
        except MsgspecError as error:
            raise WorkerFailed("not an answer") from error
        if answer.error:
            raise PictureRefused(answer.error)
        small, medium = blobs[: answer.small_bytes], blobs[answer.small_bytes :]
        if not (_is_webp(small) and _is_webp(medium) and len(medium) == answer.medium_bytes):
            raise WorkerFailed("not the previews that were announced")
        return answer, small, medium


def _type_of(path: Path, name: str) -> str:
    """Returns the type of a file. Raises `bad_file` for an empty one."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if not head:
            raise NexoError("bad_file", "The file is empty")
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        return sniff(head, file.read(TAIL_BYTES), name)


def _joined(first: Recording, second: Recording) -> Recording:
    """Returns what either states; the first one wins."""
    size = first if first.width else second
    duration_ms = first.duration_ms if first.duration_ms is not None else second.duration_ms
    return Recording(duration_ms, size.width, size.height)


def _in_memory(content: bytes) -> BinaryIO:
    """Returns a file with this content that no folder holds."""
    file = os.fdopen(os.memfd_create("still"), "w+b")
    file.write(content)
    file.seek(0)
    return file


def _write_previews(path: Path, small: bytes, medium: bytes) -> Previews:
    paths = preview_beside(path, SMALL), preview_beside(path, MEDIUM)
    for target, content in zip(paths, (small, medium), strict=True):
        target.write_bytes(content)
    return Previews(*paths)


def _is_webp(content: bytes) -> bool:
    return content.startswith(b"RIFF") and content[8:12] == b"WEBP"
