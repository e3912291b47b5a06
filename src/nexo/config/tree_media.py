"""Settings of examining pictures and recordings. Part of `tree_files.py`."""

from __future__ import annotations

from typing import Annotated

from nexo.config.fields import Section, about


class MediaConfig(Section, frozen=True):
    """Of reading pictures and recordings, which happens in processes of its own."""

    workers: Annotated[int, about("Files that are examined at a time, each by a process of its own.", ge=1, le=64)] = 2
    queue_max: Annotated[
        int, about("Files that may wait to be examined; more are refused `server_busy`.", ge=1, le=10_000)
    ] = 200
    timeout_s: Annotated[
        int,
        about(
            "Processor time to examine one file; a picture that takes more is refused `bad_file`. One that does not "
            "get it within three times as long is refused `server_busy`.",
            ge=1,
            le=300,
        ),
    ] = 20
    memory_mib: Annotated[int, about("Address space of a process that examines a file, in MiB.", ge=256, le=65_536)] = (
        1280
    )
    pixels_max: Annotated[
        int, about("Pixels of a picture; one with more is refused `bad_file`.", ge=1, le=1_000_000_000)
    ] = 50_000_000
    ffmpeg: Annotated[
        bool, about("Use ffmpeg, where it is installed, for the length of recordings and stills of films.")
    ] = True
