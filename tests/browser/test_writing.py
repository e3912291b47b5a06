"""Where keys and fingers lead in a chat: typing reaches the text field, the focus stays, texts look as written."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import CDPSession, Page, expect

from harness.browser import Api, People, Window

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
ACTIVE = "document.activeElement?.tagName"


@pytest.fixture
def pair(people: People, api: Api) -> tuple[Window, Window]:
    """Ida and Jon, both looking at their chat."""
    api.register("ida", "Ida Berg")
    api.register("jon", "Jon Rey")
    api.send("jon", "ida", "First of all")
    windows = people.at_home("ida"), people.at_home("jon")
    windows[0].chat("Jon Rey").sees("First of all")
    windows[1].chat("Ida Berg").sees("First of all")
    return windows


def never_on_the_body(page: Page) -> None:
    """Notes every time when no element has the focus for two frames."""
    page.evaluate(
        """() => { window.lost = []; let before = 0; const look = () => {
            const is = document.activeElement === document.body ? 1 : 0;
            before = is ? before + 1 : 0;
            if (before === 3 && document.hasFocus()) window.lost.push(performance.now());
            requestAnimationFrame(look); }; look(); }"""
    )


def test_typing_reaches_the_text_field_from_everywhere(pair: tuple[Window, Window]) -> None:
    ida, _ = pair
    ida.message("First of all").locator(".text").click()
    ida.page.keyboard.type("cheers?")
    expect(ida.field).to_have_value("cheers?")
    expect(ida.page.locator(".replying")).to_be_hidden()
    ida.row("Jon Rey").focus()
    ida.page.keyboard.type("!")
    expect(ida.field).to_have_value("cheers?!")
    ida.field.fill("")
    ida.message("First of all").focus()
    ida.page.keyboard.press("Space")  # opens what is in a message, and never starts a text
    expect(ida.field).to_have_value("")


def test_alt_and_arrow_change_the_conversation_from_the_empty_field(pair: tuple[Window, Window], api: Api) -> None:
    ida, _ = pair
    api.register("kim", "Kim")
    api.send("kim", "ida", "Another one")
    expect(ida.row("Kim")).to_be_visible()
    ida.field.focus()
    ida.page.keyboard.press("Alt+ArrowUp")
    expect(ida.page.locator(".chat .who-head .t")).to_have_text("Kim")
    expect(ida.field).to_be_focused()


def test_the_focus_always_has_a_place(pair: tuple[Window, Window], people: People) -> None:
    ida, _ = pair
    never_on_the_body(ida.page)
    ida.say("To be taken back").state("To be taken back", "read")
    ida.message("To be taken back").focus()
    ida.page.keyboard.press("Enter")
    expect(ida.option("Copy text")).to_be_visible()
    ida.page.keyboard.press("Escape")
    expect(ida.message("To be taken back")).to_be_focused()
    ida.act("To be taken back", "Recall")
    ida.dialog().get_by_role("button", name="Recall", exact=True).click()
    ida.sees("You recalled a message")
    ida.page.wait_for_function("document.activeElement !== document.body")
    assert ida.page.evaluate("window.lost") == []
    ida.page.reload()
    expect(ida.field).to_be_focused()
    phone = people.window(**PHONE).sign_in("ida")
    phone.row("Jon Rey").tap()
    expect(phone.page.locator(".chat h1")).to_be_focused()


def test_the_log_is_one_stop_of_the_tab_key(pair: tuple[Window, Window], api: Api) -> None:
    ida, _ = pair
    quoted = api.send("jon", "ida", "See https://example.org and www.example.org")
    api.send("ida", "jon", "And this", reply_to=quoted["server_msg_id"])
    ida.sees("And this")
    ida.page.locator(".chat > .bar").get_by_role("button", name="More", exact=True).focus()
    ida.page.keyboard.press("Tab")
    expect(ida.message("And this")).to_be_focused()
    ida.page.keyboard.press("Tab")
    expect(ida.label("Attach")).to_be_focused()
    assert ida.page.evaluate("document.querySelectorAll('.log [tabindex=\"0\"], .log a:not([tabindex])').length") == 1
    expect(ida.page.locator(".day [role=separator]").last).to_have_attribute("aria-label", "Today")
    expect(ida.page.get_by_role("heading", level=1)).to_contain_text("Jon Rey")
    ida.page.keyboard.press("Shift+Tab")
    ida.page.keyboard.press("ArrowUp")
    ida.page.keyboard.press("Enter")
    expect(ida.option("Open example.org")).to_be_visible()  # links are reached by the menu
    ida.page.keyboard.press("Escape")


def test_texts_read_in_their_own_direction_and_what_looks_odd_is_shown_as_it_is(
    pair: tuple[Window, Window], api: Api
) -> None:
    ida, jon = pair
    ida.say("شكرا، سأكون هناك")
    text = jon.message("شكرا").locator(".text")
    assert text.evaluate("(one) => getComputedStyle(one).direction") == "rtl"
    assert jon.message("شكرا").locator(".bubble").evaluate("(one) => getComputedStyle(one).direction") == "ltr"
    ida.say("**bold** snake_case 2*3*4 `code` mail me@example.org or https://аррӏе.com")
    bubble = jon.message("snake_case 2*3*4")
    expect(bubble.locator("strong")).to_have_text("bold")
    expect(bubble.locator("code")).to_have_text("code")
    expect(bubble.locator("a.link")).to_have_text(["me@example.org", "xn--80ak6aa92e.com"])
    ida.say("🎉")
    expect(jon.page.locator(".msg.big").last).to_contain_text("🎉")
    api.send("ida", "jon", "word " * 300)
    fold = jon.page.locator(".unfold").last
    expect(fold).to_have_text("Show all, 1500 characters")
    fold.click()
    expect(fold).to_have_text("Show less")


def test_the_count_of_new_messages_stays_as_it_was(people: People, api: Api) -> None:
    api.register("lou", "Lou")
    api.register("moe", "Moe")
    for number in range(3):
        api.send("moe", "lou", f"Before {number}")
    lou = people.window().sign_in("lou").chat("Moe")
    divider = lou.page.locator(".newline")
    expect(divider).to_have_text("3 new messages")
    api.send("moe", "lou", "Read as it arrives")
    lou.sees("Read as it arrives")
    expect(divider).to_have_text("3 new messages")
    lou.say("My answer").state("My answer", "saved")
    expect(divider).to_have_count(0)


def test_on_a_phone_enter_is_a_new_line_and_a_held_finger_does_nothing_more(
    pair: tuple[Window, Window], people: People, api: Api
) -> None:
    api.send("jon", "ida", "Hold me")
    phone = people.window(**PHONE).sign_in("ida")
    phone.row("Jon Rey").tap()
    phone.sees("Hold me")
    expect(phone.field).to_have_attribute("enterkeyhint", "enter")
    phone.field.tap()
    phone.page.keyboard.type("one")
    phone.page.keyboard.press("Enter")
    phone.page.keyboard.type("two")
    expect(phone.field).to_have_value("one\ntwo")
    phone.button("Send").tap()
    expect(phone.field).to_be_focused()  # the keyboard stays
    phone.sees("two")
    touch = phone.context.new_cdp_session(phone.page)
    box = phone.message("Hold me").locator(".bubble").bounding_box()
    assert box
    hold(touch, phone, box["x"] + 30, box["y"] + 15)
    expect(phone.option("Copy text")).to_be_visible()  # neither closed by the release nor pressed by it
    expect(phone.page.locator(".toast, .replying:visible, dialog[open]")).to_have_count(0)
    phone.option("Reply").tap()
    expect(phone.page.locator(".replying")).to_contain_text("Hold me")
    phone.page.reload()
    expect(phone.page.locator(".replying")).to_contain_text("Hold me")


def hold(touch: CDPSession, phone: Window, x: float, y: float) -> None:
    """A finger that is held until the menu is there, and then lifted."""
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    expect(phone.page.get_by_role("menu")).to_be_visible()
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_quote_far_back_is_found_at_once(people: People, api: Api) -> None:
    api.register("nia", "Nia")
    api.register("oto", "Oto")
    first = api.send("oto", "nia", "Where it began")
    for number in range(420):
        api.send("oto", "nia", f"Line {number}")
    api.send("oto", "nia", "Remember this?", reply_to=first["server_msg_id"])
    api.call("nia", "POST", "/conversation/read", conversation_id="si_nia:oto", seq=422)
    nia = people.window().sign_in("nia").chat("Oto")
    nia.sees("Remember this?")
    asked: list[str] = []
    nia.page.on("request", lambda request: asked.append(request.url) if "/msg/" in request.url else None)
    nia.message("Remember this?").locator(".quote").click()
    expect(nia.page.locator(".msg.flash")).to_contain_text("Where it began")
    assert len(asked) < 12, asked
    nia.button("To the newest message").click()
    expect(nia.message("Remember this?")).to_be_in_viewport()


def test_who_left_is_not_told_who_is_online_and_events_say_who_did_it(people: People, api: Api) -> None:
    for user_id in ("pia", "quo", "ria"):
        api.register(user_id, user_id.title())
    group = api.create_group("pia", "Harbour", "quo", "ria")
    quo = people.window().sign_in("quo").chat("Harbour")
    expect(quo.page.locator(".who-head .st")).to_have_text("3 members, 1 online")
    api.call("pia", "POST", "/group/mute", group_id=group, user_id="quo", duration_s=60)
    expect(quo.page.locator(".event").last).to_have_text("Pia muted you")
    api.call("pia", "POST", "/group/mute", group_id=group, user_id="quo", duration_s=0)
    api.call("quo", "POST", "/group/quit", group_id=group)
    expect(quo.page.locator(".who-head .st")).to_have_text(re.compile(r"^\d members$"))
