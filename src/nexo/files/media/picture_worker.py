"""The process that decodes one picture and ends."""

from __future__ import annotations

from typing import BinaryIO

from nexo.files.media import jail
from nexo.files.media.pictures import prepare, read_picture
from nexo.files.media.worker import STANDARD_FILES, Answer, answer


def main(memory_bytes: str, seconds: str, clock_s: str, image_format: str, pixels_max: str) -> None:
    prepare(image_format)
    jail.limit(int(memory_bytes), int(seconds), int(clock_s))
    jail.limit_files(STANDARD_FILES + (image_format == "TIFF"))  # whose decoder takes a copy of the descriptor
    jail.allow_only(jail.COMPUTING)

    def look(stream: BinaryIO) -> Answer:
        found = read_picture(stream, image_format, int(pixels_max))
        fields: dict[str, int | str] = {
            "width": found.width,
            "height": found.height,
            "placeholder": found.placeholder,
            "small_bytes": len(found.small),
            "medium_bytes": len(found.medium),
        }
        return fields, [found.small, found.medium]

    answer(look)
