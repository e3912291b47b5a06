"""People at the web client: a real browser, one window per person, and what a person does in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    Playwright,
    WebSocketRoute,
    expect,
    sync_playwright,
)

PASSWORD = "correct horse"
PICTURES = Path(__file__).parents[1] / "browser" / "pictures"
WAIT_MS = 30_000  # for what surely comes: workers share two cores
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SLOWDOWN = int(os.environ.get("NEXO_SLOW_PAGES", "1"))  # races of the pages show when their scripts take longer
_AXE_FOLDER = Path(__file__).parents[1] / "browser"
_AXE = _AXE_FOLDER / "node_modules" / "axe-core" / "axe.min.js"

_SERVER_AWAY = re.compile(r"Failed to load resource|WebSocket connection to|when fetching the script")

expect.set_options(timeout=WAIT_MS)


@contextlib.contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = _launch(playwright, str(path), flags)
        try:
            yield browser
        finally:
            browser.close()


def _launch(playwright: Playwright, path: str, flags: tuple[str, ...] = ()) -> Browser:
    return playwright.chromium.launch(executable_path=path, headless=True, args=[*_FLAGS, *flags])


def missing(what: str) -> None:
    """On a developer's machine a reason to skip, in CI a failure."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def axe_source() -> str:
    if not _AXE.exists():
        npm = shutil.which("npm")
        if npm is None:
            missing("npm is not installed")
        command = [str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=_AXE_FOLDER, check=True, capture_output=True, timeout=120)
    return _AXE.read_text()


