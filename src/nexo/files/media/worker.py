"""What the processes that look into one file have in common: they read descriptor 0 and answer on descriptor 1.

A worker is started by exec, with an empty environment, for one file. It imports what it needs, limits itself (`jail`),
and only then reads the file: a decoder that is taken over can compute, and write an answer that the server checks. The
answer is a line of JSON, followed by the previews.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import BinaryIO

Answer = tuple[dict[str, int | str], list[bytes]]

STANDARD_FILES = 3  # the descriptors of every process
_ERROR_CHARS = 200


def answer(look: Callable[[BinaryIO], Answer]) -> None:
    """Look into the file, write the answer or the error, and end the process."""
    with open(0, "rb", buffering=65_536, closefd=False) as stream, open(1, "wb", closefd=False) as out:
        blobs: list[bytes] = []
        fields: dict[str, int | str]
        try:
            fields, blobs = look(stream)
        except Exception as error:  # decoders raise anything
            fields = {"error": f"{type(error).__name__}: {error}"[:_ERROR_CHARS]}
        out.write(json.dumps(fields).encode() + b"\n")
        for blob in blobs:
            out.write(blob)
    os._exit(0)
