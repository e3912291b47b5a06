"""Two people and what happens to messages: files, voice, reactions, edits, pins, forwarding, deletion, emoji."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from PIL import Image
from playwright.sync_api import Browser, FilePayload, expect

from harness import browser as browser_module
from harness.browser import Api, People, Window, axe_source

MEDIA = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_module.chromium(*MEDIA) as running:
        yield running


@pytest.fixture
def pair(people: People, api: Api) -> tuple[Window, Window]:
    """Uma and Vik, both looking at their chat."""
    api.register("uma", "Uma Sol")
    api.register("vik", "Vik Dahl")
    api.send("vik", "uma", "First of all")
    windows = people.at_home("uma"), people.at_home("vik")
    windows[0].chat("Vik Dahl").sees("First of all")
    windows[1].chat("Uma Sol").sees("First of all")
    return windows


def photo(name: str, colour: tuple[int, int, int]) -> FilePayload:
    data = io.BytesIO()
    Image.new("RGB", (640, 400), colour).save(data, "PNG")
    return {"name": name, "mimeType": "image/png", "buffer": data.getvalue()}


def choose(window: Window, entry: str, *files: FilePayload) -> None:
    window.label("Attach").click()
    with window.page.expect_file_chooser() as chooser:
        window.option(entry).click()
    chooser.value.set_files(list(files))
    expect(window.page.locator(".tile")).to_have_count(len(files))


def test_photos_and_files_are_sent_shown_and_downloaded(pair: tuple[Window, Window]) -> None:
    uma, vik = pair
    choose(uma, "Photo or video", photo("red.png", (200, 40, 40)), photo("blue.png", (40, 40, 200)))
    uma.field.fill("Both walls")
    uma.button("Send").click()
    album = vik.page.locator(".album")
    expect(album.locator("img")).to_have_count(2)
    expect(vik.message("Both walls").locator(".album")).to_be_visible()
    expect(vik.row("Uma Sol")).to_contain_text("Photo")  # which of the two is the last depends on their uploads
    uma.state("Both walls", "read")
    album.locator(".shot").first.click()
    stage = vik.page.locator("dialog.stage")
    expect(stage).to_contain_text("1 of 2")
    vik.page.keyboard.press("ArrowRight")
    expect(stage).to_contain_text("2 of 2")
    expect(stage.locator("img")).to_have_js_property("naturalWidth", 640)
    vik.page.keyboard.press("Escape")
    expect(vik.message("Both walls")).to_be_focused()
    choose(uma, "File", {"name": "plan.txt", "mimeType": "text/plain", "buffer": b"north door"})
    uma.button("Send").click()
    card = vik.page.locator(".filecard", has_text="plan.txt")
    with vik.page.expect_download() as download:
        card.get_by_role("link", name="Download plan.txt").click()
    assert download.value.path().read_bytes() == b"north door"
    vik.check_access(axe_source())


DROP = """([kind, name, type, bytes]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], name, {type}));
    if (kind === "paste") {
        const field = document.querySelector(".composer textarea");
        const paste = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
        return !field.dispatchEvent(paste);
    }
    const log = document.querySelector(".log");
    const fire = (name) => !log.dispatchEvent(
        new DragEvent(name, {dataTransfer: data, bubbles: true, cancelable: true}));
    fire("dragenter");
    if (kind === "over") return document.querySelector(".dropzone").innerText;
    return fire("drop");
}"""


def test_what_is_dropped_or_pasted_waits_above_the_text(pair: tuple[Window, Window]) -> None:
    uma, _ = pair
    picture = photo("room.png", (20, 120, 60))
    data = ["room.png", "image/png", list(picture["buffer"])]
    assert "Add as photos" in uma.page.evaluate(DROP, ["over", *data])
    assert uma.page.evaluate(DROP, ["drop", *data])  # the page itself takes it
    expect(uma.page.locator(".dropzone")).to_be_hidden()
    expect(uma.page.locator(".tile img")).to_have_count(1)
    assert uma.page.evaluate(DROP, ["paste", *data])
    expect(uma.page.locator(".tile img")).to_have_count(2)
    uma.page.locator(".tile .x").first.focus()
    uma.page.keyboard.press("Delete")
    uma.page.keyboard.press("Delete")
    expect(uma.page.locator(".tile")).to_have_count(0)
    expect(uma.field).to_be_focused()
    uma.field.fill("x" * 4200)
    uma.page.keyboard.press("Enter")
    expect(uma.page.locator(".traynote.long")).to_contain_text("4200 of 4096 characters.")
    uma.page.get_by_role("button", name="Send as a text file").click()
    expect(uma.page.locator(".tile.file")).to_contain_text("message.txt")
    uma.page.locator(".tile .x").click()


def test_a_voice_message_is_recorded_and_played(pair: tuple[Window, Window]) -> None:
    uma, vik = pair
    uma.button("Record a voice message").click()
    timer = uma.page.get_by_role("timer")
    expect(timer).to_have_text("0:02")
    uma.page.keyboard.press("Escape")  # stops and keeps it
    expect(uma.label("Play")).to_be_visible()
    uma.page.locator(".rec .send").click()
    voice = vik.page.locator(".voice").last
    expect(voice.get_by_role("slider")).to_have_attribute("aria-valuetext", "0:00 of 0:02")
    expect(voice.locator(".new")).to_be_visible()
    expect(vik.row("Uma Sol")).to_contain_text("Voice message, 0:02")
    voice.locator(".play").click()
    expect(voice.locator(".new")).to_be_hidden()
    expect(voice.locator("rect.on").first).to_be_attached()


def test_reactions_edits_and_pins_reach_the_other(pair: tuple[Window, Window]) -> None:
    uma, vik = pair
    uma.say("I booked the lift for nine").state("for nine", "read")
    vik.message("for nine").focus()
    vik.page.keyboard.press("Enter")
    vik.page.get_by_role("menuitemcheckbox", name="React with 👍").click()
    mine = vik.message("for nine").get_by_role("button", name="👍, 1, you too", include_hidden=True)
    expect(mine).to_have_attribute("aria-pressed", "true")
    theirs = uma.message("for nine").locator(".reacts button").first
    expect(theirs).to_have_attribute("aria-label", "👍, 1")
    theirs.click()
    expect(vik.message("for nine").locator(".reacts button").first).to_have_attribute("aria-label", "👍, 2, you too")
    uma.field.focus()
    uma.page.keyboard.press("ArrowUp")  # the last own message, to be edited
    expect(uma.page.locator(".replying")).to_contain_text("Edit message")
    expect(uma.field).to_have_value("I booked the lift for nine")
    uma.field.fill("I booked the lift for eight")
    uma.label("Save the change").click()
    expect(vik.message("for eight").locator(".edited")).to_have_text("edited")
    expect(vik.message("for nine")).to_have_count(0)
    expect(uma.field).to_have_value("")
    vik.act("for eight", "Pin for everyone")
    expect(uma.page.locator(".pinbar")).to_contain_text("I booked the lift for eight")
    expect(uma.page.locator(".event").last).to_have_text("Vik pinned a message")
    uma.check_access(axe_source())
    vik.act("for eight", "Unpin")
    expect(uma.page.locator(".pinbar")).to_be_hidden()


def test_several_messages_are_selected_forwarded_and_deleted(pair: tuple[Window, Window], api: Api) -> None:
    uma, vik = pair
    api.register("wes", "Wes")
    api.send("wes", "uma", "Hello from Wes")
    uma.say("Line one").say("Line two").state("Line two", "read")
    uma.act("Line one", "Select")
    expect(uma.page.get_by_role("status").filter(has_text="1 selected")).to_be_visible()
    uma.page.keyboard.press("ArrowDown")
    uma.page.keyboard.press("Space")
    expect(uma.page.get_by_role("status").filter(has_text="2 selected")).to_be_visible()
    uma.check_access(axe_source())
    uma.button("Forward").click()
    uma.dialog().get_by_role("option", name="Wes").click()
    uma.dialog().get_by_label("As one message").check()
    uma.dialog().get_by_role("button", name="Forward", exact=True).click()
    uma.toast("Forwarded")
    uma.chat("Wes")
    card = uma.page.locator(".merged")
    expect(card).to_contain_text("Forwarded messages, 2")
    card.click()
    expect(uma.dialog().locator(".mergedlist li")).to_have_count(2)
    uma.page.keyboard.press("Escape")
    uma.chat("Vik Dahl").act("Line one", "Forward")
    uma.dialog().get_by_role("option", name="Wes").click()
    uma.dialog().get_by_role("button", name="Forward", exact=True).click()
    uma.chat("Wes")
    expect(uma.message("Line one").locator(".fwd")).to_have_text("Forwarded from You")
    uma.chat("Vik Dahl").act("Line two", "Delete for me")
    uma.dialog().get_by_role("button", name="Delete", exact=True).click()
    expect(uma.page.locator("li.msg", has_text="Line two")).to_have_count(0)
    vik.sees("Line two")
    uma.page.reload()
    uma.sees("Line one")
    expect(uma.page.locator("li.msg", has_text="Line two")).to_have_count(0)


def test_emoji_are_found_by_name_in_both_languages(pair: tuple[Window, Window]) -> None:
    uma, _ = pair
    uma.field.fill("")
    uma.button("Emoji").click()
    expect(uma.label("Search emoji")).to_be_focused()
    uma.page.keyboard.type("灯泡")
    uma.page.keyboard.press("Enter")
    expect(uma.field).to_have_value("💡")
    expect(uma.field).to_be_focused()
    uma.page.keyboard.type(" :tada")
    expect(uma.page.get_by_role("option").first).to_contain_text("party popper")
    uma.page.keyboard.press("Enter")
    expect(uma.field).to_have_value("💡 🎉 ")
    uma.page.keyboard.press("Control+a")
    uma.page.keyboard.press("Control+b")
    expect(uma.field).to_have_value("**💡 🎉 **")
    uma.field.fill("")
