"""What is attached and not sent yet: it is uploaded at once, says how far it is, and waits for its text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from harness.browser import Api, People, Window

PIECE = 128 * 1024  # the first one


@pytest.fixture
def pair(people: People, api: Api) -> tuple[Window, Window]:
    """Tia and Ugo, both looking at their chat. Requests are watched, so no service worker takes them."""
    api.register("tia", "Tia Lund")
    api.register("ugo", "Ugo Neri")
    api.register("vic", "Vic Orr")
    api.send("ugo", "tia", "First of all")
    api.send("vic", "tia", "Another chat")
    tia = people.window(service_workers="block").sign_in("tia").chat("Ugo Neri").sees("First of all")
    ugo = people.at_home("ugo").chat("Tia Lund").sees("First of all")
    return tia, ugo


def file_of(folder: Path, name: str, size: int) -> Path:
    path = folder / name
    path.write_bytes(os.urandom(size))
    return path


def attach(window: Window, *paths: Path) -> None:
    window.label("Attach").click()
    with window.page.expect_file_chooser() as chooser:
        window.option("File").click()
    chooser.value.set_files(paths)


def tile(window: Window, name: str) -> Locator:
    return window.page.locator(".tray .tile", has_text=name)


def is_in(window: Window, name: str, state: str) -> None:
    expect(tile(window, name)).to_have_attribute("data-state", state)


def hold_pieces(window: Window, after: int) -> list[Route]:
    """Lets so many pieces through; the others wait here."""
    held: list[Route] = []
    seen = 0

    def piece(route: Route) -> None:
        nonlocal seen
        if route.request.method != "PATCH":
            return route.continue_()
        seen += 1
        return route.continue_() if seen <= after else held.append(route)

    window.page.route("**/files/tus/**", piece)
    return held


def test_an_upload_starts_at_once_and_its_ring_is_what_the_server_has(
    pair: tuple[Window, Window], tmp_path: Path
) -> None:
    tia, ugo = pair
    held = hold_pieces(tia, after=1)
    attach(tia, file_of(tmp_path, "plan.bin", 8 * PIECE))
    ring = tile(tia, "plan.bin").get_by_role("progressbar")
    expect(ring).to_have_attribute("aria-valuenow", "12")  # one piece of eight
    is_in(tia, "plan.bin", "uploading")
    expect(tile(tia, "plan.bin")).to_contain_text("0.1 of 1.0 MB")
    tia.page.wait_for_timeout(300)
    expect(ring).to_have_attribute("aria-valuenow", "12")  # nothing is guessed meanwhile
    assert held
    # Send does not wait: it goes on in the log, from where it is.
    tia.say("Here it is")
    expect(tia.page.locator(".tray .tile")).to_have_count(0)
    expect(tia.message("Here it is")).to_have_attribute("data-state", "uploading")
    tia.page.unroute("**/files/tus/**")
    tia.state("Here it is", "read")
    expect(ugo.message("Here it is")).to_contain_text("plan.bin")


def test_what_is_ready_is_only_named_and_a_text_goes_with_it(pair: tuple[Window, Window], tmp_path: Path) -> None:
    tia, ugo = pair
    attach(tia, file_of(tmp_path, "one.bin", 3000), file_of(tmp_path, "two.bin", 3000))
    is_in(tia, "one.bin", "ready")
    is_in(tia, "two.bin", "ready")
    expect(tia.page.locator("#polite")).to_contain_text("uploaded, 2 of 2")
    asked: list[str] = []
    tia.page.on("request", lambda request: asked.append(request.url) if "/files/tus" in request.url else None)
    tia.say("Both files")
    tia.state("Both files", "read")
    assert asked == []
    expect(ugo.message("Both files")).to_contain_text("two.bin")
    ugo.sees("one.bin")


def test_without_a_connection_an_upload_pauses_and_goes_on_by_itself(
    pair: tuple[Window, Window], tmp_path: Path
) -> None:
    tia, _ = pair
    held = hold_pieces(tia, after=1)
    attach(tia, file_of(tmp_path, "slow.bin", 8 * PIECE))
    expect(tile(tia, "slow.bin").get_by_role("progressbar")).to_have_attribute("aria-valuenow", "12")
    tia.context.set_offline(True)
    is_in(tia, "slow.bin", "paused")
    expect(tile(tia, "slow.bin")).to_contain_text("Paused at 0.1 of 1.0 MB, continues by itself")
    tia.page.unroute("**/files/tus/**")
    sent: list[str] = []
    tia.page.on("request", lambda request: sent.append(request.headers.get("upload-offset", "")))
    tia.context.set_offline(False)
    is_in(tia, "slow.bin", "ready")
    assert next(offset for offset in sent if offset) == str(PIECE)  # not from the beginning
    assert held


def test_what_fails_is_tried_again_and_what_is_refused_stays(pair: tuple[Window, Window], tmp_path: Path) -> None:
    tia, ugo = pair
    tia.page.route(
        "**/files/tus/**", lambda route: route.abort() if route.request.method == "PATCH" else route.continue_()
    )
    attach(tia, file_of(tmp_path, "fails.bin", 3000), file_of(tmp_path, "empty.bin", 0))
    expect(tile(tia, "empty.bin")).to_contain_text("This file is empty.")
    is_in(tia, "empty.bin", "refused")
    is_in(tia, "fails.bin", "failed")
    expect(tia.page.locator(".composer .hint")).to_contain_text("0 of 2 ready or on their way")
    expect(tia.button("Send")).to_be_hidden()
    tia.page.unroute("**/files/tus/**")
    tile(tia, "fails.bin").get_by_role("button", name="Try again").click()
    is_in(tia, "fails.bin", "ready")
    tia.say("What could be sent")
    tia.state("What could be sent", "read")
    expect(ugo.message("What could be sent")).to_contain_text("fails.bin")
    is_in(tia, "empty.bin", "refused")
    tile(tia, "empty.bin").get_by_role("button", name="Remove empty.bin").focus()
    tia.page.keyboard.press("Delete")
    expect(tia.page.locator(".tray .tile")).to_have_count(0)
    expect(tia.field).to_be_focused()


def test_attachments_are_kept_over_other_chats_and_a_reload_in_one_tab(
    pair: tuple[Window, Window], people: People, tmp_path: Path
) -> None:
    tia, ugo = pair
    attach(tia, file_of(tmp_path, "kept.bin", 3000))
    is_in(tia, "kept.bin", "ready")
    tia.chat("Vic Orr")
    expect(tia.page.locator(".tray .tile")).to_have_count(0)
    tia.chat("Ugo Neri")
    is_in(tia, "kept.bin", "ready")
    beside = people.tab(tia).open()
    beside.chat("Ugo Neri").sees("First of all")
    expect(beside.page.locator(".tray .tile")).to_have_count(0)
    tia.front()
    tia.page.reload()
    is_in(tia, "kept.bin", "ready")
    tia.say("After the reload")
    expect(ugo.message("After the reload")).to_contain_text("kept.bin")
    tia.page.reload()
    tia.sees("After the reload")
    expect(tia.page.locator(".tray .tile")).to_have_count(0)


# Whether the page itself takes what is dropped on an element.
DROP_ON = """(css) => { const data = new DataTransfer(); data.items.add(new File(["some bytes"], "note.bin"));
    const element = document.querySelector(css); const options = {dataTransfer: data, bubbles: true, cancelable: true};
    const isHeld = !element.dispatchEvent(new DragEvent("dragover", options));
    return isHeld && !element.dispatchEvent(new DragEvent("drop", options)); }"""


def test_a_drop_never_leaves_the_page_and_on_a_row_it_opens_that_chat(pair: tuple[Window, Window]) -> None:
    tia, _ = pair
    assert tia.page.evaluate(DROP_ON, "a.conv[data-id='si_tia:vic']")
    expect(tia.page.locator(".chat .who-head .t")).to_have_text("Vic Orr")
    is_in(tia, "note.bin", "ready")
    tia.chat("Ugo Neri")
    expect(tia.page.locator(".tray .tile")).to_have_count(0)
    tia.open("/#/")
    expect(tia.page.locator("main.chat")).to_have_count(0)
    assert tia.page.evaluate(DROP_ON, "body")
    expect(tia.row("Vic Orr")).to_be_visible()
