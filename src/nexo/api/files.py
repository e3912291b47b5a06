"""`POST /files`, and the routes of files."""

from __future__ import annotations

from nexo.api import downloads, requests, shapes, tus
from nexo.api.multipart import FRAMING_MAX_BYTES, FormReader, boundary_of, file_name_of
from nexo.api.replies import Reply, data_reply
from nexo.api.route import Route, route_of_stream
from nexo.api.streams import StreamCall
from nexo.core.files import FileShape, file_shape
from nexo.errors import NexoError
from nexo.files.arriving import BodyCut
from nexo.files.uploads import too_large

FIELD = "file"


async def upload(call: StreamCall) -> Reply | None:
    """Takes a whole file: the field `file` of a form, or the body itself."""
    uploads = call.services.files.uploads
    owner_id = (await call.caller()).user_id
    boundary = boundary_of(call.header("content-type"))
    max_bytes = uploads.rules.simple_max
    if (call.length() or 0) > max_bytes + (FRAMING_MAX_BYTES if boundary else 0):
        raise too_large(max_bytes)
    try:
        if boundary is None:
            name = call.query().get("name") or file_name_of(_utf8(call.header("content-disposition")))
            file = await uploads.receive(owner_id, name, call.body())
        else:
            form = FormReader(call.body(), boundary)
            name = await form.find(FIELD)
            file = await uploads.receive(owner_id, name, form.pieces())
    except BodyCut:
        raise NexoError("bad_request", "The connection was closed before the body had arrived") from None
    return data_reply(file_shape(file))


def _utf8(header: str) -> str:
    return header.encode("latin-1").decode("utf-8", "replace")


_UPLOADING = (
    "file_too_large", "file_type_refused", "bad_file", "quota_exceeded", "too_many_uploads", "storage_full",
    "content_rejected", "bad_request",
)  # fmt: skip
_PART = (*_UPLOADING, "file_not_found", "upload_expired")
_FINDING = ("file_not_found", "unauthorized", "token_expired", "session_invalid", "user_disabled", "key_expired",
            "scope_missing", "missing_user", "bad_user", "identity_mismatch", "user_not_found", "bad_user_id",
            "user_deleted", "bad_request")  # fmt: skip
_BYTES = "owner, a user who may see a message with it, or the holder of a signed address; a profile's picture: anyone"

_TUS = {412: "Another version of tus.", 423: "Another request works on this upload."}
_MORE = {409: "Another offset; `Upload-Offset` has it.", 415: "Another type of body.", 460: "Another checksum."}
_SENT = {
    200: "The bytes.", 206: "A part of them (`Range`).", 304: "The client has them (`If-None-Match`).",
    416: "There is no such part.",
}  # fmt: skip

FILE_ROUTES: tuple[Route, ...] = (
    route_of_stream(
        "POST", "/files", upload, requests.Nothing, FileShape,
        "Upload a file in one request: the field `file` of a form, or the body itself with `?name=`", *_UPLOADING,
    ),
    route_of_stream(
        "OPTIONS", "/files/tus", tus.options, requests.Nothing, shapes.Empty,
        "What this server can do of tus 1.0.0", signed_in=False, answers={204: "In its headers."},
    ),
    route_of_stream(
        "POST", "/files/tus", tus.create, requests.Nothing, shapes.Empty,
        "Begin an upload in parts (tus); `Location` names it, and its last part is the file_id", *_PART,
        answers={201: "Begun.", **_TUS, **_MORE},
    ),
    route_of_stream(
        "HEAD", "/files/tus/{id}", tus.state, requests.Nothing, shapes.Empty,
        "How much of an upload has arrived (tus)", *_PART, answers={200: "In its headers.", **_TUS},
    ),
    route_of_stream(
        "PATCH", "/files/tus/{id}", tus.append, requests.Nothing, shapes.Empty,
        "Go on with an upload (tus)", *_PART, answers={204: "Stored.", **_TUS, **_MORE},
    ),
    route_of_stream(
        "DELETE", "/files/tus/{id}", tus.end, requests.Nothing, shapes.Empty,
        "End an upload (tus)", "file_not_found", "bad_request", answers={204: "Ended.", **_TUS},
    ),
    route_of_stream(
        "GET", "/files/{id}", downloads.download, requests.Nothing, shapes.Empty,
        f"The bytes of a file, for its {_BYTES}", *_FINDING, signed_in=False, own_scope=downloads.SCOPE,
        answers=_SENT,
    ),
    route_of_stream(
        "GET", "/files/{id}/small", downloads.download_small, requests.Nothing, shapes.Empty,
        "A preview of at most 320 pixels, as WebP", *_FINDING, signed_in=False, own_scope=downloads.SCOPE,
        answers=_SENT,
    ),
    route_of_stream(
        "GET", "/files/{id}/medium", downloads.download_medium, requests.Nothing, shapes.Empty,
        "A preview of at most 1280 pixels, as WebP", *_FINDING, signed_in=False, own_scope=downloads.SCOPE,
        answers=_SENT,
    ),
    route_of_stream(
        "DELETE", "/files/{id}", downloads.delete, requests.Nothing, shapes.Empty,
        "Delete a file of yours that nothing names; with the scope `files`: any file", "file_not_found",
        "no_permission", own_scope=downloads.SCOPE,
    ),
)  # fmt: skip
