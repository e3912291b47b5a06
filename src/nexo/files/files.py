"""The files of users, as the parts above see them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from nexo.files.collecting import Collecting
from nexo.files.ports import MediaReader, Storage
from nexo.files.serving import Serving
from nexo.files.uploads import Uploads
from nexo.metrics.families import Sample


class Files(Struct, frozen=True):
    storage: Storage
    reader: MediaReader
    uploads: Uploads
    serving: Serving
    collecting: Collecting

    async def close(self) -> None:
        await self.reader.close()
        await self.storage.close()

    def samples(self) -> Iterable[Sample]:
        yield from self.reader.samples()
        yield from self.uploads.samples()
        yield from self.serving.samples()
        yield from self.collecting.samples()
