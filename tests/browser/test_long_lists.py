"""Ten thousand messages and five hundred conversations: the document stays small and nothing jumps."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from harness.browser import Api, Gate, People
from harness.many_messages import write_many
from harness.server_process import ServerProcess

MESSAGES = 10_000
CONVERSATIONS = 500
MISSED = 1200
ROWS_MAX = 203  # with two spacers and one row being exchanged


@pytest.fixture(scope="module")
def long_chat(server: ServerProcess) -> None:
    api = Api(server.address)
    api.register("una", "Una")
    api.register("vic", "Vic")
    api.call("vic", "GET", "/user/info")
    write_many(server, api.token("vic"), "una", MESSAGES)
    api.call("una", "POST", "/conversation/read", conversation_id="si_una:vic", seq=MESSAGES)
    api.close()


def rows(page: Page) -> int:
    count: int = page.evaluate("document.querySelectorAll('.column > li').length")
    return count


def test_ten_thousand_messages_are_scrolled_with_few_elements(long_chat: None, people: People, api: Api) -> None:
    una = people.window().sign_in("una")
    una.chat("Vic").sees(f"Line {MESSAGES} of many")
    page = una.page
    for _ in range(3 * MESSAGES // 100):
        page.evaluate("document.querySelector('.log').scrollTop -= 4000")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        assert rows(page) <= ROWS_MAX
        if page.locator("li.msg", has_text="Line 1 of many").count():
            break
    una.sees("Line 1 of many")
    nodes: int = page.evaluate("document.querySelectorAll('*').length")
    assert nodes < 5000
    una.message("Line 1 of many").scroll_into_view_if_needed()
    page.locator("[data-jump]").click()
    una.sees(f"Line {MESSAGES} of many")
    assert rows(page) <= ROWS_MAX
    una.say("And one more").state("And one more", "saved")


def test_history_that_is_loaded_above_does_not_move_what_is_read(long_chat: None, people: People) -> None:
    una = people.window().sign_in("una").chat("Vic")
    una.page.locator("li.msg").first.wait_for()
    moved: float = una.page.evaluate(
        """async () => {
          const log = document.querySelector(".log");
          const wait = (ms) => new Promise((done) => setTimeout(done, ms));
          for (let last = 0; last !== log.scrollHeight; await wait(100)) last = log.scrollHeight; // all has settled
          const before = log.scrollHeight;
          log.scrollTop = -before; // at the oldest: its day stands above it, and more is loaded
          const middle = log.getBoundingClientRect().top + log.clientHeight / 2;
          const seen = [...document.querySelectorAll("li.msg")].find((one) => one.getBoundingClientRect().top > middle);
          const { key } = seen.dataset;
          const top = seen.getBoundingClientRect().top;
          for (let tries = 0; tries < 300 && log.scrollHeight === before; tries += 1) await wait(20);
          if (log.scrollHeight === before) return NaN;
          await wait(100);
          return document.querySelector(`[data-key="${key}"]`).getBoundingClientRect().top - top;
        }"""
    )
    assert abs(moved) < 2


def test_messages_that_arrive_below_do_not_move_what_is_read(long_chat: None, people: People, api: Api) -> None:
    una = people.window().sign_in("una").chat("Vic")
    una.page.locator("li.msg").first.wait_for()
    page = una.page
    page.evaluate("document.querySelector('.log').scrollTop = -1000")
    place = "() => document.querySelectorAll('li.msg')[30].getBoundingClientRect().top"
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    key: str = page.evaluate("document.querySelectorAll('li.msg')[30].dataset.key")
    before: float = page.evaluate(place)
    for number in range(5):
        api.send("vic", "una", f"Fresh {number}")
    expect(page.locator("[data-jump=new]")).to_contain_text("5 new messages")
    after: float = page.evaluate(
        "(key) => document.querySelector(`[data-key='${key}']`).getBoundingClientRect().top", key
    )
    assert abs(after - before) < 2


@pytest.mark.parametrize("arrived", [0, 100, 450])
def test_the_first_unread_of_many_is_shown(
    arrived: int, people: People, api: Api, long_chat: None, server: ServerProcess
) -> None:
    """Whatever part of them is here when the conversation is opened: the rest that rushes past is not read."""
    reader = f"wim{arrived}"
    api.register(reader, "Wim")
    write_many(server, api.token("vic"), reader, MISSED)
    window = people.window()
    gate = Gate(window, arrived)
    window.sign_in(reader)
    window.row("Vic").wait_for()
    gate.wait_until_shut()
    window.chat("Vic")
    expect(window.page.locator(".connbar")).to_have_text(re.compile(r"^Catching up: \d+ of 1[12]\d\d messages"))
    if arrived:
        expect(window.message("Line 1 of many")).to_be_in_viewport()
    gate.open()
    expect(window.message("Line 1 of many")).to_be_in_viewport()
    expect(window.page.locator(".newline")).to_have_text(f"{MISSED} new messages")
    expect(window.page.locator("[data-jump=new]")).to_be_visible()
    expect(window.page.locator(".connbar")).to_be_hidden()
    expect(window.message("Line 1 of many")).to_be_in_viewport()
    assert api.call(reader, "GET", "/conversation/list")["conversations"][0]["unread"] > MISSED - 100


def test_what_was_missed_while_away_is_not_rushed_through(
    people: People, api: Api, long_chat: None, server: ServerProcess
) -> None:
    """An open conversation stays where it was, unless what came fits below it."""
    api.register("xia", "Xia")
    api.send("vic", "xia", "Before")
    api.call("xia", "POST", "/conversation/read", conversation_id="si_vic:xia", seq=1)
    xia = people.window().sign_in("xia").chat("Vic").sees("Before")
    xia.context.set_offline(True)
    expect(xia.page.locator(".connbar")).to_be_visible()
    write_many(server, api.token("vic"), "xia", 800)
    xia.context.set_offline(False)
    expect(xia.page.locator("[data-jump=new]")).to_be_visible()
    expect(xia.page.locator(".newline")).to_have_text("800 new messages")
    expect(xia.page.locator(".connbar")).to_be_hidden()
    expect(xia.message("Before")).to_be_in_viewport()
    assert api.call("xia", "GET", "/conversation/list")["conversations"][0]["unread"] > 700
    xia.page.locator("[data-jump=new]").click()
    expect(xia.message("Line 800 of many")).to_be_in_viewport()
    expect(xia.row("Vic").locator(".badge")).to_have_count(0)


def test_five_hundred_conversations_scroll_with_few_elements(people: People, api: Api) -> None:
    api.register("hub", "Hub")
    api.register("one", "One")
    api.register("two", "Two")
    api.call("hub", "GET", "/user/info")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: api.create_group("hub", f"Room {number}", "one", "two"), range(CONVERSATIONS)))
    hub = people.window().sign_in("hub")
    page = hub.page
    expect(page.locator("a.conv").first).to_be_visible()
    scroller = "document.querySelector('.side nav')"
    for _ in range(60):
        page.evaluate(f"{scroller}.scrollTop += 3000")
        page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
        assert page.locator("a.conv").count() < 60
        if page.evaluate(f"{scroller}.scrollHeight") >= CONVERSATIONS * 64:
            break
    assert page.evaluate(f"{scroller}.scrollHeight") >= CONVERSATIONS * 64
    page.keyboard.press("Control+k")
    page.keyboard.type("Room 4")
    expect(page.locator("a.conv").first).to_be_visible()
    names = page.locator("a.conv .name").all_inner_texts()
    assert names
    assert all("Room 4" in name for name in names)
