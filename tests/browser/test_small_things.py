"""Details that people notice: what is said twice, moves, covers, or is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from harness.browser import Api, People, Window
from harness.server_process import ServerProcess


@pytest.fixture
def pia(people: People, api: Api) -> Window:
    for user_id, name in (("pia", "Pia Quist"), ("rob", "Rob Sand"), ("sue", "Sue Tarn")):
        api.register(user_id, name)
    api.send("rob", "pia", "First of all")
    return people.at_home("pia").chat("Rob Sand").sees("First of all")


def test_ticks_of_a_group_are_the_same_in_the_list_and_in_the_log(pia: Window, people: People, api: Api) -> None:
    group_id = api.create_group("pia", "Ticks", "rob", "sue")
    pia.chat("Ticks").say("Seen by both")
    for user_id in ("rob", "sue"):
        people.at_home(user_id).chat("Ticks").sees("Seen by both")
    pia.state("Seen by both", "read")
    pia.page.reload()
    pia.state("Seen by both", "read")
    expect(pia.row("Ticks").locator(".tick")).to_have_class(re.compile("read"))
    assert group_id


def test_an_answer_that_is_begun_survives_a_reload(pia: Window) -> None:
    pia.act("First of all", "Reply")
    pia.page.reload()
    expect(pia.page.locator(".replying")).to_contain_text("First of all")
    pia.say("This is the answer")
    expect(pia.message("This is the answer").locator(".quote")).to_contain_text("First of all")


def test_signing_out_in_one_tab_is_told_as_that_in_the_other(people: People, api: Api) -> None:
    api.register("ulf", "Ulf Vane")
    ulf = people.window().sign_in("ulf")
    other = people.tab(ulf).open()
    expect(other.page.locator(".app")).to_be_visible()
    ulf.front().open("/#/settings/account")
    ulf.button("Sign out").click()
    expect(ulf.page.locator("[name=user_id]")).to_be_visible()
    expect(other.page.locator("[name=user_id]")).to_be_visible()
    expect(other.page.locator("form")).not_to_contain_text("has ended")


def test_what_is_read_out_while_the_server_is_away_does_not_change_every_second(people: People) -> None:
    with ServerProcess() as server:
        api = Api(server.address)
        api.register("wes", "Wes Yor")
        api.close()
        others = People(people.browser, server.address)
        wes = others.window().sign_in("wes")
        server.kill()
        bar = wes.page.locator(".connbar")
        expect(bar).to_contain_text("Connecting again")
        again = bar.get_by_role("button")
        again.focus()
        heard = """() => new Promise((done) => {
            const bar = document.querySelector('.connbar'); const button = bar.querySelector('button'); let changes = 0;
            const isSilent = (node) =>
                (node.nodeType === 1 ? node : node.parentElement)?.closest('[aria-hidden=true]');
            const watch = new MutationObserver((all) => {
                changes += all.filter((one) => !isSilent(one.target)).length; });
            watch.observe(bar, {childList: true, characterData: true, subtree: true});
            setTimeout(() => done({changes, isSame: button === document.activeElement}), 3500); })"""
        assert wes.page.evaluate(heard) == {"changes": 0, "isSame": True}
        others.close()


def test_names_fit_with_letters_of_twice_the_size(pia: Window) -> None:
    pia.page.evaluate("document.documentElement.style.fontSize = '200%'")
    cut = """() => [...document.querySelectorAll('a.conv .name, .who-head .t')].filter((one) => {
        const box = one.getBoundingClientRect(); const row = one.closest('a, header').getBoundingClientRect();
        return one.clientHeight + 1 < one.scrollHeight
            || box.top < row.top - 1 || box.bottom > row.bottom + 1; }).length"""
    assert pia.page.evaluate(cut) == 0
    pia.page.evaluate("document.documentElement.style.fontSize = ''")


def test_one_day_is_named_once_and_a_note_covers_no_text_field(pia: Window, api: Api) -> None:
    for number in range(60):
        api.send("rob", "pia", f"Line {number}")
    pia.sees("Line 59")
    log = pia.page.locator(".log")
    log.hover()
    for _ in range(6):
        pia.page.mouse.wheel(0, -800)
        pia.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done(true)))")
    shown = """() => { const top = document.querySelector('.log').getBoundingClientRect().top;
        const near = (one) => { const box = one.getBoundingClientRect();
            return box.bottom > top && box.top < top + 72; };
        const days = [...document.querySelectorAll('.log .day')].filter(near).length;
        return days + (document.querySelector('.datechip.on') ? 1 : 0); }"""
    assert pia.page.evaluate(shown) <= 1
    pia.page.keyboard.press("Control+k")
    pia.page.keyboard.press("Escape")
    pia.label("Details").click()
    pia.label("Copy").click()
    toast = pia.page.locator(".toast")
    expect(toast).to_be_visible()
    under = toast.bounding_box()
    field = pia.page.locator(".composer").bounding_box()
    assert under is not None
    assert field is not None
    assert under["y"] + under["height"] <= field["y"]


def test_ones_own_call_to_all_is_no_mention_of_oneself(pia: Window, people: People, api: Api) -> None:
    api.create_group("pia", "Callers", "rob", "sue")
    pia.chat("Callers").say("@all come here")
    rob = people.at_home("rob").chat("Callers")
    expect(rob.message("come here")).to_have_class(re.compile("mentioned"))
    expect(pia.message("come here")).not_to_have_class(re.compile("mentioned"))
    expect(pia.message("come here").locator(".at.self")).to_have_count(0)


def test_american_hours_have_no_zero_and_a_change_of_language_keeps_the_focus(people: People, api: Api) -> None:
    api.register("zoe", "Zoe Aker")
    api.register("rob", "Rob Sand")
    api.send("rob", "zoe", "Good morning")
    zoe = people.window(locale="en-US").sign_in("zoe").chat("Rob Sand").sees("Good morning")
    expect(zoe.message("Good morning").locator("time")).to_have_text(re.compile(r"^[1-9]\d?:\d\d\s[AP]M$"))
    zoe.open("/#/settings/language")
    zoe.page.get_by_role("radio", name="中文").click()
    expect(zoe.page.locator("html")).to_have_attribute("lang", re.compile("zh"))
    expect(zoe.page.get_by_role("radio", name="中文")).to_be_focused()
