"""A shop with its own login that has chat: `python shop.py http://127.0.0.1:8900 nexo_sk_… 8000`.

The key is made by `nexo key add shop --scope users,tokens,act,events`. Customers sign in to the shop; the shop makes
them users of Nexo and gives their page a token. Staff answer as the user `support`. The shop follows the events of Nexo
and knows which customers wait for an answer. The cursor is kept in the file `shop-cursor`: a restart misses nothing.

The web part is `http.server` in threads, as in a framework without asyncio: `Shop.wait` calls Nexo from there.
"""

import asyncio
import hmac
import json
import secrets
import sys
import threading
from collections.abc import Coroutine
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from nexo_client import ClientError, NexoBackend

SUPPORT = "support"
CURSOR = Path("shop-cursor")
PAGE = Path(__file__).parents[1] / "page"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/shop.js": ("shop.js", "text/javascript; charset=utf-8"),
    "/shop.css": ("shop.css", "text/css; charset=utf-8"),
}


class Account(NamedTuple):
    """An account of the shop. `chat_id` is its user in Nexo: the shop's own key, which never changes."""

    name: str
    password: str  # a real shop has a hash
    chat_id: str
    staff: bool = False


ACCOUNTS = {
    account.name: account
    for account in (
        Account("ann", "ann loves tea", "customer-1001"),
        Account("ben", "ben loves tea", "customer-1002"),
        Account("sam", "sam sells tea", SUPPORT, staff=True),
    )
}


class Shop:
    def __init__(self, nexo: str, backend: NexoBackend) -> None:
        self.nexo = nexo
        self.backend = backend
        self.loop = asyncio.get_running_loop()
        self.sessions: dict[str, Account] = {}  # by cookie
        self.waiting: dict[str, str] = {}  # the last question of each customer without an answer

    def wait(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Runs a call in the event loop, for a thread; returns its result."""
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(15)

    async def open(self) -> None:
        await self.backend.users.put([{"user_id": SUPPORT, "nickname": "The tea shop"}])

    async def enter(self, account: Account) -> None:
        """Makes a customer a user, and greets: the same client_msg_id is never stored twice."""
        if account.staff:
            return
        await self.backend.users.put([{"user_id": account.chat_id, "nickname": account.name.title()}])
        await self.backend.act(SUPPORT).send(
            f"Hello {account.name.title()}! Ask us anything about tea.",
            to=account.chat_id,
            client_msg_id=f"welcome-{account.chat_id}",
        )

    async def chat_token(self, account: Account) -> str:
        return (await self.backend.tokens.create(account.chat_id)).access_token

    async def follow(self) -> None:
        async for event in self.backend.events(load_cursor(), types=["message.saved"]):
            self.note(event.data)
            store_cursor(event.cursor)

    def note(self, message: dict[str, Any]) -> None:
        """Keeps who waits for an answer. The same event twice changes nothing."""
        if message["sender_id"] == SUPPORT:
            self.waiting.pop(message.get("recv_id", ""), None)
        elif message.get("recv_id") == SUPPORT:
            self.waiting[message["sender_id"]] = str(message["content"])
            print(f"{message['sender_id']} asks: {message['content']}", flush=True)


def load_cursor() -> str | None:
    return CURSOR.read_text() if CURSOR.exists() else None


def store_cursor(cursor: str | None) -> None:
    if cursor is not None:
        CURSOR.write_text(cursor)


class Request(BaseHTTPRequestHandler):
    shop: Shop

    def do_GET(self) -> None:
        if self.path in FILES:
            name, kind = FILES[self.path]
            self.answer(200, (PAGE / name).read_bytes(), kind)
        elif self.path == "/session":
            user = {"name": self.account.name, "staff": self.account.staff} if self.account else None
            self.answer_json({"user": user, "nexo": self.shop.nexo, "support": SUPPORT})
        elif self.path == "/waiting" and self.account and self.account.staff:
            self.answer_json({"waiting": self.shop.waiting})
        else:
            self.answer(404, b"not found")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            if self.path == "/login":
                self.sign_in(json.loads(body))
            elif self.path == "/logout":
                self.shop.sessions.pop(self.cookie, None)
                self.answer_json({})
            elif self.path == "/chat-token" and self.account is None:
                self.answer(401, b"sign in to the shop first")
            elif self.path == "/chat-token" and self.account:
                self.answer(200, self.shop.wait(self.shop.chat_token(self.account)).encode())
            else:
                self.answer(404, b"not found")
        except ClientError as error:  # of Nexo: the page tries again later
            self.log_error("%s: %s", error.reason, error.detail)
            self.answer(503, b"the chat is not available now")

    def sign_in(self, given: dict[str, str]) -> None:
        account = ACCOUNTS.get(given["name"])
        if account is None or not hmac.compare_digest(account.password, given["password"]):
            return self.answer(403, b"This name and password do not fit")
        self.shop.wait(self.shop.enter(account))
        cookie = secrets.token_urlsafe()
        self.shop.sessions[cookie] = account
        return self.answer(200, b"{}", "application/json", f"shop={cookie}; HttpOnly; SameSite=Lax; Path=/")

    @property
    def cookie(self) -> str:
        found = SimpleCookie(self.headers.get("cookie", "")).get("shop")
        return found.value if found else ""

    @property
    def account(self) -> Account | None:
        return self.shop.sessions.get(self.cookie)

    def answer_json(self, value: Any) -> None:
        self.answer(200, json.dumps(value).encode(), "application/json")

    def answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8", cookie: str = "") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "no-store")
        if cookie:
            self.send_header("set-cookie", cookie)
        self.end_headers()
        self.wfile.write(body)


async def main(nexo: str, key: str, port: str) -> None:
    async with NexoBackend(nexo, key) as backend:
        shop = Request.shop = Shop(nexo, backend)
        await shop.open()
        server = ThreadingHTTPServer(("127.0.0.1", int(port)), Request)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"the shop runs at http://127.0.0.1:{server.server_address[1]}", flush=True)
        await shop.follow()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