class Api:
    """The same server over HTTP: for what has happened before the browser looks."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._http = httpx.Client(base_url=address, timeout=30)
        self._tokens: dict[str, str] = {}
        self._sent = 0
        self._mark = uuid.uuid4().hex  # several of these may speak for one user

    def close(self) -> None:
        self._http.close()

    def register(self, user_id: str, nickname: str = "") -> None:
        body = {"user_id": user_id, "password": PASSWORD, "nickname": nickname}
        assert self._http.post("/user/register", json=body).json()["err_msg"] in ("", "user_exists")

    def token(self, who: str) -> str:
        if who not in self._tokens:
            body = {"user_id": who, "password": PASSWORD, "device_id": "api"}
            self._tokens[who] = self._http.post("/auth/login", json=body).json()["data"]["access_token"]
        return self._tokens[who]

    def call(self, who: str, method: str, path: str, **params: Any) -> Any:
        headers = {"authorization": f"Bearer {self.token(who)}"}
        how = {"params": params} if method == "GET" else {"json": params}
        answer = self._http.request(method, path, headers=headers, **how).json()  # type: ignore[arg-type]
        assert answer["err_code"] == 0, answer
        return answer["data"]

    def send(self, user_id: str, to: str, content: Any, **more: Any) -> dict[str, Any]:
        self._sent += 1
        target = {"group_id" if to.startswith("g_") else "recv_id": to}
        sent: dict[str, Any] = self.call(
            user_id, "POST", "/msg/send", client_msg_id=f"{self._mark}-{self._sent}", content=content, **target, **more
        )
        return sent

    def create_group(self, owner: str, name: str, *members: str, **more: Any) -> str:
        group_id: str = self.call(owner, "POST", "/group/create", name=name, member_ids=list(members), **more)[
            "group_id"
        ]
        return group_id


class Window:
    """One window of one person. Errors in its console fail the test that made it."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context = context
        self.address = address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.troubles: list[str] = []
        self.page.on("pageerror", lambda error: self.troubles.append(f"{error}\n{error.stack}"))
        self.page.on("console", self._heard)
        if _SLOWDOWN > 1:
            context.new_cdp_session(self.page).send("Emulation.setCPUThrottlingRate", {"rate": _SLOWDOWN})

    def _heard(self, message: Any) -> None:
        # A refused connection is what the test is about when the server is away; anything else is a mistake.
        if message.type == "error" and not _SERVER_AWAY.search(message.text):
            self.troubles.append(message.text)

    # -- signing in --------------------------------------------------------------------------------------

    def open(self, path: str = "/") -> Window:
        self.page.goto(self.address + path)
        return self

    def sign_in(self, user_id: str, password: str = PASSWORD) -> Window:
        self.open()
        self.page.fill("[name=user_id]", user_id)
        self.page.fill("[name=password]", password)
        self.page.click("button[type=submit]")
        expect(self.page.locator(".app")).to_be_visible()
        return self

    def register(self, user_id: str, nickname: str) -> Window:
        self.open("/#/register")
        self.page.fill("[name=nickname]", nickname)
        self.page.fill("[name=user_id]", user_id)
        self.page.fill("[name=password]", PASSWORD)
        self.page.click("button[type=submit]")
        expect(self.page.locator(".app")).to_be_visible()
        return self

    def front(self) -> Window:
        """The tab that is looked at; those behind it draw slowly."""
        self.page.bring_to_front()
        return self

    # -- what is on the page -----------------------------------------------------------------------------

    @property
    def field(self) -> Locator:
        return self.page.locator(".composer textarea")

    def row(self, name: str) -> Locator:
        """A conversation of the list."""
        return self.page.locator("a.conv", has=self.page.locator(".name", has_text=re.compile(f"^{re.escape(name)}$")))

    def message(self, text: str) -> Locator:
        """By its own words, not by those that it quotes."""
        own = self.page.locator(".bubble > :not(.quote)", has_text=text)
        return self.page.locator("li.msg", has=own).last

    def dialog(self) -> Locator:
        return self.page.locator("dialog[open]").last

    def label(self, text: str) -> Locator:
        return self.page.get_by_label(text, exact=True)

    def button(self, text: str) -> Locator:
        return self.page.get_by_role("button", name=text, exact=True)

    def option(self, text: str) -> Locator:
        return self.page.get_by_role("menuitem", name=re.compile(f"^{re.escape(text)}"))

    # -- what a person does ------------------------------------------------------------------------------

    def chat(self, name: str) -> Window:
        self.row(name).click()
        expect(self.page.locator(".chat .who-head .t")).to_have_text(name)
        return self

    def chat_with_id(self, user_id: str) -> Window:
        """By the dialog: the person may have no conversation yet."""
        self.label("New conversation").click()
        self.option("New chat").click()
        self.dialog().get_by_role("combobox").fill(user_id)
        self.dialog().locator(f"[role=option][data-id='{user_id}']").click()
        expect(self.page.locator("main.chat")).to_be_visible()
        return self

    def say(self, text: str) -> Window:
        self.field.fill(text)
        self.field.press("Enter")
        return self

    def sees(self, text: str) -> Window:
        expect(self.message(text)).to_be_visible()
        return self

    def state(self, text: str, state: str) -> Window:
        expect(self.message(text)).to_have_attribute("data-state", state)
        return self

    def act(self, text: str, what: str) -> Window:
        """An entry of a message's menu."""
        self.message(text).hover()
        self.message(text).get_by_role("button", name="More", exact=True).click()
        self.option(what).click()
        return self

    def toast(self, text: str) -> Window:
        expect(self.page.locator(".toast")).to_contain_text(text)
        return self

    def picture(self, name: str) -> Window:
        PICTURES.mkdir(exist_ok=True)
        self.page.mouse.move(0, 0)
        self.page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")
        return self

    def check_access(self, source: str) -> None:
        """axe finds nothing serious."""
        self.page.evaluate(source)
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        serious = [
            f"{one['id']}: {one['help']}\n    " + "\n    ".join(node["html"][:200] for node in one["nodes"][:3])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, "\n".join(serious)


class Gate:
    """Between a window and the server: lets so many messages through and keeps the others until it is opened."""

    def __init__(self, window: Window, limit: int) -> None:
        self._page = window.page
        self._limit = limit
        self._passed = 0
        self._held: list[str | bytes] = []
        self._is_open = False
        self._page.route_web_socket(lambda address: True, self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        self._route = route
        server = route.connect_to_server()
        server.on_message(self._told)

    def _told(self, data: str | bytes) -> None:
        frame = json.loads(data)
        count = {"SINGLE_CHAT": 1, "PULL_OK": len(frame.get("messages", ()))}.get(frame["type"], 0)
        if not self._is_open and (self._held or self._passed + count > self._limit):
            self._held.append(data)
            return
        self._passed += count
        self._route.send(data)

    def wait_until_shut(self) -> None:
        until = time.monotonic() + WAIT_MS / 1000
        while not self._held and self._passed < self._limit:
            assert time.monotonic() < until, f"{self._passed} messages came"
            self._page.wait_for_timeout(20)

    def open(self) -> None:
        self._is_open = True
        for data in self._held:
            self._route.send(data)


class People:
    """Opens windows and closes them; a window with an error in its console is a failure. `homes` are browsers of
    people who stay signed in from one test to the next."""

    def __init__(self, browser: Browser, address: str, homes: dict[str, BrowserContext] | None = None) -> None:
        self.browser = browser
        self.address = address
        self.windows: list[Window] = []
        self._homes = {} if homes is None else homes

    def window(self, **options: Any) -> Window:
        """A browser of its own: nothing is shared with other windows."""
        given = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB", "timezone_id": "UTC"} | options
        context = self.browser.new_context(**given)
        return self._add(context)

    def at_home(self, user_id: str) -> Window:
        """A new window in the person's own browser, which is signed in already when it has been used before."""
        if user_id in self._homes:
            window = self._add(self._homes[user_id]).open()
            expect(window.page.locator(".app")).to_be_visible()
            return window
        window = self.window().sign_in(user_id)
        self._homes[user_id] = window.context
        return window

    def tab(self, beside: Window) -> Window:
        """Another tab of the same browser."""
        return self._add(beside.context)

    def _add(self, context: BrowserContext) -> Window:
        window = Window(context, self.address)
        self.windows.append(window)
        return window

    def close(self) -> None:
        for window in self.windows:
            with contextlib.suppress(Exception):
                window.page.close()
                if window.context not in self._homes.values():
                    window.context.close()
        troubles = [trouble for window in self.windows for trouble in window.troubles]
        assert not troubles, "\n".join(troubles)
