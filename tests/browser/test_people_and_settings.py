"""Names in groups, when people were here, being added, a new password by a code, and settings of the page."""

from __future__ import annotations

import re
import subprocess

import pytest
from playwright.sync_api import expect

from harness.browser import PASSWORD, Api, People, Window
from harness.server_process import NEXO, ServerProcess

AT_A_TIME = re.compile(r"^last seen (just now|at \d\d:\d\d)$")


@pytest.fixture
def fay(people: People, api: Api) -> Window:
    for user_id, name in (("fay", "Fay Holm"), ("gus", "Gus Iken"), ("hal", "Hal Jung")):
        api.register(user_id, name)
    return people.at_home("fay")


def test_being_added_to_a_group_shows_at_once(fay: Window, api: Api) -> None:
    api.create_group("gus", "Made with me", "fay", "hal")
    expect(fay.row("Made with me")).to_contain_text("Gus added you to the group")
    api.register("ivo", "Ivo")
    group_id = api.create_group("gus", "Joined later", "hal", "ivo")
    api.call("gus", "POST", "/group/invite", group_id=group_id, user_ids=["fay"])
    expect(fay.row("Joined later")).to_contain_text("Gus added you to the group")


def test_when_someone_was_here_last(fay: Window, people: People, api: Api) -> None:
    api.send("gus", "fay", "I was here")
    gus = people.window().sign_in("gus")
    fay.chat("Gus Iken").sees("I was here")
    status = fay.page.locator(".chat .who-head .st")
    expect(status).to_have_text("online")
    gus.page.close()
    expect(status).to_have_text(AT_A_TIME)
    fay.label("Details").click()
    expect(fay.page.locator(".panel .pgroup p")).to_have_text(AT_A_TIME)
    api.call("gus", "PUT", "/user/update", privacy={"last_seen": "nobody"})
    fay.page.reload()
    expect(status).to_have_text("offline")
    api.call("gus", "PUT", "/user/update", privacy={"last_seen": "everybody"})


def test_a_name_of_ones_own_in_a_group(fay: Window, people: People, api: Api) -> None:
    group_id = api.create_group("gus", "Choir", "fay", "hal")
    api.send("hal", group_id, "Evening all")
    fay.chat("Choir").sees("Evening all")
    gus = people.at_home("gus").chat("Choir").sees("Evening all")
    fay.label("Details").click()
    fay.page.locator(".panel").get_by_role("button", name="Your name in this group").click()
    fay.dialog().locator("[name=group_nickname]").fill("Second alto")
    fay.dialog().get_by_role("button", name="Save").click()
    expect(fay.page.locator(".panel .member", has_text="Second alto (you)")).to_contain_text("Fay Holm")
    fay.say("It is me")
    gus.sees("It is me")
    gus.label("Details").click()
    expect(gus.page.locator(".panel .member", has_text="Second alto")).to_be_visible()
    expect(gus.page.locator("li.msg", has_text="It is me").locator(".from")).to_have_text("Second alto")
    gus.field.press_sequentially("@Sec")
    gus.page.get_by_role("option", name=re.compile("Second alto")).click()
    gus.field.press("Enter")
    expect(fay.message("@Second alto")).to_have_class(re.compile("mentioned"))
    gus.page.locator(".panel .member .who", has_text="Second alto").click()
    expect(gus.dialog()).to_contain_text("Name in this group")
    expect(gus.dialog()).to_contain_text("Invited by")


def test_messages_that_disappear_are_set_in_the_details(fay: Window, people: People, api: Api) -> None:
    api.send("hal", "fay", "For the record")
    hal = people.at_home("hal").chat("Fay Holm").sees("For the record")
    fay.chat("Hal Jung").label("Details").click()
    fay.page.locator(".panel").get_by_role("button", name=re.compile("^Disappearing messages")).click()
    fay.option("After 1 day").click()
    expect(fay.page.locator(".panel")).to_contain_text("1 day")
    expect(hal.page.locator(".event", has_text="Fay set messages to disappear after 1 day")).to_be_visible()
    fay.say("Only for a while")
    expect(hal.message("Only for a while").locator(".expires")).to_be_visible()


def test_a_new_password_by_a_code(people: People, server: ServerProcess, api: Api) -> None:
    api.register("kai", "Kai Lo")
    command = [str(NEXO), "user", "reset", "kai", "--data", str(server.data)]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    kai = people.window()
    kai.open("/")
    kai.page.get_by_role("link", name="Forgot your password?").click()
    kai.page.fill("[name=code]", "nonsense")
    kai.page.fill("[name=password]", "another horse")
    kai.page.click("button[type=submit]")
    expect(kai.page.locator("form")).to_contain_text("This code does not work any more")
    kai.open(f"/#/reset/{code}")
    expect(kai.page.locator("[name=code]")).to_have_value(code)
    kai.page.fill("[name=password]", "another horse")
    kai.page.click("button[type=submit]")
    expect(kai.page.locator("form")).to_contain_text("Your password is set")
    assert code not in kai.page.url
    kai.page.fill("[name=user_id]", "kai")
    kai.page.fill("[name=password]", PASSWORD)
    kai.page.click("button[type=submit]")
    expect(kai.page.get_by_role("alert")).to_contain_text("do not match")
    kai.page.fill("[name=password]", "another horse")
    kai.page.click("button[type=submit]")
    expect(kai.page.locator(".app")).to_be_visible()


def test_settings_of_the_page_are_kept(fay: Window, api: Api) -> None:
    api.send("hal", "fay", "Large, please")
    fay.chat("Hal Jung").sees("Large, please")
    size = "() => Number.parseFloat(getComputedStyle(document.querySelector('.msg .bubble')).fontSize)"
    usual = fay.page.evaluate(size)
    address = fay.page.url
    fay.open("/#/settings/appearance")
    fay.page.get_by_role("radio", name="Large").click()
    fay.page.get_by_role("radio", name="2:36 PM").or_(fay.page.get_by_role("radio", name="2:36 pm")).click()
    fay.page.get_by_role("switch", name=re.compile("^Enter sends")).click()
    fay.page.get_by_role("switch", name=re.compile("^Turn")).click()
    fay.page.get_by_role("switch", name=re.compile("^Less motion")).click()
    fay.page.goto(address)
    fay.page.reload()
    fay.sees("Large, please")
    assert fay.page.evaluate(size) > usual
    expect(fay.message("Large, please").locator("time")).to_have_text(re.compile(r"^\d{1,2}:\d\d [ap]m$", re.I))
    assert fay.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--m-base').trim()") == "0ms"
    fay.field.press_sequentially("Fine :) and")
    fay.field.press("Enter")
    fay.field.press_sequentially("good")
    expect(fay.field).to_have_value("Fine 🙂 and\ngood")
    fay.field.press("Control+Enter")
    fay.sees("good")
    for key in ("size", "hours", "enterSends", "smileys", "motion"):
        fay.page.evaluate("(key) => localStorage.removeItem(`nexo.${key}`)", key)


def test_the_list_says_what_was_written_without_its_marks(fay: Window, api: Api) -> None:
    api.send("gus", "fay", "See **the plan**, `now`, at [our page](https://example.com/plan)")
    expect(fay.row("Gus Iken").locator(".prev")).to_have_text("See the plan, now, at our page")
    api.send("hal", "fay", "شكرا، سأكون هناك.")
    preview = fay.row("Hal Jung").locator(".prev")
    expect(preview).to_have_text("شكرا، سأكون هناك.")
    assert preview.evaluate("(one) => getComputedStyle(one).direction") == "rtl"
