"""Calls of the web client whose picture and sound are measured on the other side: directly, through a real TURN server
with every other way blocked, with another kind of device, and over a network that is gone for a while."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from harness.browser import PASSWORD, Api, People, Window, chromium
from harness.browser_calls import ALLOWED, FAKE_DEVICES, arrived, sees_and_hears, watch
from harness.call_peer import blocking_peer
from harness.coturn import Coturn
from harness.network import Network
from harness.server_process import ServerProcess

CUT_MS = 5000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(*FAKE_DEVICES) as running:
        yield running


@pytest.fixture(scope="module")
def coturn() -> Iterator[Coturn]:
    with Coturn() as running:
        yield running


@pytest.fixture(scope="module")
def server(browser: Browser, coturn: Coturn) -> Iterator[ServerProcess]:
    with ServerProcess(calls__turn=coturn.url(), calls__turn_secret=coturn.secret) as running:
        yield running


@pytest.fixture(autouse=True)
def known(api: Api) -> None:
    api.register("ann", "Ann Lund")
    api.register("ben", "Ben Ode")
    api.send("ann", "ben", "Hello")


def call(ann: Window, ben: Window) -> None:
    ann.label("Video call").click()
    ben.page.locator(".ringcard").get_by_role("button", name="Accept").click()
    for window in (ann, ben):
        expect(window.page.locator(".callstage [role=status]")).to_have_text(re.compile(r"^\d+:\d\d$"))


@pytest.mark.parametrize("policy", ["all", "relay"])
def test_picture_and_sound_arrive(people: People, policy: str) -> None:
    ann = watch(people.window(**ALLOWED), policy).sign_in("ann").chat("Ben Ode")
    ben = watch(people.window(**ALLOWED), policy).sign_in("ben").chat("Ann Lund")
    call(ann, ben)
    for window in (ann, ben):
        got = sees_and_hears(window)
        assert ("relay" in (got.own, got.other)) == (policy == "relay"), got
        assert policy == "all" or got.own == got.other == "relay"
    ann.button("End").click()
    expect(ben.page.locator(".callstage")).to_have_count(0)


def test_a_device_without_a_browser_is_called_and_calls(people: People, server: ServerProcess) -> None:
    ann = watch(people.window(**ALLOWED)).sign_in("ann").chat("Ben Ode")
    with blocking_peer(server.address, "ben", PASSWORD) as ben:
        ann.label("Video call").click()
        ben.do(ben.accept_next())
        sees_and_hears(ann)
        ben.do(ben.peer.sees_and_hears())
        ben.do(ben.hang_up())
        ann.toast("Call ended")
    with blocking_peer(server.address, "ben", PASSWORD) as ben:
        ben.do(ben.peer.invite("ann"))
        ann.page.locator(".ringcard").get_by_role("button", name="Accept").click()
        ben.do(ben.peer.sees_and_hears())
        sees_and_hears(ann)
        ann.button("End").click()
        expect(ann.page.locator(".callstage")).to_have_count(0)


@pytest.mark.parametrize("cut", ["ann", "ben"] if os.environ.get("NEXO_LONG_TESTS") else ["ann"])
def test_a_network_that_is_gone_for_five_seconds_ends_no_call(
    browser: Browser, server: ServerProcess, coturn: Coturn, api: Api, cut: str
) -> None:
    """One side has a way of its own to the server and to the TURN server, and both break."""
    with Network() as network, network.road_to(server.address) as web, network.road_to(coturn.tcp_url) as media:
        through = {coturn.url(): f"turn:{media.url.rpartition('@')[2]}?transport=tcp"}
        people = People(browser, server.address)
        people_cut = People(browser, web.url.replace("@", ""))
        try:
            ann, ben = (
                watch(
                    (people_cut if user == cut else people).window(**ALLOWED), "relay", through if user == cut else {}
                )
                for user in ("ann", "ben")
            )
            ann.sign_in("ann").chat("Ben Ode")
            ben.sign_in("ben").chat("Ann Lund")
            call(ann, ben)
            for window in (ann, ben):
                sees_and_hears(window)
            for road in (web, media):
                road.cut()
            still = ben if cut == "ann" else ann
            still.page.wait_for_timeout(CUT_MS / 2)
            before = arrived(still).pictures
            still.page.wait_for_timeout(CUT_MS / 2)
            assert arrived(still).pictures == before, "media goes another way"
            for road in (web, media):
                road.heal()
            for window in (ann, ben):
                sees_and_hears(window)
            ann.button("End").click()
            expect(ben.page.locator(".callstage")).to_have_count(0)
            (last, *_) = api.call("ann", "GET", "/call/list", limit=1)["calls"]
            assert last["outcome"] == "completed"
        finally:
            people.close()
            people_cut.close()
