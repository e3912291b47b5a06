"""Around the chat: search, finding, contacts, settings, links, archive; wide and narrow, two people at once."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from harness.browser import PASSWORD, Api, People, Window, axe_source

NARROW = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NAMES = {"mira": "Mira Okafor", "jonas": "Jonas Weber", "lena": "Lena Petrova", "noor": "Noor Haddad"}


@pytest.fixture(scope="module")
def town(server: Any) -> dict[str, str]:
    api = Api(server.address)
    for user_id, name in NAMES.items():
        api.register(user_id, name)
    rooms = [api.create_group("mira", f"Room {number}", "jonas", "lena") for number in range(40)]
    api.send("jonas", rooms[3], "The lamps for the tide room came in.")
    for number in range(120):
        api.send("jonas", "mira", f"Line {number}")
    api.send("jonas", "mira", "A lamp is cracked")
    door = api.create_group("lena", "Open doors", "jonas", "noor", join_policy="open", introduction="Come in")
    api.close()
    return {"room": rooms[3], "door": door}


def search(window: Window, words: str) -> None:
    window.page.keyboard.press("Control+k")
    window.page.keyboard.type(words)


def more(window: Window) -> None:
    window.page.locator(".chat > header").get_by_role("button", name="More", exact=True).click()


def overlaps(window: Window) -> int:
    """How many rows of the results lie over the one before."""
    found: int = window.page.evaluate(
        """() => {
          const rows = [...document.querySelectorAll(".results h3, .results a.conv")];
          const boxes = rows.map((one) => one.getBoundingClientRect());
          return boxes.filter((box, at) => at > 0 && box.top < boxes[at - 1].bottom - 1).length;
        }"""
    )
    return found


def test_search_finds_messages_and_opens_them_and_results_never_overlap(town: dict[str, str], people: People) -> None:
    window = people.window().sign_in("mira")
    page = window.page
    expect(window.row("Room 3")).to_be_visible()
    search(window, "room")
    expect(page.locator(".results a.conv .name", has_text="Room 7")).to_be_visible()
    assert overlaps(window) == 0
    page.locator(".side input").fill("lamp")
    hit = page.locator(".results a.conv.two", has_text="cracked")
    expect(hit.locator("mark")).to_have_text("lamp")
    window.check_access(axe_source())
    page.get_by_role("tab", name="Messages").click()
    expect(page.locator(".results a.conv.two")).to_have_count(2)
    hit.click()
    expect(window.message("A lamp is cracked")).to_be_in_viewport()
    expect(page.locator(".results a.conv.two")).to_have_count(2)  # the list stays for the next one
    page.locator(".side input").fill("Line 3")
    page.get_by_role("tab", name="Messages").click()
    page.locator(".results a.conv.two", has=page.locator("mark", has_text=re.compile("^3$"))).first.click()
    expect(window.message("Line 3")).to_be_in_viewport()
    window.context.set_offline(True)
    expect(page.locator(".connbar")).to_be_visible()
    page.locator(".side input").fill("cracked")
    expect(page.locator(".searchnote")).to_contain_text("These are from this device")
    expect(page.locator(".results .side-empty")).to_have_count(0)  # never: no one matches


def test_finding_in_a_conversation_and_jumping_to_a_day(town: dict[str, str], people: People) -> None:
    window = people.window().sign_in("mira").chat("Jonas Weber").sees("A lamp is cracked")
    page = window.page
    page.keyboard.press("Control+f")
    page.keyboard.type("Line 1")
    expect(page.locator(".findbar [role=status]")).to_have_text(re.compile(r"^1 of \d+"))
    expect(window.message("Line 119")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator(".findbar [role=status]")).to_have_text(re.compile(r"^2 of \d+"))
    window.label("Jump to a date").click()
    page.locator(".cal [aria-current=date]").click()
    expect(window.message("Line 0")).to_be_in_viewport()
    page.locator(".findbar input").press("Escape")
    expect(page.locator(".findbar")).to_have_count(0)
    expect(window.field).to_be_focused()


def test_back_on_a_phone_closes_what_is_on_top(town: dict[str, str], people: People) -> None:
    window = people.window(**NARROW).sign_in("mira")
    page = window.page
    window.row("Jonas Weber").click()
    window.sees("A lamp is cracked")
    more(window)
    window.option("Delete chat").click()
    expect(window.dialog()).to_contain_text("Delete this chat?")
    page.go_back()
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator(".chat")).to_be_visible()  # and not the page below
    more(window)
    expect(page.locator("[role=menu]")).to_be_visible()
    page.go_back()
    expect(page.locator("[role=menu]")).to_have_count(0)
    expect(page.locator(".chat")).to_be_visible()
    length = page.evaluate("history.length")  # entries of closed layers stay ahead, not behind
    page.locator(".chat").get_by_label("Back to conversations").click()
    expect(page.locator(".side")).to_be_visible()
    assert page.evaluate("history.length") == length  # the arrow goes back, not on


def test_a_group_that_one_is_not_in_offers_to_join(town: dict[str, str], people: People) -> None:
    window = people.window().sign_in("mira")
    expect(window.row("Room 3")).to_be_visible()
    window.page.evaluate(f"location.hash = '#/c/sg_{town['door']}'")
    card = window.page.locator(".ringcard")
    expect(card).to_contain_text("Open doors")
    card.get_by_role("button", name="Join the group").click()
    expect(window.field).to_be_visible()
    window.say("Hello from the door").state("Hello from the door", "saved")


def test_an_invite_link_is_made_shown_and_followed(town: dict[str, str], people: People, api: Api) -> None:
    mira = people.window().sign_in("mira").chat("Room 3")
    mira.label("Details").click()
    mira.page.locator(".panel [data-part=link]").click()
    mira.dialog().get_by_role("button", name="Make a link").click()
    expect(mira.dialog().locator("svg.qr")).to_be_visible()
    address = mira.dialog().get_by_label("Link", exact=True).input_value()
    noor = people.window()
    noor.page.goto(address)
    noor.page.fill("[name=user_id]", "noor")
    noor.page.fill("[name=password]", PASSWORD)
    noor.page.click("button[type=submit]")
    expect(noor.page.locator(".joinpage")).to_contain_text("Room 3")
    noor.button("Join the group").click()
    expect(noor.page.locator(".chat .who-head .t")).to_have_text("Room 3")
    noor.say("In by the link").state("In by the link", "read")
    mira.sees("In by the link")


def test_contacts_are_asked_and_accepted_at_once_on_both_sides(town: dict[str, str], people: People) -> None:
    jonas = people.window().sign_in("jonas")
    mira = people.window().sign_in("mira")
    mira.page.evaluate("location.hash = '#/contacts'")
    jonas.page.evaluate("location.hash = '#/contacts'")
    expect(mira.page.locator(".set")).to_contain_text("No contacts yet")
    mira.label("Add a contact").click()
    mira.dialog().get_by_role("combobox").fill("jonas")
    mira.dialog().locator("[role=option][data-id='jonas']").click()
    mira.label("Your words").fill("From the harbour")
    mira.button("Send request").click()
    expect(mira.page.locator(".set")).to_contain_text("waiting")
    expect(jonas.page.locator(".set")).to_contain_text("From the harbour")
    jonas.check_access(axe_source())
    jonas.label("Accept Mira Okafor").click()
    expect(jonas.label("Write to Mira Okafor")).to_be_visible()
    expect(mira.label("Write to Jonas Weber")).to_be_visible()


def test_settings_are_saved_at_once_and_other_devices_are_signed_out(town: dict[str, str], people: People) -> None:
    window = people.window().sign_in("lena")
    other = people.window().sign_in("lena")
    page = window.page
    page.evaluate("location.hash = '#/settings/appearance'")
    radios = page.get_by_role("radiogroup", name="Theme").get_by_role("radio")
    assert radios.all_inner_texts() == ["System", "Light", "Dark"]
    page.get_by_role("radio", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    window.check_access(axe_source())
    page.evaluate("location.hash = '#/settings/devices'")
    expect(page.get_by_role("heading", name=re.compile("Other devices"))).to_be_visible()
    window.button("Sign out all other devices").click()
    expect(page.get_by_role("heading", name=re.compile("Other devices"))).to_have_count(0)
    expect(other.page.locator("[name=password]")).to_be_visible()
    page.evaluate("location.hash = '#/settings/account'")
    with page.expect_file_chooser() as chosen:
        window.label("Change your picture").click()
    chosen.value.set_files({"name": "me.png", "mimeType": "image/png", "buffer": base64.b64decode(PIXEL)})
    window.button("Use this picture").click()
    expect(page.locator(".set .av img")).to_have_attribute("src", re.compile("^/files/f_"))


def test_archive_mute_and_unread_marks_follow_the_user(town: dict[str, str], people: People, api: Api) -> None:
    window = people.window().sign_in("noor").chat("Open doors")
    again = people.window().sign_in("noor")
    expect(again.row("Open doors")).to_be_visible()
    more(window)
    window.option("Mark as unread").click()
    expect(again.row("Open doors").locator(".badge.mark")).to_have_count(1)
    window.row("Open doors").click(button="right")
    window.option("Mute").click()
    window.button("For 1 hour").click()
    expect(again.row("Open doors")).to_have_class(re.compile("muted"))
    window.row("Open doors").click(button="right")
    window.option("Archive").click()
    expect(window.row("Open doors")).to_have_count(0)
    expect(again.page.get_by_role("button", name="Archived, 1")).to_be_visible()
    again.page.get_by_role("button", name="Archived, 1").click()
    expect(again.row("Open doors")).to_be_visible()


def test_pinning_moves_at_once_and_signing_out_leaves_nothing(town: dict[str, str], people: People) -> None:
    window = people.window().sign_in("mira")
    expect(window.row("Room 38")).to_be_visible()
    window.row("Room 38").hover()
    window.page.mouse.move(100, 300)
    window.row("Room 38").click(button="right")
    window.option("Pin").click()
    expect(window.page.locator("a.conv .name").first).to_have_text("Room 38")
    tab = people.tab(window).open()
    expect(tab.row("Room 38")).to_be_visible()
    window.front().label("Your account and settings").click()
    window.option("Sign out").click()
    expect(window.page.locator("[name=password]")).to_be_visible()
    expect(tab.page.locator("[name=password]")).to_be_visible()
    expect(tab.page.locator("body")).not_to_contain_text("unsent messages are kept")
    left = window.page.evaluate("Object.keys(localStorage).filter((key) => key.includes('mira'))")
    assert left == []
