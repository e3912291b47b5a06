"""Settings of files. Part of `tree.py`."""

from __future__ import annotations

from typing import Annotated

from nexo.config.fields import Section, about
from nexo.config.tree_media import MediaConfig

MIB = 1024 * 1024


class S3Config(Section, frozen=True):
    endpoint: Annotated[
        str, about("Address of the S3 service, e.g. `https://s3.eu-central-1.amazonaws.com`; for `s3://`.")
    ] = ""
    region: Annotated[str, about("Its region; services that have none take any.")] = "us-east-1"
    key: Annotated[str, about("The access key's id.")] = ""
    secret: Annotated[str, about("The access key's secret.", secret="value")] = ""


class FilesConfig(Section, frozen=True):
    url: Annotated[
        str,
        about(
            "Where files are kept: `file:///absolute/folder` or `s3://bucket/prefix`. Several instances need a shared "
            "one. Empty: the folder `files` in `data.dir`."
        ),
    ] = ""
    s3: S3Config = S3Config()
    max_bytes: Annotated[int, about("Size of a file at most.", ge=1, le=5_000_000_000)] = 100 * MIB
    simple_max: Annotated[
        int, about("Size of a file that is uploaded in one request at most; larger ones take tus.", ge=1)
    ] = 8 * MIB
    quota_bytes: Annotated[int, about("Bytes of all files of one user; 0: any number.", ge=0)] = 0
    uploads_per_user: Annotated[
        int, about("Uploads that one user may have under way; more are `too_many_uploads`.", ge=1, le=1000)
    ] = 4
    upload_hours: Annotated[
        int, about("An upload in parts without progress for this long is deleted.", ge=1, le=720)
    ] = 24
    unused_hours: Annotated[
        int, about("A file that no message and no profile has named for this long is deleted.", ge=1, le=8760)
    ] = 24
    deleted_keep_hours: Annotated[
        int,
        about(
            "How long the bytes of deleted files stay in the storage. A backup of the files that begins after that "
            "of the database is complete if it ends within this time.",
            ge=0,
            le=8760,
        ),
    ] = 0
    types_allowed: Annotated[
        list[str], about("Types of files that are accepted, e.g. `image/*`; empty: all that are not refused.")
    ] = []
    types_refused: Annotated[
        list[str], about("Types that are refused. The type is decided by the bytes, not by the name.")
    ] = []
    foreign_urls: Annotated[
        bool, about("Media messages may carry an http(s) address of another server instead of a file.")
    ] = True
    media: MediaConfig = MediaConfig()
