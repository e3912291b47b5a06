"""Texts that are not sent yet: one for all tabs and all devices of a user."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from harness.browser import Api, People, Window


@pytest.fixture
def wim(people: People, api: Api) -> Window:
    """Wim, in the chat with Xia."""
    api.register("wim", "Wim Bos")
    api.register("xia", "Xia Chen")
    api.register("yan", "Yan Poe")
    api.send("xia", "wim", "First of all")
    api.send("yan", "wim", "Another chat")
    return people.at_home("wim").chat("Xia Chen").sees("First of all")


def test_two_tabs_write_one_draft(wim: Window, people: People) -> None:
    beside = people.tab(wim).open().chat("Xia Chen").sees("First of all")
    beside.field.press_sequentially("From the second tab")
    wim.front()
    expect(wim.field).to_have_value("From the second tab")
    wim.field.press("End")
    wim.field.press_sequentially(", and the first")
    beside.front()
    expect(beside.field).to_have_value("From the second tab, and the first")
    beside.field.press("Enter")
    beside.sees("From the second tab, and the first")
    wim.front()
    expect(wim.field).to_have_value("")


def test_a_draft_and_what_it_answers_follow_to_another_device(wim: Window, people: People) -> None:
    phone = people.window(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).sign_in("wim")
    wim.act("First of all", "Reply")
    wim.field.press_sequentially("Half a sentence")
    row = phone.row("Xia Chen")
    expect(row).to_contain_text("Draft:")
    expect(row).to_contain_text("Half a sentence")
    row.tap()
    expect(phone.field).to_have_value("Half a sentence")
    phone.field.press("End")
    phone.field.press_sequentially(", and the rest")
    expect(wim.field).to_have_value("Half a sentence, and the rest")
    expect(wim.page.locator(".replying")).to_be_visible()
    wim.field.press("Enter")
    wim.sees("Half a sentence, and the rest")
    expect(phone.field).to_have_value("")


def test_what_was_written_without_a_connection_wins_and_reaches_the_others(wim: Window, people: People) -> None:
    other = people.window().sign_in("wim")
    wim.context.set_offline(True)
    expect(wim.page.locator(".chat .st")).to_have_text("waiting for connection")
    wim.field.press_sequentially("Written in a tunnel")
    wim.context.set_offline(False)
    expect(other.row("Xia Chen")).to_contain_text("Written in a tunnel")
    expect(wim.field).to_have_value("Written in a tunnel")
    wim.field.fill("")
    expect(other.row("Xia Chen")).not_to_contain_text("Draft:")
