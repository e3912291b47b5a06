"""The server dies, the network goes, another window takes over: nothing written is lost, and the page says so."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser, expect

from harness.browser import PASSWORD, WAIT_MS, Api, People, Window
from harness.server_process import ServerProcess
from harness.two_phase import held_saves, two_phase_cluster


@pytest.fixture
def pair(people: People, api: Api) -> tuple[Window, Window]:
    api.register("ann", "Ann Lee")
    api.register("ben", "Ben Ode")
    api.send("ben", "ann", "First of all")
    return people.at_home("ann").chat("Ben Ode"), people.at_home("ben").chat("Ann Lee")


def try_now(*windows: Window) -> None:
    """Who does not want to wait for the next attempt; it may be under way by itself, and the button gone."""
    for window in windows:
        window.page.evaluate("document.querySelector('.connbar button')?.click()")


def test_a_killed_server_loses_nothing_that_was_written(pair: tuple[Window, Window], server: ServerProcess) -> None:
    ann, ben = pair
    for number in range(3):
        ann.say(f"Before {number}")
    ann.state("Before 2", "read")
    ann.field.fill("Half a sentence")
    server.kill()
    ann.field.press_sequentially(", finished")
    ann.field.press("Enter")
    for number in range(3):
        ann.say(f"While away {number}")
    ann.state("While away 2", "sending")
    expect(ann.page.locator(".connbar")).to_contain_text("Connecting again")
    expect(ann.page.locator(".who-head .st")).to_have_text("waiting for connection")
    ann.picture("reconnecting-1280-light")
    server.start()
    try_now(ann, ben)
    ann.state("While away 2", "read")
    expect(ann.page.locator(".connbar")).to_be_hidden()
    ben.sees("Half a sentence, finished").sees("While away 2")
    texts = ben.page.locator("li.msg .text").all_inner_texts()
    assert texts[-4:] == ["Half a sentence, finished", "While away 0", "While away 1", "While away 2"]
    server.check()


def test_offline_is_told_at_once_and_what_was_written_goes_out_in_order(pair: tuple[Window, Window]) -> None:
    ann, ben = pair
    ann.context.set_offline(True)
    bar = ann.page.locator(".connbar")
    expect(bar).to_contain_text("You are offline.")
    ann.say("Unsent one").say("Unsent two")
    expect(bar).to_contain_text("2 messages wait here and go out in order.")
    expect(ann.message("Unsent two").locator("[aria-label='Waiting for a connection']")).to_be_visible()
    ann.picture("offline-1280-light")
    ben.say("Meanwhile")
    ben.state("Meanwhile", "saved")
    ann.context.set_offline(False)
    ann.state("Unsent two", "read").sees("Meanwhile")
    expect(bar).to_be_hidden()
    assert ben.page.locator("li.msg .text").all_inner_texts()[-2:] == ["Unsent one", "Unsent two"]


def test_unsent_messages_survive_a_reload(pair: tuple[Window, Window], server: ServerProcess) -> None:
    ann, ben = pair
    server.kill()
    ann.say("Written in the dark")
    ann.state("Written in the dark", "sending")
    server.start()
    ann.page.reload()
    ann.state("Written in the dark", "read")
    ben.sees("Written in the dark")
    expect(ben.page.locator("li.msg", has_text="Written in the dark")).to_have_count(1)


def test_an_orderly_restart_is_called_a_restart(pair: tuple[Window, Window], server: ServerProcess) -> None:
    ann, ben = pair
    server.stop()
    expect(ann.page.locator(".connbar")).to_contain_text("The server is restarting.")
    server.start()
    try_now(ann, ben)
    ann.say("Back again")
    ann.state("Back again", "read")
    ben.sees("Back again")


@pytest.fixture
def strict(browser: Browser) -> Iterator[ServerProcess]:
    with ServerProcess(session__policy="single") as running:
        yield running


def test_a_window_that_lost_its_place_says_so_and_can_take_it_back(browser: Browser, strict: ServerProcess) -> None:
    api = Api(strict.address)
    api.register("kay", "Kay")
    people = People(browser, strict.address)
    desk = people.window().sign_in("kay")
    desk.page.wait_for_function("document.querySelector('.steps') !== null")
    phone = people.window(viewport={"width": 390, "height": 844}).sign_in("kay", PASSWORD)
    dialog = desk.page.get_by_role("alertdialog", name="Signed in somewhere else")
    expect(dialog).to_be_visible()
    desk.picture("elsewhere-1280-light")
    dialog.get_by_role("button", name="Use here").click()
    expect(phone.page.get_by_role("alertdialog", name="Signed in somewhere else")).to_be_visible()
    expect(dialog).to_have_count(0)
    tab = people.tab(desk).open()
    expect(desk.page.get_by_role("alertdialog", name="Open in another window")).to_be_visible()
    expect(tab.page.locator(".app")).to_be_visible()
    people.close()
    api.close()


@contextlib.contextmanager
def saving_held_up(store_url: str) -> Iterator[None]:
    """`held_saves` for a test that is no coroutine function."""
    is_held, may_go_on = threading.Event(), threading.Event()

    async def hold() -> None:
        async with held_saves(store_url):
            is_held.set()
            await asyncio.to_thread(may_go_on.wait)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(asyncio.run, hold())
        assert is_held.wait(WAIT_MS / 1000) or done.result()
        try:
            yield
        finally:
            may_go_on.set()
            done.result()


@pytest.mark.servers
def test_what_is_accepted_and_not_stored_is_shown_as_that_until_it_is_known_what_became_of_it(browser: Browser) -> None:
    """Two-phase with copies before they are saved."""
    patient = {"two_phase__owner_ttl_s": 120, "two_phase__deliver_before_saved": True}
    with (
        two_phase_cluster("postgresql", 1, **patient) as server,
        contextlib.closing(Api(server.address)) as api,
        contextlib.closing(People(browser, server.address)) as people,
    ):
        api.register("ida", "Ida")
        api.register("jan", "Jan")
        ida = people.window().sign_in("ida").chat_with_id("jan")
        jan = people.window().sign_in("jan").chat_with_id("ida")
        ida.say("So that the chat exists").state("So that the chat exists", "read")
        texts = [f"In two phases {number}" for number in range(3)]
        note = jan.page.locator("li.msg .note", has_text="Not stored yet")
        with saving_held_up(server.store_url):
            for text in texts:
                ida.say(text)
            for text in texts:
                ida.state(text, "accepted")
            accepted = ida.message(texts[0]).get_by_label("Accepted by the server, not stored yet")
            expect(accepted).to_be_visible()
            expect(note).to_have_count(3)
            ida.picture("accepted-1280-light")
            jan.picture("provisional-1280-light")
        ida.state(texts[-1], "read")
        expect(note).to_have_count(0)
        for window in (ida, jan):
            expect(window.page.locator("li.msg .text")).to_have_text(["So that the chat exists", *texts])

        with saving_held_up(server.store_url):
            ida.say("Too late").state("Too late", "accepted")
            expect(jan.message("Too late").locator(".note")).to_have_text("Not stored yet")
            api.call("jan", "POST", "/user/block", user_id="ida")
        expect(jan.page.locator("li.event")).to_have_text("A message was withdrawn: it could not be stored")
        expect(jan.page.get_by_text("Too late")).to_have_count(0)
        ida.state("Too late", "failed")
        expect(ida.message("Too late")).to_contain_text("Not sent: you cannot write to this person.")
        jan.picture("withdrawn-1280-light")
