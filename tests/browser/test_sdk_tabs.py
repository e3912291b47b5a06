"""The JavaScript SDK by itself in real tabs that share IndexedDB: one outbox, one session, nobody doubles or loses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from harness.browser import PASSWORD, Api
from harness.server_process import ServerProcess

_OPEN = """async ([userId, password]) => {
  const { NexoClient } = await import("/sdk/index.js");
  const client = new NexoClient({ url: location.origin, backoffMinMs: 50, backoffMaxMs: 200 });
  window.client = client;
  window.heard = [];
  client.on("message", ({ message }) => window.heard.push(message.content));
  if (!(await client.restore())) await client.login({ userId, password });
  const late = new Promise((resolve) => setTimeout(resolve, 20000, "late"));
  if ((await Promise.race([client.connect(), late])) === "late") throw new Error(JSON.stringify(client.stateChange));
}"""


class Tab:
    def __init__(self, context: BrowserContext, address: str, user_id: str) -> None:
        self.page: Page = context.new_page()
        self.page.goto(f"{address}/sdk/errors.js")  # of the server's origin, and without an application in it
        self.page.evaluate(_OPEN, [user_id, PASSWORD])

    def run(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def wait(self, condition: str) -> None:
        self.page.wait_for_function(condition)

    def send(self, peer_id: str, *texts: str) -> None:
        self.run(
            "([peer, texts]) => { for (const text of texts) client.chatWith(peer).send(text); }", [peer_id, list(texts)]
        )


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(bypass_csp=True)  # waiting for conditions evaluates text
    yield context
    context.close()


def register(api: Api, *user_ids: str) -> None:
    for user_id in user_ids:
        api.register(user_id, user_id)


def test_what_a_closed_tab_left_is_sent_by_the_other_once_and_in_order(
    context: BrowserContext, browser: Browser, server: ServerProcess, api: Api
) -> None:
    register(api, "tab-ann", "tab-ben")
    left = Tab(context, server.address, "tab-ann")
    stays = Tab(context, server.address, "tab-ann")
    left.send("tab-ben", "zero")
    left.wait("client.pending.length === 0")
    context.set_offline(True)
    left.wait("client.state === 'offline' && client.stateChange.reason === 'offline'")
    left.send("tab-ben", "one", "two", "three")
    left.wait(
        "client.storage.entries('outbox/').then((found) => found.length === 3)",
    )
    stays.send("tab-ben", "four")
    assert stays.run("client.pending.length") == 1, "what a living tab has written is its own matter"
    left.page.close()
    context.set_offline(False)
    stays.wait("client.state === 'online'")
    # It looks at each sign-in and once a minute; a browser may free the lock of a closed tab a little later.
    looked = "client._driver._adopt().then(() => client.storage.entries('outbox/'))"
    stays.wait(f"{looked}.then((found) => found.length === 0)")

    reader = browser.new_context(bypass_csp=True)
    try:
        ben = Tab(reader, server.address, "tab-ben")
        ben.wait("heard.length >= 5")
        heard = ben.run("heard")
        assert sorted(heard) == ["four", "one", "three", "two", "zero"]
        assert [text for text in heard if text in ("one", "two", "three")] == ["one", "two", "three"]
    finally:
        reader.close()


def test_two_tabs_share_a_session_and_what_is_read(context: BrowserContext, server: ServerProcess, api: Api) -> None:
    register(api, "tab-cid", "tab-dan")
    one = Tab(context, server.address, "tab-cid")
    other = Tab(context, server.address, "tab-cid")
    assert one.run("client.session.refreshToken") == other.run("client.session.refreshToken")
    stale = one.run("client.session")
    one.run("(stale) => client._sessions.refresh(stale)", stale)
    other.run("(stale) => client._sessions.refresh(stale)", stale)
    fresh = one.run("client.session.refreshToken")
    assert fresh != stale["refreshToken"]
    assert other.run("client.session.refreshToken") == fresh
    api.send("tab-dan", "tab-cid", "hello")
    for tab in (one, other):
        tab.wait("heard.length === 1 && client.totalUnread === 1")
    one.run("client.chatWith('tab-dan').markRead()")
    other.wait("client.totalUnread === 0")
    one.run("client.logout()")
    other.wait("client.state === 'closed' && client.session === null")


def test_a_reloaded_tab_goes_on_where_it_was(context: BrowserContext, server: ServerProcess, api: Api) -> None:
    register(api, "tab-eve", "tab-fay")
    first = Tab(context, server.address, "tab-eve")
    api.send("tab-fay", "tab-eve", "before")
    first.wait("heard.length === 1")
    first.run("client.close()")
    first.page.close()
    api.send("tab-fay", "tab-eve", "after")
    again = Tab(context, server.address, "tab-eve")
    again.wait("heard.length === 1")
    assert again.run("heard") == ["after"]
    again.run("client.chatWith('tab-fay').loadLatest()")
    assert again.run("client.chatWith('tab-fay').messages.map((message) => message.content)") == ["before", "after"]
    assert again.run("client.totalUnread") == 2
