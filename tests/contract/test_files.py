"""Files through a real HTTP server, on every database: upload, download, messages that name them, who may read them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.api import Answer, Api, make_group, make_key, open_api, send
from nexo.core.file_links import LINKS
from nexo.store.check import check
from nexo.store.engine import Script, do
from nexo.store.engine import rows as query

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HTML = b"<!doctype html><script>alert(1)</script>"
TUS = {"Tus-Resumable": "1.0.0"}
PART = {**TUS, "Content-Type": "application/offset+octet-stream"}
USERS = ("ann", "ben", "cy", "dan")


@asynccontextmanager
async def files_api(url: str, tmp_path: Path, **settings: object) -> AsyncIterator[Api]:
    async with open_api(url, USERS, data__dir=str(tmp_path / "data"), **settings) as api:
        yield api


async def upload(api: Api, user: str | None, data: bytes = PNG, name: str = "a.png") -> Any:
    return (await api.request(user, "POST", f"/files?name={name}", content=data)).data


async def share(api: Api, sender: str, target: str, file_id: str, msg_type: int = 2, **content: Any) -> Any:
    return await send(api, sender, target, {"file_id": file_id, **content}, msg_type=msg_type)


async def fetch(api: Api, user: str | None, path: str, **headers: str) -> Answer:
    return await api.request(user, "GET", path, headers=headers)


async def status(api: Api, user: str | None, path: str) -> int:
    return (await fetch(api, user, path)).status


async def the_message(api: Api, user: str, sent: Any) -> Any:
    page = await api.get(user, "/msg/pull", conversation_id=sent["conversation_id"], begin_seq=sent["seq"], limit=1)
    return page.data["messages"][0]


async def collect(api: Api) -> None:
    while await api.files.collecting.step():
        pass


async def later(api: Api, ms: int) -> None:
    """Moves everything about files into the past."""

    def script() -> Script[None]:
        for table, columns in (
            ("files", ("free_at", "created_at")),
            ("blobs", ("free_at",)),
            ("uploads", ("expires_at", "touched_at")),
            ("file_uses", ("ended_at",)),
            ("blob_leftovers", ("due_at",)),
        ):
            for column in columns:
                yield do(f"UPDATE {table} SET {column}={column}-? WHERE {column}>0", ms)

    await api.core.store.database.write(script)


async def count(api: Api, table: str) -> int:
    def script() -> Script[int]:
        return int((yield query(f"SELECT COUNT(*) FROM {table}"))[0][0])

    return await api.core.store.database.read(script)


def blobs(tmp_path: Path) -> list[str]:
    folder = tmp_path / "data" / "files" / "blobs"
    return sorted(path.name for path in folder.rglob("*") if path.is_file()) if folder.exists() else []


async def test_a_file_is_uploaded_described_and_downloaded(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file = await upload(api, "ann", name="../b/r%C3%A4d.png")
        assert file == {
            "file_id": file["file_id"],
            "name": "räd.png",
            "mime": "image/png",
            "size": len(PNG),
            "sha256": hashlib.sha256(PNG).hexdigest(),
            **{key: value for key, value in file.items() if key in ("width", "height", "preview")},
        }
        answer = await api.http.get(
            f"/files/{file['file_id']}", headers={"Authorization": f"Bearer {api.tokens['ann']}"}
        )
        assert answer.content == PNG
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-disposition"].startswith("inline;")


async def test_a_form_and_a_raw_body_are_the_same_upload(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        token = {"Authorization": f"Bearer {api.tokens['ann']}"}
        form = await api.http.post("/files", files={"other": b"x", "file": ("b.png", PNG, "text/html")}, headers=token)
        raw = await api.http.post(
            "/files", content=PNG, headers={**token, "Content-Disposition": 'attachment; filename="b.png"'}
        )
        one, two = form.json()["data"], raw.json()["data"]
        assert one.pop("file_id") != two.pop("file_id")
        assert one == two
        assert len([name for name in blobs(tmp_path) if "." not in name]) == 1, "equal bytes are stored once"
        for data in (b"", b"--x\r\n", b'--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nabc'):
            headers = {**token, "Content-Type": "multipart/form-data; boundary=x"}
            assert (await api.http.post("/files", content=data, headers=headers)).status_code == 400


async def test_what_cannot_be_a_file_is_refused(core_url: str, tmp_path: Path) -> None:
    async with files_api(
        core_url, tmp_path, files__simple_max=1000, files__types_refused=["text/html"], files__quota_bytes=2500
    ) as api:
        assert (await api.request(None, "POST", "/files", content=PNG)).error == "unauthorized"
        assert (await api.request("ann", "POST", "/files", content=b"")).error == "bad_file"
        assert (await api.request("ann", "POST", "/files", content=b"x" * 1001)).error == "file_too_large"

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(11):
                yield b"y" * 100

        assert (await api.request("ann", "POST", "/files", content=chunks())).error == "file_too_large"
        assert (await api.request("ann", "POST", "/files?name=a.png", content=HTML)).error == "file_type_refused"
        for number in range(2):
            await upload(api, "ann", bytes([number]) * 1000)
        assert (await api.request("ann", "POST", "/files", content=b"z" * 501)).error == "quota_exceeded"
        assert blobs(tmp_path) == sorted(blobs(tmp_path))
        assert await count(api, "files") == 2


async def test_ranges_and_conditions_are_answered(core_url: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4000
    async with files_api(core_url, tmp_path) as api:
        path = f"/files/{(await upload(api, 'ann', data))['file_id']}"
        token = {"Authorization": f"Bearer {api.tokens['ann']}"}

        async def get(**headers: str) -> Any:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await api.http.get(path, headers={**token, **named})

        whole = await get()
        assert (whole.status_code, whole.content) == (200, data)
        for text, start, end in (
            ("bytes=0-0", 0, 1),
            ("bytes=5-", 5, len(data)),
            ("bytes=-7", len(data) - 7, len(data)),
            ("bytes=300000-700000", 300000, 700001),
            ("bytes=1000-99999999", 1000, len(data)),
        ):
            part = await get(Range=text)
            assert part.status_code == 206
            assert part.content == data[start:end]
            assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{len(data)}"
        for text in (f"bytes={len(data)}-", "bytes=-0"):
            assert (await get(Range=text)).status_code == 416
        for text in ("bytes=5-2", "bytes=0-1,5-6", "lines=1-2"):
            assert (await get(Range=text)).status_code == 200
        etag = whole.headers["etag"]
        assert (await get(If_None_Match=f'"other", {etag}')).status_code == 304
        assert (await get(If_None_Match='"other"')).status_code == 200
        assert (await get(Range="bytes=0-9", If_Range=etag)).status_code == 206
        assert (await get(Range="bytes=0-9", If_Range='"other"')).status_code == 200
        head = await api.http.head(path, headers=token)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(data)))


@pytest.mark.parametrize("engine_name", ["sqlite"])
async def test_what_a_browser_would_execute_is_saved_and_not_shown(core_url: str, tmp_path: Path) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    async with files_api(core_url, tmp_path) as api:
        for data, shown in ((HTML, False), (svg, False), (b"<?xml version='1.0'?><a/>", False), (b"%PDF-1.4\n", True)):
            file = await upload(api, "ann", data, "a.png")
            answer = await fetch(api, "ann", f"/files/{file['file_id']}")
            assert answer.headers["content-disposition"].startswith("inline" if shown else "attachment")
            assert answer.headers["content-security-policy"].startswith("sandbox")
            assert not answer.headers["content-type"].startswith("image/png")


async def test_a_message_names_a_file_and_gets_its_description_and_address(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file = await upload(api, "ann")
        sent = await share(api, "ann", "ben", file["file_id"], text="look", name="other", url="/files/x")
        message = await the_message(api, "ben", sent)
        content = message["content"]
        assert {key: content[key] for key in ("file_id", "name", "mime", "size", "text")} == {
            **{key: file[key] for key in ("file_id", "name", "mime", "size")},
            "text": "look",
        }
        assert content["url"].startswith(f"/files/{file['file_id']}?")
        assert sent["content"] == content, "the sender's copy is the same"
        answer = await api.http.get(content["url"])
        assert answer.content == PNG
        camel = await api.get("ben", "/single-chat/message/cursor", peerUserId="ann")
        assert camel.data["messages"][0]["body"] == content
        entry = (await api.get("ben", "/conversation/list")).data["conversations"][0]
        assert entry["last_message"]["content"] == content


async def test_a_retry_is_the_same_message_and_names_one_file(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file = await upload(api, "ann")
        fields = {"client_msg_id": "c1", "recv_id": "ben", "msg_type": 2, "content": {"file_id": file["file_id"]}}
        first = (await api.post("ann", "/msg/send", **fields)).data
        assert (await api.post("ann", "/msg/send", **fields)).data == first
        fields["content"] = {"file_id": file["file_id"], "text": "other"}
        assert (await api.post("ann", "/msg/send", **fields)).error == "client_msg_id_reused"
        assert await count(api, "file_uses") == 1


async def test_a_file_that_the_sender_may_not_see_is_not_found(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file = await upload(api, "ann")
        content = {"file_id": file["file_id"]}

        async def refusal(sender: str, content: Any, number: int = 2) -> str:
            answer = await api.post(
                sender, "/msg/send", client_msg_id="x", recv_id="cy", msg_type=number, content=content
            )
            return answer.error

        assert await refusal("ben", content) == "file_not_found"
        assert await refusal("ben", {"file_id": "f_" + "A" * 22}) == "file_not_found"
        assert await refusal("ben", {"file_id": "nonsense"}) == "file_not_found"
        assert await refusal("ben", {"file_id": 7}) == "bad_file_id"
        assert await refusal("ann", {"url": f"/files/{file['file_id']}"}) == "bad_url"
        assert await refusal("ann", {"url": f"https://chat.example/files/{file['file_id']}?x"}) == "bad_url"
        assert await refusal("ann", {"url": "javascript:alert(1)"}) == "bad_content"
        assert await refusal("ann", {"text": "no file"}) == "missing_content"
        await share(api, "ann", "ben", file["file_id"])
        await share(api, "ben", "cy", file["file_id"])
        assert await count(api, "blobs") == 1, "forwarding copies no bytes"
        assert await status(api, "cy", f"/files/{file['file_id']}") == 200


async def test_addresses_of_other_servers_can_be_refused(core_url: str, tmp_path: Path) -> None:
    fields = {"client_msg_id": "c", "recv_id": "ben", "msg_type": 2, "content": {"url": "https://a.example/x.png"}}
    async with files_api(core_url, tmp_path, files__foreign_urls=False) as api:
        assert (await api.post("ann", "/msg/send", **fields)).error == "bad_url"
        api.core.sending._foreign_urls = True
        assert (await api.post("ann", "/msg/send", **fields)).status == 200


async def test_each_reader_gets_what_the_visibility_of_messages_allows(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path, group__min_create_members=1) as api:
        group = (await make_group(api, "ann", "ben", "cy"))["group_id"]
        early, late = await upload(api, "ann", b"early"), await upload(api, "ann", b"late")
        first = await share(api, "ann", group, early["file_id"], 5)
        path, late_path = f"/files/{early['file_id']}", f"/files/{late['file_id']}"
        assert await status(api, "ben", path) == 200
        assert await status(api, "dan", path) == 404, "an outsider"
        assert await status(api, None, path) == 404, "without a token"
        assert await status(api, "ben", f"/files/f_{'A' * 22}") == 404, "a guessed id"
        assert await status(api, "ben", "/files/x") == 404
        assert await status(api, "ben", late_path) == 404, "no message names it yet"

        await api.post("ann", "/group/remove_member", group_id=group, user_id="cy")
        await share(api, "ann", group, late["file_id"], 5)
        assert await status(api, "cy", path) == 200, "what was visible while a member stays readable"
        assert await status(api, "cy", late_path) == 404, "a former member"
        await api.post("ann", "/group/invite", group_id=group, user_ids=["dan"])
        assert await status(api, "dan", path) == 404, "a late joiner"
        await share(api, "ben", "dan", early["file_id"], 5)
        assert await status(api, "dan", path) == 200, "a forwarded message"

        await api.post("dan", "/user/block", user_id="ben")
        assert await status(api, "ben", path) == 200, "blocking hides nothing that was there"

        url = (await the_message(api, "ben", first))["content"]["url"]
        assert (await api.http.get(url)).status_code == 200
        await api.post("ann", "/msg/recall", server_msg_id=first["server_msg_id"])
        assert (await api.http.get(url)).status_code == 404, "its message is recalled"
        assert await status(api, "ben", path) == 200, "ben has it by his own message still"
        assert await status(api, "cy", path) == 404, "a recalled message"


async def test_a_signed_address_is_for_one_file_message_and_hour(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file, other = await upload(api, "ann"), await upload(api, "ann", b"other")
        sent = await share(api, "ann", "ben", file["file_id"])
        url: str = sent["content"]["url"]
        assert url == (await the_message(api, "ben", sent))["content"]["url"], "equal for all readers"

        async def get(address: str) -> int:
            return (await api.http.get(address)).status_code

        assert await get(url) == 200
        assert await get(url.replace(file["file_id"], other["file_id"])) == 404
        assert await get(url.replace("msg=", "msg=1")) == 404
        assert await get(url.replace("exp=", "exp=1")) == 404
        assert await get(url[:-1] + ("a" if url[-1] != "a" else "b")) == 404
        for part in ("msg", "exp", "sig"):
            assert await get(url.replace(f"{part}=", "x=")) == 404
        past = LINKS.address(file["file_id"], int(sent["server_msg_id"]), 1_000_000)
        assert await get(past) == 404, "its time is over"
        assert (await fetch(api, "ben", past)).status == 200, "the token decides then"


async def test_a_key_with_the_scope_files_reads_and_deletes_any_file(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file = await upload(api, "ann")
        sent = await share(api, "ann", "ben", file["file_id"])
        path = f"/files/{file['file_id']}"
        key, other = await make_key(api, "files"), await make_key(api, "users")
        assert await status(api, key, path) == 200
        assert await status(api, other, path) == 403
        assert (await api.request("ann", "DELETE", path)).error == "no_permission", "a message names it"
        assert (await api.request("ben", "DELETE", path)).error == "file_not_found"
        assert (await api.request(key, "DELETE", path)).status == 200
        assert await status(api, "ben", path) == 404
        assert (await the_message(api, "ben", sent))["content"]["name"] == "a.png"
        await collect(api)
        assert blobs(tmp_path) == []
        audit = await api.get(await make_key(api, "moderate"), "/server/audit", target=file["file_id"])
        assert [entry["act"] for entry in audit.data["entries"]] == ["file.delete"]


async def test_pictures_of_profiles_are_for_everyone(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path, group__min_create_members=1) as api:
        one, two, page = await upload(api, "ann"), await upload(api, "ann"), await upload(api, "ann", HTML)
        first, second = (f"/files/{file['file_id']}" for file in (one, two))
        assert (await api.put("ann", "/user/update", avatar=page["file_id"])).error == "bad_avatar", "only pictures"
        assert (await api.put("ben", "/user/update", avatar=first)).error == "file_not_found"
        assert (await api.put("ann", "/user/update", avatar="/files/x")).error == "bad_avatar"
        assert await status(api, None, first) == 404
        await api.put("ann", "/user/update", avatar=first)
        assert await status(api, None, first) == 200
        shown = (await api.put("ann", "/user/update", avatar=one["file_id"])).data["avatar"]
        assert shown == f"{first}/small"
        answer = await api.http.get(shown)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
        group = (await make_group(api, "ann", "ben", avatar=second))["group_id"]
        assert await status(api, None, second) == 200
        await later(api, 25 * 3_600_000)
        await collect(api)
        assert await count(api, "files") == 2, "named by a profile"
        await api.put("ann", "/user/update", avatar="")
        await api.put("ann", "/group/update", group_id=group, avatar="https://a.example/b.png")
        await collect(api)
        assert await count(api, "files") == 0


async def test_what_nothing_names_is_deleted_after_its_time_and_nothing_else(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path, recall__keep_days=1) as api:
        kept, unused, recalled = [await upload(api, "ann", data) for data in (b"kept", b"unused", b"recalled")]
        await share(api, "ann", "ben", kept["file_id"], 5)
        sent = await share(api, "ann", "ben", recalled["file_id"], 5)
        await upload(api, "ann", b"kept")  # the same bytes, which nothing names
        await collect(api)
        assert await count(api, "files") == 4
        await later(api, 25 * 3_600_000)
        await collect(api)
        assert await count(api, "files") == 2
        assert await status(api, "ann", f"/files/{unused['file_id']}") == 404
        assert len(blobs(tmp_path)) == 2
        await api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
        await collect(api)
        assert await count(api, "files") == 2, "moderators can still read it"
        await later(api, 25 * 3_600_000)
        await collect(api)
        assert await status(api, "ben", f"/files/{kept['file_id']}") == 200
        assert await status(api, "ann", f"/files/{recalled['file_id']}") == 404
        assert len(blobs(tmp_path)) == 1


async def test_a_send_and_the_collection_never_leave_a_message_without_its_file(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path, limits__sends_per_s=0) as api:
        files = [await upload(api, "ann", b"%d" % number) for number in range(12)]
        await later(api, 25 * 3_600_000)

        async def try_share(file: Any) -> str:
            answer = await api.post(
                "ann", "/msg/send", client_msg_id=file["file_id"], recv_id="ben", msg_type=5,
                content={"file_id": file["file_id"]},
            )  # fmt: skip
            return file["file_id"] if answer.body["err_code"] == 0 else ""

        saved, _ = await asyncio.gather(asyncio.gather(*map(try_share, files)), collect(api))
        await collect(api)
        named = {file_id for file_id in saved if file_id}
        assert await count(api, "files") == len(named)
        for file_id in named:
            assert await status(api, "ben", f"/files/{file_id}") == 200
        assert len(blobs(tmp_path)) == len(named)


async def test_the_journal_reports_files(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file = await upload(api, "ann")
        key = await make_key(api, "events")
        await api.request("ann", "DELETE", f"/files/{file['file_id']}")
        found = await api.get(key, "/server/events", cursor="begin", types="file.stored,file.deleted")
        assert [(entry["type"], entry["data"]["file_id"], entry["user_id"]) for entry in found.data["events"]] == [
            ("file.stored", file["file_id"], "ann"),
            ("file.deleted", file["file_id"], "ann"),
        ]


async def test_forwarded_copies_carry_the_file_and_open_it(core_url: str, tmp_path: Path) -> None:
    async with files_api(core_url, tmp_path) as api:
        file_id = (await upload(api, "ann"))["file_id"]
        sent = await share(api, "ann", "ben", file_id, text="look")
        for target, merge in (("cy", False), ("dan", True)):
            asked = {"client_msg_id": target, "server_msg_ids": [sent["server_msg_id"]], "to": [{"recv_id": target}]}
            assert (await fetch(api, target, f"/files/{file_id}")).status == 404
            (done,) = (await api.post("ben", "/msg/forward", **asked, merge=merge)).data["sent"]
            page = await api.get(target, "/msg/history", conversation_id=f"si_ben:{target}")
            (copy,) = page.data["messages"]
            content = copy["content"]["items"][0]["content"] if merge else copy["content"]
            assert (content["file_id"], content["text"]) == (file_id, "look")
            assert (await fetch(api, None, content["url"])).status == 200
            assert (await fetch(api, target, f"/files/{file_id}")).status == 200
            await api.post("ben", "/msg/recall", server_msg_id=done["server_msg_ids"][0])
            assert (await fetch(api, target, f"/files/{file_id}")).status == 404
            assert (await fetch(api, None, content["url"])).status == 404
        assert (await check(api.core.store.url)).findings == []
