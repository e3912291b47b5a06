"""Length, size and a still picture of recordings by ffmpeg, where it is installed.

The format is the one that the bytes have shown, so that no playlist can lead it to another file, and the only
protocol that it may use is `file`.
"""

from __future__ import annotations

import shutil
from typing import BinaryIO

import msgspec
from msgspec import Struct

from nexo.files.media.durations import Recording
from nexo.files.media.processes import Job, NoRoom, WorkerFailed

STILL_PX = 1280
_FILE = "file:/dev/fd/0"

# Type → name of the format in ffmpeg.
_FORMATS = {
    "audio/mpeg": "mp3",
    "audio/aac": "aac",
    "audio/amr": "amr",
    "audio/aiff": "aiff",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "mov",
    "video/ogg": "ogg",
    "video/mp4": "mov",
    "video/quicktime": "mov",
    "video/3gpp": "mov",
    "video/3gpp2": "mov",
    "video/webm": "matroska",
    "video/x-matroska": "matroska",
    "video/x-msvideo": "avi",
    "video/x-flv": "flv",
    "video/x-ms-asf": "asf",
    "video/mpeg": "mpeg",
    "video/mp2t": "mpegts",
}


class _SideData(Struct):
    rotation: float = 0


class _Stream(Struct):
    codec_type: str = ""
    width: int = 0
    height: int = 0
    side_data_list: list[_SideData] = []


class _Format(Struct, frozen=True):
    duration: str = ""


class _Probe(Struct):
    streams: list[_Stream] = []
    format: _Format = _Format()


class Ffmpeg:
    def __init__(self, ffmpeg: str, ffprobe: str) -> None:
        self._ffmpeg = ffmpeg
        self._ffprobe = ffprobe

    @classmethod
    def find(cls) -> Ffmpeg | None:
        """Returns the programs that are installed; None without them."""
        ffmpeg, ffprobe = shutil.which("ffmpeg"), shutil.which("ffprobe")
        return cls(ffmpeg, ffprobe) if ffmpeg and ffprobe else None

    def read(self, job: Job, file: BinaryIO, mime: str) -> Recording:
        """Returns what ffprobe finds; nothing of a file that it cannot read."""
        wanted = "format=duration:stream=codec_type,width,height:stream_side_data=rotation"
        arguments = (*self._input(mime, "-protocol_whitelist", "file"), "-show_entries", wanted, "-of", "json")
        try:
            answer = job.run("program_worker", file, self._ffprobe, "-v", "error", *arguments)
            return _recording(msgspec.json.decode(answer, type=_Probe))
        except (WorkerFailed, NoRoom, msgspec.DecodeError, ValueError):
            return Recording()

    def still(self, job: Job, file: BinaryIO, mime: str, duration_ms: int) -> bytes | None:
        """Returns a frame from the beginning, as PNG; None if there is none."""
        at = f"{min(1.0, duration_ms / 2000):.3f}"
        shrink = f"scale='min({STILL_PX},iw)':'min({STILL_PX},ih)':force_original_aspect_ratio=decrease"
        arguments = (
            *("-v", "error", "-nostdin", "-threads", "1", "-ss", at),
            *self._input(mime, "-protocol_whitelist", "file"),
            *("-map", "0:v:0", "-frames:v", "1", "-an", "-sn", "-dn", "-vf", shrink, "-threads", "1"),
            *("-c:v", "png", "-f", "image2pipe", "pipe:1"),
        )
        try:
            return job.run("program_worker", file, self._ffmpeg, *arguments) or None
        except (WorkerFailed, NoRoom):
            return None

    def knows(self, mime: str) -> bool:
        return mime in _FORMATS

    def _input(self, mime: str, *options: str) -> tuple[str, ...]:
        return (*options, "-f", _FORMATS[mime], "-i", _FILE)


def _recording(probe: _Probe) -> Recording:
    duration = round(float(probe.format.duration) * 1000) if probe.format.duration not in ("", "N/A") else None
    for stream in probe.streams:
        if stream.codec_type == "video" and stream.width > 0 and stream.height > 0:
            is_turned = any(abs(round(data.rotation)) % 180 == 90 for data in stream.side_data_list)
            size = (stream.height, stream.width) if is_turned else (stream.width, stream.height)
            return Recording(duration, *size)
    return Recording(duration)
