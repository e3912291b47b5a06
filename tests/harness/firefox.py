"""People at the web client in Firefox: Debian's own, driven by WebDriver BiDi, which it speaks by itself."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from harness import processes
from harness.browser import PASSWORD, PICTURES, missing

PATIENCE_S = 30.0
# WebDriver names keys that make no character by private code points.
KEYS = {
    "Enter": "\ue007",
    "Tab": "\ue004",
    "Escape": "\ue00c",
    "ArrowUp": "\ue013",
    "ArrowDown": "\ue015",
    "Delete": "\ue017",
}
_PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "app.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "dom.webnotifications.enabled": False,
    "intl.accept_languages": "en-GB, en",
    "ui.primaryPointerCapabilities": 6,  # a mouse: without a screen it would have none
    "ui.allPointerCapabilities": 6,
}

# Functions of the page, called with JSON and answering with JSON.
_CALL = "async (given) => JSON.stringify((await (CODE)(...JSON.parse(given))) ?? null)"
_UNTIL = """async (given, ms) => {
    const look = (CODE); const end = performance.now() + ms;
    for (;;) {
        const found = look(...JSON.parse(given));
        if (found || performance.now() > end) return JSON.stringify(found instanceof Node ? true : (found ?? null));
        await new Promise((done) => setTimeout(done, 30));
    } }"""


class Bidi:
    """Commands and their answers over one connection; events are kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(timeout=2 * PATIENCE_S))
            if told.get("id") != number:
                self.events.append(told)
            elif told["type"] == "error":
                raise AssertionError(f"{method}: {told['error']}: {told['message']}")
            else:
                return told["result"]


@contextlib.contextmanager
def firefox() -> Iterator[Bidi]:
    path = shutil.which("firefox-esr")
    if path is None:
        missing("Firefox is not installed")
    directory = processes.new_dir("firefox")
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _PREFERENCES.items()]
    (directory / "user.js").write_text("\n".join(lines))
    command = [str(path), "--headless", "--no-remote", "--profile", str(directory), "--remote-debugging-port", "0"]
    env = {**processes.ENVIRONMENT, "HOME": str(directory), "MOZ_CRASHREPORTER_DISABLE": "1"}
    process = processes.spawn(command, cwd=directory, log=directory / "log", env=env)
    try:
        with connect(f"{_address(directory)}/session", proxy=None, max_size=None) as socket:
            bidi = Bidi(socket)
            bidi.ask("session.new", capabilities={})
            bidi.ask("session.subscribe", events=["log.entryAdded"])
            yield bidi
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _address(directory: Path) -> str:
    place = directory / "WebDriverBiDiServer.json"
    until = time.monotonic() + 2 * PATIENCE_S
    while True:
        with contextlib.suppress(OSError, ValueError):
            told = json.loads(place.read_text())
            return f"ws://{told['ws_host']}:{told['ws_port']}"
        assert time.monotonic() < until, (directory / "log").read_text()
        time.sleep(0.05)


