"""Uploads of OpenIM's clients onto the files of Nexo: always one part, whose address takes the bytes.

The address that an upload yields names the file; in a message it becomes the file itself, and each copy of the message
has an address that works for its receivers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from nexo.api.asgi import Receive, Scope, Send
from nexo.api.middleware import CONTEXT, Context
from nexo.api.replies import Reply, send_reply
from nexo.core.files import ADDRESS, is_file_id
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.files.arriving import BodyCut, PiecesBody
from nexo.files.uploads import UploadBusy, WrongOffset
from nexo.openim.request import Call, Facade, Handler

UPLOADS = "/object/upload/"


def _part_size(call: Call) -> int:
    return call.facade.files.uploads.rules.max_bytes


async def part_limit(call: Call) -> Any:
    size = _part_size(call)
    return {"minPartSize": size, "maxPartSize": size, "maxNumSize": 1}


async def part_size(call: Call) -> Any:
    return {"size": _part_size(call)}


async def initiate(call: Call) -> Any:
    name = call.text("name").rpartition("/")[2] or "file"
    upload = await call.facade.files.uploads.begin(call.user_id, name, call.number("size"))
    return {
        "url": "",
        "upload": {
            "uploadID": upload.file_id,
            "partSize": _part_size(call),
            "expireTime": upload.expires_at,
            "sign": _sign(call, upload.file_id),
        },
    }


def _sign(call: Call, file_id: str) -> dict[str, Any]:
    url = f"{call.base_url}/openim{UPLOADS}{file_id}"
    part = {"partNumber": 1, "url": url, "query": [], "header": []}
    return {"url": url, "query": [], "header": [{"key": "Token", "values": [call.token]}], "parts": [part]}


async def auth_sign(call: Call) -> Any:
    return _sign(call, _upload_id(call))


def _upload_id(call: Call) -> str:
    file_id = call.text("uploadID")
    if not is_file_id(file_id):
        raise NexoError("file_not_found", "There is no such upload")
    return file_id


async def complete(call: Call) -> Any:
    file_id = _upload_id(call)
    received, length, expires_at = await call.facade.files.uploads.state(file_id, call.user_id)
    if received < length or expires_at:
        raise NexoError("bad_request", f"{length - received} bytes of the file are missing")
    return {"url": f"{call.base_url}{ADDRESS}{file_id}"}


async def access_url(call: Call) -> Any:
    raise NexoError("file_not_found", "A file has an address in the messages that carry it")


async def receive_part(facade: Facade, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
    """Take the bytes of an upload, as they arrive."""
    context: Context = scope[CONTEXT]
    context.route = f"{scope['method']} /openim{UPLOADS}{{id}}"
    context.user_id = session.user_id
    file_id = scope["path"].rpartition("/")[2]
    if scope["method"] != "PUT" or not is_file_id(file_id):
        raise NexoError("not_found")
    try:
        await facade.files.uploads.append(file_id, session.user_id, 0, PiecesBody(_pieces(receive)))
    except (WrongOffset, UploadBusy):
        raise NexoError("bad_request", "This upload has begun already; begin another one") from None
    except BodyCut:
        return
    body = msgspec.json.encode({"errCode": 0, "errMsg": "", "errDlt": ""})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"etag", b'"1"')]
    await send_reply(send, Reply(200, headers, body))


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyCut
        if data := message.get("body"):
            yield data
        if not message.get("more_body"):
            return


ROUTES: dict[str, Handler] = {
    "/object/part_limit": part_limit,
    "/object/part_size": part_size,
    "/object/initiate_multipart_upload": initiate,
    "/object/auth_sign": auth_sign,
    "/object/complete_multipart_upload": complete,
    "/object/access_url": access_url,
}
