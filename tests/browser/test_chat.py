"""Two people in one chat, through everything a chat can do."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from harness.browser import Api, People, Window
from harness.server_process import ServerProcess


@pytest.fixture
def pair(people: People, api: Api) -> tuple[Window, Window, str, str]:
    """Ann and Ben, who have written to each other before, both looking at their chat; and their ids."""
    api.register("ann", "Ann Lee")
    api.register("ben", "Ben Ode")
    api.send("ben", "ann", "First of all")
    windows = people.at_home("ann"), people.at_home("ben")
    windows[0].chat("Ben Ode").sees("First of all")
    windows[1].chat("Ann Lee").sees("First of all")
    return *windows, "ann", "ben"


def test_sending_shows_only_what_the_server_said(pair: tuple[Window, Window, str, str]) -> None:
    ann, ben, _, _ = pair
    ben.page.goto(f"{ben.address}/#/")  # ben looks at nothing
    ann.say("One")
    ann.state("One", "delivered")
    expect(ann.message("One").locator("[aria-label=Delivered]")).to_be_visible()
    expect(ben.row("Ann Lee").locator(".badge")).to_have_text("1 unread")
    assert ben.page.title() == "(1) Nexo"
    ben.chat("Ann Lee").sees("One")
    ann.state("One", "read")
    expect(ben.row("Ann Lee").locator(".badge")).to_have_count(0)
    expect(ben.page).to_have_title("Ann Lee · Nexo")


def test_typing_and_presence_are_seen_and_end(pair: tuple[Window, Window, str, str]) -> None:
    ann, ben, _, _ = pair
    expect(ann.page.locator(".who-head .st")).to_have_text("online")
    ben.field.press_sequentially("Hm")
    expect(ann.page.locator(".typing-row.on")).to_contain_text("Ben is typing")
    expect(ann.page.locator(".who-head .st")).to_have_text("typing…")
    ben.field.fill("")
    expect(ann.page.locator(".who-head .st")).to_have_text("online")
    ben.page.close()
    expect(ann.page.locator(".who-head .st")).to_have_text("offline")


def test_replies_quote_and_lead_back(pair: tuple[Window, Window, str, str]) -> None:
    ann, ben, _, _ = pair
    ann.message("First of all").hover()
    ann.message("First of all").get_by_role("button", name="Reply").click()
    expect(ann.page.locator(".replying")).to_contain_text("Reply to Ben Ode")
    ann.say("And second")
    expect(ann.page.locator(".replying")).to_be_hidden()
    ben.sees("And second")
    quote = ben.message("And second").locator(".quote")
    expect(quote).to_contain_text("You")
    expect(quote).to_contain_text("First of all")
    quote.click()
    expect(ben.page.locator("li.msg.flash")).to_contain_text("First of all")


def test_links_are_links_and_markup_is_text(pair: tuple[Window, Window, str, str]) -> None:
    ann, ben, _, _ = pair
    ann.say("<img src=x onerror=alert(1)> see https://example.org/a_(b). and javascript:alert(1)\nnext line")
    bubble = ben.message("<img src=x").locator(".bubble")
    expect(bubble).to_contain_text("<img src=x onerror=alert(1)>")
    expect(bubble.locator("img")).to_have_count(0)
    link = bubble.locator("a")
    expect(link).to_have_count(1)
    expect(link).to_have_attribute("href", "https://example.org/a_(b)")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(link).to_have_attribute("target", "_blank")


def test_pictures_by_their_address_are_shown(pair: tuple[Window, Window, str, str], api: Api) -> None:
    ann, ben, _, _ = pair
    api.send("ann", "ben", {"url": f"{ann.address}/web/img/icon.svg", "name": "Our mark"}, msg_type=2)
    expect(ben.message("Our mark").locator("img")).to_have_js_property("complete", True)
    expect(ben.row("Ann Lee")).to_contain_text("Photo: Our mark")
    ann.state("Our mark", "read")


def test_recalling_takes_the_text_away_everywhere(pair: tuple[Window, Window, str, str]) -> None:
    ann, ben, _, _ = pair
    ann.say("Never mind this")
    ben.sees("Never mind this")
    ben.message("Never mind this").hover()
    ben.message("Never mind this").get_by_role("button", name="Reply").click()
    ben.say("But I do")
    ann.sees("But I do").act("Never mind this", "Recall")
    ann.dialog().get_by_role("button", name="Recall", exact=True).click()
    ann.sees("You recalled a message")
    ben.sees("Ann Lee recalled a message")
    expect(ben.page.locator("li.msg", has_text="Never mind this")).to_have_count(0)
    ben.page.reload()
    ben.sees("Ann Lee recalled a message")
    expect(ben.message("But I do").locator(".quote")).to_contain_text("Recalled or unavailable message")


def test_who_is_blocked_cannot_write_and_is_told(pair: tuple[Window, Window, str, str]) -> None:
    ann, ben, _, _ = pair
    ann.label("Details").click()
    ann.button("Block").click()
    ann.dialog().get_by_role("button", name="Block", exact=True).click()
    expect(ann.page.locator(".why")).to_contain_text("You blocked this person.")
    ben.say("Are you there?")
    ben.state("Are you there?", "failed")
    expect(ben.message("Are you there?")).to_contain_text("Not sent: you cannot write to this person.")
    ann.page.locator(".why").get_by_role("button", name="Unblock").click()
    expect(ann.field).to_be_visible()
    ben.message("Are you there?").get_by_role("button", name="Try again").click()
    ann.sees("Are you there?")
    ben.state("Are you there?", "read")


def test_a_failed_message_can_be_deleted(pair: tuple[Window, Window, str, str], api: Api) -> None:
    _, ben, ann_id, ben_id = pair
    api.call(ann_id, "POST", "/user/block", user_id=ben_id)
    ben.say("Lost")
    ben.state("Lost", "failed")
    ben.message("Lost").get_by_role("button", name="Delete").click()
    expect(ben.page.locator("li.msg", has_text="Lost")).to_have_count(0)
    ben.page.reload()
    ben.sees("First of all")
    expect(ben.page.locator("li.msg", has_text="Lost")).to_have_count(0)
    api.call(ann_id, "POST", "/user/unblock", user_id=ben_id)


def test_drafts_are_kept(pair: tuple[Window, Window, str, str], api: Api) -> None:
    ann, _, ann_id, _ = pair
    third = f"{ann_id}x"
    api.register(third, "Cy Third")
    api.send(third, ann_id, "Hello from Cy")
    ann.field.fill("could we move the tour to")
    ann.chat("Cy Third")
    expect(ann.row("Ben Ode")).to_contain_text("Draft: could we move the tour to")
    ann.page.reload()
    ann.chat("Ben Ode")
    expect(ann.field).to_have_value("could we move the tour to")


def test_pinning_muting_and_hiding(pair: tuple[Window, Window, str, str], api: Api) -> None:
    ann, ben, ann_id, _ = pair
    fourth = f"{ann_id}y"
    api.register(fourth, "Dee Fourth")
    api.send(fourth, ann_id, "Hello from Dee")
    expect(ann.page.locator("a.conv .name").first).to_have_text("Dee Fourth")
    ann.label("Details").click()
    ann.page.get_by_role("switch", name="Pin to the top").click()
    ann.page.mouse.move(640, 400)
    expect(ann.page.locator("a.conv .name").first).to_have_text("Ben Ode")
    ann.button("Mute notifications").click()
    ann.option("Until I turn it on").click()
    expect(ann.page.locator(".panel [data-part=mute]")).to_contain_text("until you turn it on")
    ann.chat("Dee Fourth")
    ben.say("Psst")
    expect(ann.row("Ben Ode").locator(".badge.muted")).to_have_text("1 unread")
    ann.row("Ben Ode").click(button="right")
    ann.option("Hide").click()
    expect(ann.row("Ben Ode")).to_have_count(0)
    ben.say("I am back")
    expect(ann.row("Ben Ode").locator(".badge.muted")).to_have_text("2 unread")


def test_two_tabs_of_one_person_show_the_same(pair: tuple[Window, Window, str, str], people: People) -> None:
    ann, ben, _, _ = pair
    tab = people.tab(ann).open()
    tab.chat("Ben Ode").say("From the second tab")
    tab.state("From the second tab", "read")
    ann.front().sees("From the second tab").say("From the first")
    ann.state("From the first", "read")
    ben.sees("From the first")
    tab.front().sees("From the first")
    expect(tab.page.locator("li.msg", has_text="From the")).to_have_count(2)


def test_unread_messages_are_marked_and_read_when_seen(people: People, api: Api) -> None:
    api.register("una", "Una")
    api.register("vic", "Vic")
    for number in range(1, 41):
        api.send("vic", "una", f"Line {number}")
    una = people.window().sign_in("una")
    expect(una.row("Vic").locator(".badge")).to_have_text("40 unread")
    una.chat("Vic")
    expect(una.page.locator(".newline")).to_have_text("40 new messages")
    expect(una.page.locator(".newline")).to_be_in_viewport()
    una.sees("Line 1")
    expect(una.row("Vic").locator(".badge")).not_to_have_text("40")
    jump = una.page.locator("[data-jump=new]")
    expect(jump).to_contain_text("new messages")
    jump.click()
    una.sees("Line 40")
    expect(una.row("Vic").locator(".badge")).to_have_count(0)
    una.chat_with_id("vic")
    assert not api.call("una", "GET", "/conversation/list")["conversations"][0]["unread"]


def test_notifications_tell_of_messages_elsewhere(people: People, api: Api) -> None:
    api.register("nat", "Nat")
    api.register("oli", "Oli")
    window = people.window(permissions=["notifications"], service_workers="block")  # windows notify alone
    window.page.add_init_script(
        "window.told = []; class N { constructor(title, more) { window.told.push([title, more.body]); } close() {} }"
        "N.permission = 'granted'; N.requestPermission = async () => 'granted'; window.Notification = N;"
    )
    window.sign_in("nat")
    window.page.evaluate("location.hash = '#/settings/notifications'")
    window.page.get_by_role("switch", name="Notifications").click()
    expect(window.page.locator(".set")).to_contain_text("You will be told of new messages")
    api.send("oli", "nat", "Look here")
    expect(window.row("Oli").locator(".badge")).to_have_text("1 unread")
    told = window.page.evaluate(
        "() => new Promise((done) => { const look = () => (told.length ? done(told) : setTimeout(look, 20)); look(); })"
    )
    assert told == [["Oli", "Look here"]]


def test_the_profile_and_the_password_can_be_changed(people: People, api: Api) -> None:
    api.register("pat", "Pat")
    window = people.window().sign_in("pat")
    window.label("Your account and settings").click()
    window.option("Profile").click()
    window.page.locator(".set .prow", has_text="Name").click()
    window.dialog().get_by_label("Name").fill("Patricia Lund")
    window.dialog().get_by_role("button", name="Save").click()
    window.toast("Profile saved")
    expect(window.label("Your account and settings").locator("b")).to_have_attribute("data-letters", "PL")
    other = people.window().sign_in("pat")
    window.page.locator(".set .prow", has_text="Change password").click()
    window.dialog().get_by_label("Present password").fill("wrong one")
    window.dialog().get_by_label("New password").fill("battery staple")
    window.dialog().get_by_role("button", name="Change password").click()
    expect(window.dialog().get_by_role("alert")).to_contain_text("That is not your present password.")
    window.dialog().get_by_label("Present password").fill("correct horse")
    window.dialog().get_by_role("button", name="Change password").click()
    window.toast("Password changed")
    expect(other.page.get_by_text("Your session has ended.")).to_be_visible()
    other.sign_in("pat", "battery staple")


def test_replaced_words_and_the_end_of_recalling_are_told(browser: Browser, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("seven\n")
    rules = {"filter__file": words, "recall__window_s": 2}
    with ServerProcess(**rules) as server, contextlib.closing(Api(server.address)) as api:
        people = People(browser, server.address)
        api.register("ron", "Ron")
        api.register("sue", "Sue")
        ron = people.window().sign_in("ron").chat_with_id("sue")
        ron.say("We leave at seven sharp").state("We leave at *** sharp", "saved")
        message = ron.message("We leave at *** sharp")
        expect(message).to_contain_text("The server replaced some words")
        ron.page.wait_for_timeout(2100)
        message.hover()
        message.get_by_role("button", name="More", exact=True).click()
        expect(ron.option("Copy text")).to_be_visible()
        expect(ron.option("Recall")).to_have_count(0)
        ron.page.keyboard.press("Escape")
        message.focus()
        ron.page.keyboard.press("Delete")
        expect(ron.dialog()).to_contain_text("Delete for you?")  # it is too late for the others
        people.close()
