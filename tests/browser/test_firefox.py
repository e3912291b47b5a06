"""The main paths in Firefox."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.browser import Api
from harness.firefox import Bidi, FirefoxWindow, firefox
from harness.server_process import ServerProcess

Open = Callable[..., FirefoxWindow]


@pytest.fixture(scope="module")
def fox() -> Iterator[Bidi]:
    with firefox() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess() as running:
        yield running


@pytest.fixture
def open_window(fox: Bidi, server: ServerProcess) -> Iterator[Open]:
    windows: list[FirefoxWindow] = []

    def open_one(width: int = 1280, height: int = 800) -> FirefoxWindow:
        windows.append(FirefoxWindow(fox, server.address, width, height))
        return windows[-1]

    yield open_one
    troubles = [trouble for window in windows for trouble in window.troubles]
    for window in windows:
        with contextlib.suppress(AssertionError):
            window.close()
    assert not troubles, "\n".join(troubles)


@pytest.fixture
def pair(open_window: Open, server: ServerProcess) -> tuple[FirefoxWindow, FirefoxWindow]:
    api = Api(server.address)
    api.register("lia", "Lia Marsh")
    api.register("mo", "Mo Nash")
    api.send("mo", "lia", "First of all")
    api.close()
    lia = open_window().sign_in("lia").chat("Mo Nash").sees("First of all")
    mo = open_window(390, 844).sign_in("mo").chat("Lia Marsh").sees("First of all")
    return lia, mo


def test_registering_and_the_first_message(open_window: Open, server: ServerProcess) -> None:
    api = Api(server.address)
    api.register("ned", "Ned Ott")
    api.close()
    new = open_window().open("/#/register")
    new.click("[name=nickname]").type("Oda Pell")
    new.click("[name=user_id]").type("oda")
    new.click("[name=password]").type("correct horse")
    new.press("Enter")
    new.until("() => document.querySelector('.app')?.checkVisibility()")
    new.open("/#/c/si_ned:oda")
    new.say("Hello from another browser").state("Hello from another browser", "saved")


def test_two_people_write_read_react_and_edit(pair: tuple[FirefoxWindow, FirefoxWindow]) -> None:
    lia, mo = pair
    lia.front().say("Do you read me?")
    mo.front().sees("Do you read me?").say("Loud and clear")
    lia.front().sees("Loud and clear").state("Do you read me?", "read")
    lia.click("li.msg .bubble", "Loud and clear", right=True)
    lia.click("[role=menuitemcheckbox]")
    mo.front().until("() => document.querySelector('li.msg .reacts button')?.textContent.includes('1')")
    lia.front().click(".composer textarea").press("ArrowUp")
    lia.until("() => document.querySelector('.replying')?.innerText.includes('Edit message')")
    lia.type(" Over.").press("Enter")
    mo.front().sees("Do you read me? Over.")
    mo.until("() => document.querySelector('li.msg .edited')")


def test_a_picture_is_uploaded_sent_and_shown(pair: tuple[FirefoxWindow, FirefoxWindow], tmp_path: Path) -> None:
    lia, mo = pair
    png = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
    )
    (tmp_path / "dot.png").write_bytes(png)
    (tmp_path / "data.bin").write_bytes(os.urandom(200_000))
    lia.front().click("[aria-label=Attach]").click("[role=menuitem]", "File")
    lia.choose_files("input.chooser", tmp_path / "data.bin")
    lia.until("() => document.querySelector('.tray .tile[data-state=ready]')")
    lia.click("[aria-label=Attach]").click("[role=menuitem]", "Photo or video")
    lia.choose_files("input.chooser", tmp_path / "dot.png")
    lia.until("() => document.querySelectorAll('.tray .tile[data-state=ready]').length === 2")
    lia.say("Both at once").state("Both at once", "delivered")
    mo.front().sees("data.bin").sees("Both at once")
    mo.until("() => [...document.querySelectorAll('li.msg .shot img')].some((one) => one.naturalWidth > 0)")


def test_reading_older_messages_while_new_ones_come(
    pair: tuple[FirefoxWindow, FirefoxWindow], server: ServerProcess
) -> None:
    lia, _ = pair
    api = Api(server.address)
    for number in range(150):
        api.send("mo", "lia", f"Line {number}")
    lia.front().sees("Line 149")
    lia.run("() => { document.querySelector('.log').scrollTop = -2000; }")
    place = """() => { const box = document.querySelector('.log').getBoundingClientRect();
        const row = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.closest('li.msg');
        return row && {key: row.dataset.key, top: row.getBoundingClientRect().top}; }"""
    before = lia.until(place)
    for number in range(40):
        api.send("mo", "lia", f"Later {number}")
    api.close()
    lia.until("() => document.querySelector('.jump')?.innerText.includes('40')")
    top = lia.run(
        "(key) => document.querySelector(`li[data-key='${key}']`)?.getBoundingClientRect().top", before["key"]
    )
    assert abs(top - before["top"]) <= 1


def test_searching_and_settings_by_keyboard(pair: tuple[FirefoxWindow, FirefoxWindow]) -> None:
    lia, _ = pair
    lia.front().say("A word like pomegranate").state("A word like pomegranate", "delivered")
    lia.click(".side .search").type("pomegran")
    lia.until("() => document.querySelector('.results mark')?.textContent.toLowerCase().startsWith('pomegran')")
    lia.press("Escape")
    lia.open("/#/settings/appearance")
    lia.click("[role=radio]", "Dark")
    assert lia.run("() => getComputedStyle(document.body).colorScheme || document.documentElement.dataset.theme")
    lia.until("() => document.documentElement.dataset.theme === 'dark'")