class FirefoxWindow:
    """One window of one person, in storage of its own."""

    def __init__(self, bidi: Bidi, address: str, width: int = 1280, height: int = 800) -> None:
        self._bidi = bidi
        self.address = address
        self._user = bidi.ask("browser.createUserContext")["userContext"]
        self.context: str = bidi.ask("browsingContext.create", type="window", userContext=self._user)["context"]
        size = {"width": width, "height": height}
        bidi.ask("browsingContext.setViewport", context=self.context, viewport=size)

    def close(self) -> None:
        self._bidi.ask("browser.removeUserContext", userContext=self._user)

    def open(self, path: str = "/") -> FirefoxWindow:
        self._bidi.ask("browsingContext.navigate", context=self.context, url=self.address + path, wait="complete")
        return self

    def front(self) -> FirefoxWindow:
        self._bidi.ask("browsingContext.activate", context=self.context)
        return self

    # -- looking ---------------------------------------------------------------------------------------------

    def run(self, code: str, *given: Any) -> Any:
        """What a function of the page answers."""
        return self._call(_CALL.replace("CODE", code), json.dumps(given))

    def until(self, code: str, *given: Any) -> Any:
        """Waits in the page until a function of it finds something."""
        found = self._call(_UNTIL.replace("CODE", code), json.dumps(given), PATIENCE_S * 1000)
        assert found, f"not seen: {code} {given}\n{self.run('() => document.body.innerText')[:2000]}"
        return found

    def _call(self, function: str, *given: Any) -> Any:
        values = [{"type": "number" if isinstance(one, float) else "string", "value": one} for one in given]
        told = self._bidi.ask(
            "script.callFunction",
            functionDeclaration=function,
            awaitPromise=True,
            target={"context": self.context, "sandbox": "test"},
            arguments=values,
        )
        if told["type"] == "exception":
            raise AssertionError(told["exceptionDetails"]["text"])
        return json.loads(told["result"]["value"])

    def sees(self, text: str) -> FirefoxWindow:
        """A message with these words."""
        self.until(
            "(text) => [...document.querySelectorAll('li.msg')].some((one) => one.innerText.includes(text))", text
        )
        return self

    def state(self, text: str, state: str) -> FirefoxWindow:
        self.until(
            "(text, state) => [...document.querySelectorAll(`li.msg[data-state=${state}]`)]"
            ".some((one) => one.innerText.includes(text))",
            text,
            state,
        )
        return self

    def picture(self, name: str) -> FirefoxWindow:
        PICTURES.mkdir(exist_ok=True)
        data = self._bidi.ask("browsingContext.captureScreenshot", context=self.context)["data"]
        (PICTURES / f"firefox-{name}.png").write_bytes(base64.b64decode(data))
        return self

    # -- doing -----------------------------------------------------------------------------------------------

    def click(self, css: str, text: str = "", *, right: bool = False) -> FirefoxWindow:
        """With the pointer, on the last element that matches and is shown."""
        place = self.until(
            """(css, text) => {
                const all = [...document.querySelectorAll(css)].filter((one) => one.checkVisibility());
                const found = all.findLast((one) => one.textContent.includes(text));
                if (!found) return null;
                found.scrollIntoView({block: "nearest"});
                const box = found.getBoundingClientRect();
                return {x: Math.round(box.x + box.width / 2), y: Math.round(box.y + box.height / 2)};
            }""",
            css,
            text,
        )
        which = 2 if right else 0
        moves = [
            {"type": "pointerMove", **place},
            {"type": "pointerDown", "button": which},
            {"type": "pointerUp", "button": which},
        ]
        actions = [{"type": "pointer", "id": "mouse", "actions": moves}]
        self._bidi.ask("input.performActions", context=self.context, actions=actions)
        return self

    def press(self, *keys: str) -> FirefoxWindow:
        """Keys by name, or characters."""
        steps = []
        for key in keys:
            value = KEYS.get(key, key)
            steps += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self._bidi.ask(
            "input.performActions", context=self.context, actions=[{"type": "key", "id": "keys", "actions": steps}]
        )
        return self

    def type(self, text: str) -> FirefoxWindow:
        return self.press(*text)

    def choose_files(self, css: str, *paths: Path) -> FirefoxWindow:
        """Into a field for files, as the browser's own window would."""
        told = self._bidi.ask(
            "browsingContext.locateNodes", context=self.context, locator={"type": "css", "value": css}
        )
        element = {"sharedId": told["nodes"][0]["sharedId"]}
        self._bidi.ask("input.setFiles", context=self.context, element=element, files=[str(path) for path in paths])
        return self

    # -- what a person does ----------------------------------------------------------------------------------

    def sign_in(self, user_id: str) -> FirefoxWindow:
        self.open()
        self.click("[name=user_id]").type(user_id)
        self.click("[name=password]").type(PASSWORD)
        self.press("Enter")
        self.until("() => document.querySelector('.app')?.checkVisibility()")
        return self

    def chat(self, name: str) -> FirefoxWindow:
        self.click("a.conv", name)
        self.until("(name) => document.querySelector('.chat .who-head .t')?.textContent === name", name)
        return self

    def say(self, text: str) -> FirefoxWindow:
        self.click(".composer textarea")
        self.type(text).press("Enter")
        return self

    @property
    def troubles(self) -> list[str]:
        """What went wrong in this window, by its console."""
        return [
            event["params"]["text"]
            for event in self._bidi.events
            if event.get("method") == "log.entryAdded"
            and event["params"]["level"] == "error"
            and event["params"]["source"].get("context") == self.context
        ]
