"""By keyboard, by screen reader, on narrow screens, in the dark: and pictures of all of it to look at."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from harness.browser import PICTURES, Api, People, Window, axe_source

RENEW_PICTURES = bool(os.environ.get("NEXO_PICTURES"))
NAMES = {
    "mira": "Mira Okafor",
    "jonas": "Jonas Weber",
    "lena": "Lena Petrova",
    "tomas": "Tomás Rivera",
    "aiko": "Aiko Tanaka",
    "priya": "Priya Nair",
    "noor": "Noor Haddad",
}
NARROW = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


@pytest.fixture(scope="module")
def town(server: Any) -> dict[str, str]:
    """A small museum before its opening; the ids of what the tests look for."""
    api = Api(server.address)
    for user_id, name in NAMES.items():
        api.register(user_id, name)
    rota = api.create_group("noor", "Kitchen Rota", "mira", "aiko")
    api.send("noor", rota, "Soup on Thursday, cake on Friday.")
    api.send("aiko", "mira", "The tide clock runs. It is beautiful.")
    api.send("tomas", "mira", "Could we move the tour to four?")
    watch = api.create_group("tomas", "Night Watch", "mira", "lena")
    for line in ("Doors locked", "Alarm set", "Doors locked, alarm set"):
        api.send("tomas", watch, line)
    week = api.create_group(
        "mira", "Opening Week", "jonas", "lena", "tomas", "aiko", "priya",
        introduction="Everything between now and the first visitor.",
    )  # fmt: skip
    api.call(
        "mira", "PUT", "/group/update", group_id=week, announcement="Doors open Saturday at ten. Badges at the desk."
    )
    api.call("mira", "POST", "/group/set_member_role", group_id=week, user_id="lena", role="admin")
    printer = api.send("jonas", week, "Printer says Wednesday at the earliest.")
    api.send("jonas", week, "I can ask the one in the harbour, they did the ferry posters.")
    api.send(
        "lena", week, "@Mira Okafor can you check the lamp list before three?",
        mentions=["mira"], reply_to=printer["server_msg_id"],
    )  # fmt: skip
    api.send("priya", "mira", "Which entrance is mine on Saturday?")
    for line in ("The lamps for the tide room came in. Eleven of twelve, one is cracked.",
                 "Photos and serial numbers are on the shared page: https://files.example.org/lamps"):  # fmt: skip
        api.send("jonas", "mira", line)
    dimmer = api.send("mira", "jonas", "I will call the supplier. Did they say anything about the dimmer?")
    api.send("jonas", "mira", "Works with the old rail. I tested it twice.", reply_to=dimmer["server_msg_id"])
    slip = api.send("mira", "jonas", "Wrong window, sorry")
    api.call("mira", "POST", "/msg/recall", server_msg_id=slip["server_msg_id"])
    api.send("mira", "jonas", "Then we hang them on Tuesday morning, before the school group comes.")
    api.send("jonas", "mira", "Good. I booked the lift for eight, and Lena brings the second ladder from the workshop.")
    api.call("mira", "POST", "/conversation/read", conversation_id="si_jonas:mira", seq=8)
    api.call("mira", "PUT", "/conversation/update", conversation_id="si_jonas:mira", pinned=True)
    api.call("mira", "PUT", "/conversation/update", conversation_id=f"sg_{watch}", recv_msg_opt=2)
    api.close()
    return {"week": week}


def everybody(people: People) -> Window:
    """Jonas and Priya are there too: presence and receipts need somebody."""
    people.window().sign_in("jonas").chat("Mira Okafor")
    people.window().sign_in("priya")
    return people.window()


def test_the_main_screens_have_no_serious_access_issue(town: dict[str, str], people: People) -> None:
    axe = axe_source()
    window = everybody(people).open()
    expect(window.page.get_by_role("heading", name="Welcome back")).to_be_visible()
    window.check_access(axe)
    window.picture("signin-1280-light")
    window.sign_in("mira")
    expect(window.row("Opening Week")).to_be_visible()
    window.check_access(axe)
    window.picture("list-1280-light")
    window.chat("Jonas Weber").say("Perfect. Bring gloves, the glass is fresh.").state("Perfect.", "read")
    window.check_access(axe)
    window.picture("chat-1280-light")
    window.chat("Opening Week")
    window.label("Details").click()
    expect(window.page.locator(".panel .member")).to_have_count(6)
    expect(window.page.locator(".newline")).to_be_visible()
    window.say("Checked. The list on the wall is now the right one.")
    window.check_access(axe)
    window.picture("group-1280-light")
    window.label("Manage Tomás Rivera").click()
    window.check_access(axe)
    window.picture("member-menu-1280-light")
    window.page.keyboard.press("Escape")
    window.label("New conversation").click()
    window.option("Create a group").click()
    window.dialog().get_by_label("Group name").fill("Lamp crew")
    window.dialog().get_by_role("option", name=re.compile("Jonas")).click()
    window.check_access(axe)
    window.picture("create-group-1280-light")


def test_the_dark_theme_follows_the_system_and_can_be_chosen(town: dict[str, str], people: People) -> None:
    axe = axe_source()
    window = people.window(color_scheme="dark").sign_in("mira")
    window.chat("Jonas Weber").sees("Works with the old rail")
    shade = "getComputedStyle(document.querySelector('.chat')).backgroundColor"
    dark = window.page.evaluate(shade)
    window.check_access(axe)
    window.picture("chat-1280-dark")
    expect(window.page.locator(".chat")).to_be_visible()
    for name in ("Light", "Dark"):
        window.label("Your account and settings").click()
        window.option("Settings").click()
        window.page.get_by_role("radio", name=name, exact=True).click()
        window.page.go_back()
        assert (window.page.evaluate(shade) == dark) == (name == "Dark")
    window.page.reload()
    expect(window.page.locator("html")).to_have_attribute("data-theme", "dark")
    window.chat("Opening Week")
    window.label("Details").click()
    expect(window.page.locator(".panel .member")).to_have_count(6)
    window.picture("group-1280-dark")


def test_narrow_screens_show_one_thing_at_a_time(town: dict[str, str], people: People) -> None:
    axe = axe_source()
    window = people.window(**NARROW).sign_in("mira")
    page = window.page

    def pictures(name: str) -> None:
        """In both themes; nothing hangs over the edge, and axe finds nothing."""
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        window.picture(f"{name}-390-light")
        page.emulate_media(color_scheme="dark")
        window.check_access(axe)
        window.picture(f"{name}-390-dark")
        page.emulate_media(color_scheme="light")

    expect(window.row("Jonas Weber")).to_be_visible()
    pictures("list")
    window.row("Jonas Weber").click()
    window.sees("Works with the old rail")
    expect(page.locator(".side")).to_be_hidden()
    pictures("chat")
    window.label("Details").click()
    expect(page.locator(".panel")).to_be_visible()
    expect(page.locator(".chat")).to_be_hidden()
    pictures("details")
    page.go_back()
    expect(page.locator(".chat")).to_be_visible()
    page.go_back()
    expect(page.locator(".side")).to_be_visible()
    window.row("Opening Week").click()
    window.label("Details").click()
    window.label("Manage Lena Petrova").click()
    pictures("member-menu")
    expect(window.option("Transfer ownership")).to_be_in_viewport()
    page.keyboard.press("Escape")
    page.go_back()
    window.field.fill("@")
    expect(page.get_by_role("listbox", name="Mention someone")).to_be_visible()
    pictures("mention")
    window.field.fill("")
    box = window.message("Printer says").locator(".bubble").bounding_box()
    assert box
    hold = f"""(on) => document.elementFromPoint({box["x"] + 20}, {box["y"] + 20}).dispatchEvent(
        new PointerEvent(on ? "pointerdown" : "pointerup", {{bubbles: true, pointerType: "touch", isPrimary: true}}))"""
    page.evaluate(hold, True)
    expect(window.option("Copy text")).to_be_visible()
    page.evaluate(hold, False)
    pictures("message-menu")


def test_everything_can_be_done_by_keyboard(town: dict[str, str], people: People) -> None:
    window = everybody(people).sign_in("mira")
    page = window.page
    expect(window.row("Jonas Weber")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("Jonas")
    page.keyboard.press("Enter")
    expect(window.field).to_be_focused()
    page.keyboard.type("By keyboard")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("in two lines")
    page.keyboard.press("Enter")
    window.state("in two lines", "read")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(window.message("in two lines")).to_be_focused()
    expect(window.message("in two lines")).to_have_attribute(
        "aria-label", re.compile(r"^You, .*By keyboard in two lines, Read$")
    )
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.press("r")  # in the menu
    expect(page.locator(".replying")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".replying")).to_be_hidden()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Delete")
    expect(window.dialog()).to_contain_text("Recall this message?")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_have_count(0)
    window.sees("You recalled a message")
    page.keyboard.press("Escape")
    expect(window.field).to_be_focused()
    page.keyboard.press("Control+.")
    expect(page.locator(".panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    before = page.url
    page.keyboard.press("Alt+ArrowDown")
    page.wait_for_function("(before) => location.href !== before", arg=before)
    page.keyboard.press("Control+/")
    expect(window.dialog()).to_contain_text("All shortcuts")


def test_arriving_messages_are_announced_once(town: dict[str, str], people: People, api: Api) -> None:
    window = people.window().sign_in("mira").chat("Jonas Weber")
    window.sees("Works with the old rail")
    expect(window.page.locator("#polite")).to_be_empty()
    api.send("jonas", "mira", "Can you hear me?")
    expect(window.page.locator("#polite")).to_have_text("Jonas Weber: Can you hear me?")


def test_the_picture_of_the_readme(town: dict[str, str], people: People, api: Api) -> None:
    jonas = people.window().sign_in("jonas").chat("Opening Week")
    priya = people.window().sign_in("priya").chat("Opening Week")
    window = people.window().sign_in("mira").chat("Opening Week")
    window.label("Details").click()
    expect(window.page.locator(".panel .member")).to_have_count(6)
    window.say("Checked. The list on the wall is now the right one.")
    jonas.sees("Checked.")
    priya.sees("Checked.")
    api.send("priya", town["week"], "Which entrance is mine on Saturday?")
    expect(window.message("Checked.").locator(".note")).to_have_text("Read by 2 of 5")
    window.sees("Which entrance")
    expect(window.row("Opening Week").locator(".badge")).to_have_count(0)
    jonas.field.press_sequentially("North")
    expect(window.page.locator(".typing-row.on")).to_be_visible()
    window.picture("chat")
    if RENEW_PICTURES:  # to be looked at before they are committed
        target = Path(__file__).parents[2] / "docs" / "images" / "chat.png"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(PICTURES / "chat.png", target)
