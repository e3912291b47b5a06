"""How the page starts: on a slow line, without a network, from what the browser kept."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from harness.browser import Api, People, Window

# What is promised on 400 kbit/s with 400 ms of latency; a machine that is shared by many adds to it.
SLOW_LINE = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
SEEN_MS = 3000
WRITTEN_MS = 7000
REQUESTS_MAX = 15


@pytest.fixture(scope="module")
def pair(server: Any) -> None:
    api = Api(server.address)
    api.register("mira", "Mira Okafor")
    api.register("jonas", "Jonas Weber")
    api.register("lena", "Lena Petrova")
    for number in range(40):
        api.send("jonas", "mira", f"Lamp {number} is up")
    api.create_group("lena", "Opening Week", "mira", "jonas")
    api.close()


def test_a_first_visit_on_a_slow_line_shows_something_soon_and_asks_little(pair: None, people: People) -> None:
    window = people.window()
    page = window.page
    session = window.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW_LINE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    window.open()
    expect(page.locator("[name=password]")).to_be_visible()
    seen_ms = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    ready_ms = page.evaluate("performance.now()")
    print(f"seen {seen_ms:.0f} ms, ready {ready_ms:.0f} ms, {len(asked)} requests")
    assert seen_ms <= SEEN_MS
    assert ready_ms <= WRITTEN_MS
    assert len(asked) <= REQUESTS_MAX, asked


def test_without_scripts_the_first_answer_is_drawn(pair: None, people: People) -> None:
    window = people.window(java_script_enabled=False).open()
    expect(window.page.locator(".splash .mark")).to_be_visible()
    assert window.page.locator(".splash .mark").bounding_box()["width"] == 64  # type: ignore[index]


def test_a_signed_in_user_can_write_soon_on_a_slow_line(pair: None, people: People) -> None:
    window = people.window(service_workers="block").sign_in("mira").chat("Jonas Weber").sees("Lamp 39")
    page = window.page
    session = window.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    session.send("Network.emulateNetworkConditions", SLOW_LINE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload(wait_until="commit")
    expect(window.field).to_be_focused()
    ready_ms = page.evaluate("performance.now()")
    print(f"can write after {ready_ms:.0f} ms, {len(asked)} requests")
    assert ready_ms <= WRITTEN_MS
    assert len(asked) <= REQUESTS_MAX, asked
    window.say("From a slow train").state("From a slow train", "saved")


def kept_for_later(window: Window, key: str) -> None:
    window.page.evaluate(
        """(key) => new Promise((resolve) => {
          const look = async () => {
            for (const { name } of await indexedDB.databases()) {
              const opening = indexedDB.open(name);
              const database = await new Promise((opened) => (opening.onsuccess = () => opened(opening.result)));
              const asked = database.transaction("values").objectStore("values").count(key);
              const count = await new Promise((done) => (asked.onsuccess = () => done(asked.result)));
              database.close();
              if (count) return resolve(true);
            }
            setTimeout(look, 50);
          };
          look();
        })""",
        key,
    )


def worker_ready(window: Window) -> None:
    window.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    window.page.wait_for_function("navigator.serviceWorker.controller !== null")


def test_it_starts_without_a_network_from_what_was_kept_and_sends_later(pair: None, people: People, api: Api) -> None:
    window = people.window().sign_in("mira").chat("Jonas Weber").sees("Lamp 39")
    page = window.page
    worker_ready(window)
    kept_for_later(window, "recent/mira/si_jonas:mira")
    window.context.set_offline(True)
    page.reload()
    window.sees("Lamp 39")
    expect(window.row("Opening Week")).to_be_visible()
    expect(page.locator(".connbar.warn")).to_contain_text("These are the messages of")
    window.say("Written in the tunnel").state("Written in the tunnel", "sending")
    api.send("jonas", "mira", "While you were away")
    window.context.set_offline(False)
    window.sees("While you were away")
    window.state("Written in the tunnel", "saved")
    expect(page.locator(".connbar.warn")).to_be_hidden()


def test_the_page_can_be_installed(pair: None, people: People) -> None:
    window = people.window().open()
    worker_ready(window)
    session = window.context.new_cdp_session(window.page)
    found = session.send("Page.getAppManifest")
    assert found["errors"] == []
    troubles = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    # a window without a profile on disk cannot install anything; nothing else may be missing
    assert [one["errorId"] for one in troubles if one["errorId"] != "in-incognito"] == []
