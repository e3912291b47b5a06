"""Calls between two browsers with made-up microphones and cameras: ring, accept, mute, decline, small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from harness.browser import Api, People, Window, axe_source, chromium

DEVICES = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(*DEVICES) as running:
        yield running


@pytest.fixture
def pair(people: People, api: Api) -> tuple[Window, Window]:
    api.register("ann", "Ann Lund")
    api.register("ben", "Ben Ode")
    api.send("ann", "ben", "Hello")
    allowed: dict[str, Any] = {"permissions": ["microphone", "camera"]}
    ann = people.window(**allowed).sign_in("ann").chat("Ben Ode")
    ben = people.window(**allowed).sign_in("ben").chat("Ann Lund")
    return ann, ben


def status(window: Window) -> Any:
    return window.page.locator(".callstage [role=status]")


def test_a_video_call_rings_is_accepted_and_ends_on_both_sides(pair: tuple[Window, Window]) -> None:
    ann, ben = pair
    ann.label("Video call").click()
    card = ben.page.locator(".ringcard")
    expect(card).to_contain_text("Incoming video call")
    expect(status(ann)).to_have_text("Ringing")
    expect(ben.field).to_be_focused()  # typing is not interrupted
    ben.check_access(axe_source())
    card.get_by_role("button", name="Accept").click()
    for window in pair:
        expect(status(window)).to_have_text(re.compile(r"^\d+:\d\d$"))
        playing = "document.querySelector('video.other')?.videoWidth > 0"
        window.page.wait_for_function(playing)
    ann.button("Mute").click()
    expect(ann.button("Muted")).to_have_attribute("aria-pressed", "true")
    ann.label("Make the call small").click()
    expect(ann.page.locator(".callbar")).to_contain_text("Ben Ode")
    ann.say("Still here").state("Still here", "saved")
    ann.label("Back to the call").click()
    ben.button("End").click()
    for window in pair:
        expect(window.page.locator(".callstage")).to_have_count(0)
    ann.toast("Call ended")


def test_a_call_that_is_declined_or_withdrawn_stops_ringing(pair: tuple[Window, Window]) -> None:
    ann, ben = pair
    ann.label("Voice call").click()
    ben.page.locator(".ringcard").get_by_role("button", name="Decline").click()
    ann.toast("Declined")
    expect(ann.page.locator(".callstage")).to_have_count(0)
    ann.label("Voice call").click()
    expect(ben.page.locator(".ringcard")).to_contain_text("Incoming voice call")
    ann.button("Cancel").click()
    expect(ben.page.locator(".ringcard")).to_have_count(0)
