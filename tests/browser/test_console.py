"""The console at /admin: users, groups, reports, where a message is, the audit log."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from harness.browser import PASSWORD, Api, People, Window, axe_source
from harness.server_process import ServerProcess


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[ServerProcess]:
    with ServerProcess() as running:
        done = running.run("user", "add", "boss", "--admin", "--password-stdin", text=f"{PASSWORD}\n")
        assert done.returncode == 0, done.stderr
        yield running


def console(people: People, section: str) -> Window:
    boss = people.window().open(f"/admin#/{section}")
    boss.page.fill("#user_id", "boss")
    boss.page.fill("#password", PASSWORD)
    boss.page.click("button[type=submit]")
    expect(boss.page.locator(".console main h1")).to_be_visible()
    return boss


def go(boss: Window, section: str) -> None:
    boss.page.locator(".console > nav").get_by_role("link", name=section, exact=True).click()
    expect(boss.page.locator(".console main h1")).to_have_text(section)


def find(boss: Window, words: str) -> None:
    boss.page.locator(".console main > header input").fill(words)


def test_a_user_is_found_disabled_and_enabled_and_the_audit_log_has_the_reason(people: People, api: Api) -> None:
    api.register("ann", "Ann Lund")
    ann = people.window().sign_in("ann")
    boss = console(people, "users")
    find(boss, "ann")
    boss.page.locator(".tbl tbody tr", has_text="Ann Lund").click()
    boss.button("Disable").click()
    expect(boss.dialog()).to_contain_text("Disable Ann Lund?")
    boss.dialog().get_by_label("Reason").fill("spam in the lobby")
    boss.dialog().get_by_role("button", name="Disable", exact=True).click()
    expect(boss.page.locator(".kv")).to_contain_text("Disabled: spam in the lobby")
    expect(ann.page.locator("[name=password]")).to_be_visible()  # signed out at once
    boss.check_access(axe_source())
    boss.button("Enable").click()
    expect(boss.page.locator(".kv")).to_contain_text("Active")
    boss.button("Reset password").click()
    expect(boss.page.locator(".card p.mono")).to_be_visible()
    go(boss, "Audit log")
    expect(boss.page.locator(".tbl")).to_contain_text("spam in the lobby")
    expect(boss.page.locator(".tbl")).to_contain_text("user:boss")


def test_a_report_is_read_with_the_original_and_resolved(people: People, api: Api) -> None:
    for user_id in ("bob", "cleo"):
        api.register(user_id)
    sent = api.send("bob", "cleo", "Rude words")
    api.call("cleo", "POST", "/msg/report", server_msg_id=sent["server_msg_id"], reason="insulting")
    api.call("bob", "POST", "/msg/recall", server_msg_id=sent["server_msg_id"])
    boss = console(people, "moderation")
    boss.page.locator(".tbl tbody tr", has_text="insulting").click()
    boss.button("Show the original").click()
    expect(boss.page.locator(".orig del")).to_have_text("Rude words")
    boss.button("Resolve").click()
    boss.dialog().get_by_label("Reason").fill("warned")
    boss.dialog().get_by_role("button", name="Resolve", exact=True).click()
    expect(boss.page.locator("main")).to_contain_text("No reports")
    go(boss, "Audit log")
    expect(boss.page.locator(".tbl")).to_contain_text(sent["server_msg_id"])


def test_where_a_message_is_and_why_it_went_no_further(people: People, api: Api) -> None:
    for user_id in ("dan", "eva"):
        api.register(user_id)
    sent = api.send("dan", "eva", "A secret text")
    boss = console(people, "trace")
    find(boss, sent["server_msg_id"])
    expect(boss.page.locator("ol.trace li")).to_have_count(5)
    row = boss.page.locator(".tbl tbody tr", has_text="eva")
    expect(row).to_contain_text("offline")
    expect(row.locator(".step5 .stop")).to_have_count(1)
    expect(boss.page.locator("main")).not_to_contain_text("A secret text")
    boss.check_access(axe_source())


def test_a_group_is_disabled_and_on_a_phone_the_sections_open_from_a_button(people: People, api: Api) -> None:
    for user_id in ("fay", "gus", "hal"):
        api.register(user_id)
    group = api.create_group("fay", "Lobby", "gus", "hal", join_policy="open")
    boss = console(people, "groups")
    find(boss, group)
    boss.button("Disable").click()
    boss.dialog().get_by_label("Reason").fill("quarrel")
    boss.dialog().get_by_role("button", name="Disable", exact=True).click()
    expect(boss.page.locator(".kv")).to_contain_text("Disabled")
    expect(boss.page.locator("dialog[open]")).to_have_count(0)
    boss.page.set_viewport_size({"width": 390, "height": 844})
    assert boss.page.evaluate("document.documentElement.scrollWidth") <= 390
    boss.page.locator(".console > nav a[aria-current]").click()
    boss.page.locator(".console > nav").get_by_role("link", name="Live status").click()
    expect(boss.page.locator("header .tag")).to_have_text(re.compile("Ready|Slow"))
