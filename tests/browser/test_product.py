"""A product with chat in a real browser: the shop of examples/product, and the files of docs/product.md."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from harness.processes import free_port
from harness.product_page import page_product, python_command
from harness.server_process import ServerProcess
from harness.shop import PASSWORDS, Shop, nexo_for, python_shop, shop
from harness.waiting import until_blocking

Running = tuple[ServerProcess, str, Shop]


@pytest.fixture(scope="module")
def running(browser: Browser) -> Iterator[Running]:
    port = free_port()
    with nexo_for(port) as (server, key), shop(python_shop(), server.address, key, port) as opened:
        yield server, key, opened


class Visitor:
    def __init__(self, browser: Browser, opened: Shop) -> None:
        self.page: Page = browser.new_context().new_page()
        self.page.goto(opened.url)

    def sign_in(self, name: str, password: str) -> Visitor:
        self.page.fill("[name=name]", name)
        self.page.fill("[name=password]", password)
        self.page.get_by_role("button", name="Sign in").click()
        return self

    def say(self, text: str) -> None:
        self.page.get_by_label("Message").fill(text)
        self.page.get_by_role("button", name="Send").click()

    def line(self, text: str, kind: str) -> Locator:
        return self.page.locator(f"#chat li.{kind}", has_text=text)


def waiting(sam: httpx.Client) -> dict[str, str]:
    found: dict[str, str] = sam.get("/waiting").json()["waiting"]
    return found


def test_a_customer_asks_the_shop_answers_and_its_backend_knows_who_waits(browser: Browser, running: Running) -> None:
    _, _, opened = running
    ann = Visitor(browser, opened).sign_in("ann", "wrong")
    expect(ann.page.get_by_role("alert")).to_have_text("This name and password do not fit")
    ann.sign_in("ann", PASSWORDS["ann"])
    expect(ann.line("Hello Ann! Ask us anything about tea.", "other")).to_be_visible()
    ann.say("Do you have green tea?")
    expect(ann.line("Do you have green tea?", "own")).to_have_class("own")  # saved, not waiting
    with opened.sign_in("sam") as sam_http:
        until_blocking(lambda: waiting(sam_http) == {"customer-1001": "Do you have green tea?"})
        sam = Visitor(browser, opened).sign_in("sam", PASSWORDS["sam"])
        sam.page.get_by_role("button", name="customer-1001").click()
        expect(sam.line("Do you have green tea?", "other")).to_be_visible()
        sam.say("<b>Sencha</b>, since Monday")
        expect(ann.line("<b>Sencha</b>, since Monday", "other")).to_be_visible()
        until_blocking(lambda: waiting(sam_http) == {})
    ann.page.reload()
    expect(ann.line("<b>Sencha</b>, since Monday", "other")).to_be_visible()
    expect(ann.line("Hello Ann!", "other")).to_have_count(1)


def test_the_next_user_of_a_browser_sees_nothing_of_the_one_before(browser: Browser, running: Running) -> None:
    _, _, opened = running
    visitor = Visitor(browser, opened).sign_in("ann", PASSWORDS["ann"])
    expect(visitor.line("Hello Ann!", "other")).to_be_visible()
    visitor.page.get_by_role("button", name="Sign out").click()
    expect(visitor.page.locator("#sign-in")).to_be_visible()
    visitor.sign_in("ben", PASSWORDS["ben"])
    expect(visitor.line("Hello Ben!", "other")).to_be_visible()
    expect(visitor.line("Hello Ann!", "other")).to_have_count(0)


def test_a_page_of_an_origin_that_is_not_named_gets_what_the_docs_say(browser: Browser, running: Running) -> None:
    server, key, _ = running
    port = free_port()  # not in http.cors_origins
    with shop(python_shop(), server.address, key, port) as other:
        ann = Visitor(browser, other)
        with ann.page.expect_console_message(lambda message: "blocked by CORS policy" in message.text):
            ann.sign_in("ann", PASSWORDS["ann"])


def test_the_files_of_the_page_on_products_are_a_chat(browser: Browser) -> None:
    port = free_port()
    with nexo_for(port) as (server, key), page_product(server, key, python_command("chat.py"), port) as product:
        ann, ben = (browser.new_context().new_page() for _ in range(2))
        for user_id, page in (("ann", ann), ("ben", ben)):
            page.goto(f"{product.url}/?user={user_id}")
        ann.get_by_label("Message").fill("Hello, Ben")
        ann.get_by_role("button", name="Send").click()
        expect(ben.get_by_text("ann: Hello, Ben")).to_be_visible()
        ben.get_by_label("Message").fill("Hello, Ann")
        ben.get_by_role("button", name="Send").click()
        expect(ann.get_by_text("ben: Hello, Ann")).to_be_visible()
        with product.start(python_command("events.py")) as heard:
            until_blocking(lambda: "ben wrote Hello, Ann" in heard.read_text(), heard.read_text)


def test_the_page_of_the_api_shows_forms_limits_and_meanings_and_tries_calls(
    browser: Browser, running: Running
) -> None:
    server, key, _ = running
    page = browser.new_page()
    page.goto(f"{server.address}/docs")
    send = page.locator("#msg_send")
    send.locator("summary").click()
    for text in ("recv_id?: string (^([A-Za-z0-9._@-]{1,64})$)", "msg_type?: integer (1 to 7) = 1", "1 text, 2 image"):
        expect(send).to_contain_text(text)
    user = page.locator("#server_users_one")
    user.locator("summary").click()
    expect(user).to_contain_text("a key with the scope users or moderate, or an administrator")
    page.fill("#token", key)
    user.locator("[name=id]").fill("support")
    user.get_by_role("button", name="Try it").click()
    expect(user.locator("pre[aria-live]")).to_contain_text('"nickname": "The tea shop"')
