"""From a fresh server to a first conversation, and to a group of three."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from harness.browser import PASSWORD, Api, People


def test_a_fresh_server_leads_to_a_first_conversation_and_a_group(people: People) -> None:
    mira = people.window().open()
    mira.page.get_by_role("link", name="Create an account").click()
    mira.register("mira", "Mira Okafor")
    expect(mira.page.get_by_role("heading", name="Welcome, Mira.")).to_be_visible()
    jonas = people.window().register("jonas", "Jonas Weber")
    lena = people.window().register("lena", "Lena Petrova")

    mira.button("New chat").click()
    mira.dialog().get_by_role("combobox").fill("jon")
    mira.dialog().get_by_role("option", name=re.compile("Jonas Weber")).click()
    mira.say("Hello, Jonas")
    mira.state("Hello, Jonas", "delivered")
    expect(jonas.row("Mira Okafor")).to_contain_text("Hello, Jonas")
    jonas.chat("Mira Okafor").sees("Hello, Jonas").say("Hello to you")
    mira.sees("Hello to you").state("Hello, Jonas", "read")

    mira.label("New conversation").click()
    mira.option("Create a group").click()
    dialog = mira.dialog()
    dialog.get_by_label("Group name").fill("Opening Week")
    expect(dialog.get_by_text("Choose 2 more: a group starts with 3")).to_be_visible()
    for name in ("jonas", "lena"):
        dialog.get_by_role("combobox").fill(name)
        dialog.get_by_role("option", name=re.compile(name)).first.click()
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(mira.page.locator(".who-head")).to_contain_text("Opening Week")
    mira.say("All here?")
    lena.chat("Opening Week").sees("All here?")
    expect(lena.page.locator(".event").first).to_contain_text("Mira created the group Opening Week")
    expect(lena.page.locator(".who-head")).to_contain_text("3 members, 3 online")


def test_mistakes_at_the_door_are_told_at_their_field(people: People, api: Api) -> None:
    api.register("taken")
    window = people.window().open("/#/register")
    page = window.page
    page.fill("[name=user_id]", "not allowed!")
    page.click("button[type=submit]")
    expect(window.label("User ID")).to_have_attribute("aria-invalid", "true")
    expect(window.label("User ID")).to_be_focused()
    page.fill("[name=user_id]", "taken")
    page.fill("[name=password]", "short")
    page.click("button[type=submit]")
    expect(page.get_by_role("alert").filter(has_text="At least 8 characters")).to_be_visible()
    page.fill("[name=password]", PASSWORD)
    page.click("button[type=submit]")
    expect(page.get_by_role("alert").filter(has_text="This ID is taken.")).to_be_visible()
    page.get_by_role("link", name="Sign in").click()
    page.fill("[name=user_id]", "taken")
    page.fill("[name=password]", "something else")
    page.click("button[type=submit]")
    expect(page.get_by_role("alert").filter(has_text="do not match")).to_be_visible()


def test_the_session_outlives_a_reload_and_ends_with_signing_out_in_all_tabs(people: People, api: Api) -> None:
    api.register("olga", "Olga")
    olga = people.window().sign_in("olga")
    other = people.tab(olga).open()
    expect(other.page.locator(".app")).to_be_visible()
    olga.front().page.reload()
    expect(olga.page.locator(".app")).to_be_visible()
    olga.label("Your account and settings").click()
    olga.option("Sign out").click()
    expect(olga.page.get_by_role("heading", name="Welcome back")).to_be_visible()
    expect(other.page.get_by_role("heading", name="Welcome back")).to_be_visible()


def test_the_page_speaks_chinese_to_a_chinese_browser_and_can_be_switched(people: People, api: Api) -> None:
    api.register("zhouli", "周念")
    api.register("ruochuan", "徐若川")
    api.send("ruochuan", "zhouli", "好。升降机约了八点。")
    window = people.window(locale="zh-CN").open()
    expect(window.page.get_by_role("heading", name="欢迎回来")).to_be_visible()
    window.sign_in("zhouli")
    window.row("徐若川").click()
    window.sees("好。升降机约了八点。")
    window.say("那就周二上午装。")
    expect(window.message("那就周二上午装。").locator("[aria-label=已保存到服务器]")).to_be_visible()
    window.picture("chat-zh-1280-light")
    window.label("账号与设置").click()
    window.option("English").click()
    expect(window.page.locator(".newline, .day").first).to_contain_text("Today")
    expect(window.page.locator("html")).to_have_attribute("lang", "en")
    window.page.reload()
    expect(window.page.locator("html")).to_have_attribute("lang", "en")
