"""OpenIM's SDK for browsers (the Go core as wasm, its database in IndexedDB), in Chromium: the main path."""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page

from harness.chat import PASSWORD
from harness.openim import FOLDER, chat_of, host, install_sdks
from harness.server_process import ServerProcess

WAIT_MS = 60_000


class _Files(SimpleHTTPRequestHandler):
    """The page and the SDK, isolated from other origins as the SDK needs it for its database."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def translate_path(self, path: str) -> str:
        inside = "wasm.html" if path == "/" else f"node_modules/openim-wasm{path}"
        return super().translate_path("/" + inside)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    install_sdks()
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=FOLDER)) as files:
        threading.Thread(target=files.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{files.server_port}/"
        files.shutdown()


class User:
    """A user of Nexo's HTTP API."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        self.user_id = f"{name}_{secrets.token_hex(4)}"
        self._http = httpx.Client(base_url=server.address, timeout=30.0)
        account = {"user_id": self.user_id, "password": PASSWORD}
        self.post("/user/register", **account)
        self.token = self.post("/auth/login", **account, platform_id=5, device_id="")["access_token"]
        self._http.headers["Authorization"] = f"Bearer {self.token}"

    def post(self, path: str, **fields: Any) -> Any:
        answer = self._http.post(path, json=fields).json()
        assert not answer["err_code"], answer
        return answer["data"]

    def get(self, path: str, **query: Any) -> Any:
        return self._http.get(path, params=query).json()["data"]

    def send(self, text: str, **to: str) -> Any:
        return self.post("/msg/send", content=text, client_msg_id=secrets.token_hex(16), **to)

    def close(self) -> None:
        self._http.close()


def heard(page: Page, event: str, text: str) -> None:
    """Wait for an event whose data has this text in it."""
    page.wait_for_function(
        "([event, text]) => heard.some((one) => one.event === event && JSON.stringify(one.data ?? '').includes(text))",
        arg=[event, text],
        timeout=WAIT_MS,
    )


def call(page: Page, name: str, *args: Any) -> Any:
    return page.evaluate("([name, args]) => call(name, ...args)", [name, list(args)])


def sign_in(page: Page, site: str, server: ServerProcess, user: User) -> None:
    page.goto(site)
    page.wait_for_function("() => typeof call === 'function'", timeout=WAIT_MS)
    address = host(server)
    account = {
        "userID": user.user_id, "token": user.token, "platformID": 5, "apiAddr": f"http://{address}/openim",
        "wsAddr": f"ws://{address}/openim", "logLevel": 1,
    }  # fmt: skip
    call(page, "login", account)
    heard(page, "OnSyncServerFinish", "")


def texts(page: Page, conversation: str) -> list[str]:
    asked = {"conversationID": conversation, "count": 50, "startClientMsgID": "", "viewType": 0}
    found = call(page, "getAdvancedHistoryMessageList", asked)
    return [(one.get("textElem") or {}).get("content", "") for one in found["messageList"]]


def test_the_sdk_for_browsers_chats_with_a_nexo_user(browser: Browser, server: ServerProcess, site: str) -> None:
    ann, ben = User(server, "ann"), User(server, "ben")
    chat = chat_of(ann.user_id, ben.user_id)
    ben.send("before", recv_id=ann.user_id)
    context = browser.new_context()
    try:
        page = context.new_page()
        sign_in(page, site, server, ann)
        assert texts(page, chat) == ["before"]
        sent = page.evaluate("([text, to]) => sendText(text, to)", ["from a browser", ben.user_id])
        listed = ben.get("/conversation/list")["conversations"]
        assert (listed[0]["unread"], listed[0]["last_message"]["content"]) == (1, "from a browser")
        ben.send("to a browser", recv_id=ann.user_id)
        heard(page, "OnRecvNewMessages", "to a browser")
        ben.post("/conversation/read", conversation_id=listed[0]["conversation_id"], seq=3)
        heard(page, "OnRecvC2CReadReceipt", sent["clientMsgID"])
        call(page, "markConversationMessageAsRead", chat)
        assert ann.get("/conversation/list")["conversations"][0]["unread"] == 0
        call(page, "revokeMessage", {"conversationID": chat, "clientMsgID": sent["clientMsgID"]})
        heard(page, "OnNewRecvMessageRevoked", sent["clientMsgID"])
        asked = {"memberUserIDs": [ben.user_id], "groupInfo": {"groupName": "two", "groupType": 2}}
        group = call(page, "createGroup", asked)["groupID"]
        page.evaluate("([text, group]) => sendText(text, '', group)", ["to the group", group])
        ben.send("in the group", group_id=group)
        heard(page, "OnRecvNewMessages", "in the group")
        ben.send("while away", recv_id=ann.user_id)
        sign_in(page, site, server, ann)  # the page anew, with its database
        assert texts(page, chat)[-2:] == ["to a browser", "while away"]
    finally:
        context.close()
        ann.close()
        ben.close()
