"""The live page as an administrator sees it."""

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


def sign_in(window: Window, user_id: str) -> Window:
    window.open("/admin")
    window.page.fill("#user_id", user_id)
    window.page.fill("#password", PASSWORD)
    window.page.click("button[type=submit]")
    return window


def test_an_administrator_sees_how_the_server_is_doing(people: People, api: Api) -> None:
    for user_id in ("ann", "ben"):
        api.register(user_id)
    for i in range(5):
        api.send("ann", "ben", f"{i}")
    boss = sign_in(people.window(), "boss")
    expect(boss.page.locator("header .tag")).to_have_text(re.compile("Ready|Slow"))
    expect(boss.page.locator(".kpi")).to_have_count(4)
    expect(boss.page.locator(".stages b")).to_have_text(["Queue", "Write", "Ack", "Push"])
    expect(boss.page.locator(".tbl tbody tr", has_text="Waiting to be written")).to_contain_text("20,000")
    expect(boss.page.locator("svg.chart[role=img]").first).to_have_attribute("aria-label", re.compile("Connections"))
    assert "ann" not in boss.page.locator("main").inner_text()
    boss.page.reload()  # the tab keeps the session
    expect(boss.page.locator(".kpi")).to_have_count(4)
    boss.check_access(axe_source())


def test_pause_freezes_the_page_and_signing_out_leads_to_the_door(people: People) -> None:
    boss = sign_in(people.window(), "boss")
    asked: list[str] = []
    boss.page.on("request", lambda request: asked.append(request.url) if "/admin/stats" in request.url else None)
    boss.button("Pause").click()
    expect(boss.button("Resume")).to_be_focused()
    asked.clear()
    boss.page.wait_for_timeout(2500)
    assert asked == []
    with boss.page.expect_request(re.compile("/admin/stats")):
        boss.button("Resume").click()
    boss.button("Sign out").click()
    expect(boss.page.locator("#user_id")).to_be_visible()
    boss.page.reload()
    expect(boss.page.locator("#user_id")).to_be_visible()


def test_others_are_turned_away_and_told_why(people: People, api: Api) -> None:
    api.register("cid")
    cid = sign_in(people.window(), "cid")
    expect(cid.page.get_by_role("alert")).to_contain_text("not an administrator")
    expect(cid.page.locator("#user_id")).to_be_visible()
    cid.page.fill("#user_id", "boss")
    cid.page.fill("#password", "wrong password")
    cid.page.click("button[type=submit]")
    expect(cid.page.get_by_role("alert")).to_contain_text("wrong")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone_and_speaks_chinese(people: People, scheme: str) -> None:
    size = {"width": 390, "height": 844}
    boss = sign_in(people.window(viewport=size, locale="zh-CN", color_scheme=scheme), "boss")
    expect(boss.page.locator("header .tag")).to_have_text(re.compile("就绪|缓慢"))
    assert boss.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert boss.page.evaluate("document.documentElement.lang") == "zh-Hans"
    boss.button("English").click()
    expect(boss.page.locator("header h1")).to_have_text("Live status")


def test_a_server_that_does_not_answer_any_more_is_shown_as_such(browser: Browser) -> None:
    with ServerProcess() as server:
        server.run("user", "add", "boss", "--admin", "--password-stdin", text=f"{PASSWORD}\n")
        people = People(browser, server.address)
        boss = sign_in(people.window(), "boss")
        expect(boss.page.locator(".kpi")).to_have_count(4)
        server.kill()
        expect(boss.page.locator(".facts .stale")).to_contain_text("No answer since")
        people.close()
