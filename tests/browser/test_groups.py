"""Three people in groups: mentions, receipts, members and their rights, joining and ending."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from harness.browser import Api, People, Window

Three = tuple[Window, Window, Window, str]


@pytest.fixture
def three(people: People, api: Api, request: pytest.FixtureRequest) -> Three:
    """Mira owns a group of the test's name with Jonas and Lena; all look at it. And its id."""
    ids = ["mira", "jonas", "lena"]
    for user_id, name in zip(ids, ("Mira Okafor", "Jonas Weber", "Lena Petrova"), strict=True):
        api.register(user_id, name)
    group_id = api.create_group(ids[0], team(request), *ids[1:])
    windows = [people.at_home(user_id).chat(team(request)) for user_id in ids]
    return windows[0], windows[1], windows[2], group_id


def team(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).removeprefix("test_")


def test_a_mention_is_picked_highlighted_and_counted(three: Three, request: pytest.FixtureRequest) -> None:
    mira, jonas, lena, _ = three
    lena.page.goto(f"{lena.address}/#/")
    mira.field.press_sequentially("Can you look, @le")
    expect(mira.page.get_by_role("listbox", name="Mention someone")).to_contain_text("Lena Petrova")
    mira.field.press("Tab")
    expect(mira.field).to_have_value("Can you look, @Lena Petrova ")
    mira.field.press_sequentially("?")
    mira.field.press("Enter")
    expect(lena.row(team(request)).locator(".badge.mention")).to_be_visible()
    lena.chat(team(request)).sees("Can you look")
    expect(lena.message("Can you look").locator(".at.self")).to_have_text("@Lena Petrova")
    expect(jonas.message("Can you look").locator(".at")).to_have_text("@Lena Petrova")
    expect(lena.page.locator("li.msg.mentioned")).to_have_count(1)
    expect(lena.row(team(request)).locator(".badge")).to_have_count(0)
    mira.say("@all doors open at ten")
    expect(jonas.message("doors open").locator(".at.self")).to_have_text("@all")


def test_who_has_read_a_message(three: Three, request: pytest.FixtureRequest) -> None:
    mira, jonas, lena, _ = three
    lena.page.goto(f"{lena.address}/#/")
    mira.say("Read me")
    jonas.sees("Read me")
    expect(mira.message("Read me").locator(".note")).to_have_text("Read by 1 of 2")
    mira.message("Read me").get_by_role("button", name="Read by 1 of 2").click()
    box = mira.page.get_by_role("dialog", name="Message details")
    expect(box).to_contain_text(re.compile(r"Delivered\s*2 of 2"))
    expect(box).to_contain_text("Jonas Weber")
    mira.page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    lena.chat(team(request)).sees("Read me")
    expect(mira.message("Read me").locator(".note")).to_have_text("Read by 2 of 2")


def test_roles_muting_and_removing(three: Three) -> None:
    mira, jonas, lena, _ = three
    mira.label("Details").click()
    mira.label("Manage Lena Petrova").click()
    mira.option("Make admin").click()
    expect(lena.page.locator(".event").last).to_contain_text("Mira made you an admin")
    lena.label("Details").click()
    lena.label("Manage Jonas Weber").click()
    lena.option("Mute in this group").click()
    lena.dialog().get_by_role("button", name="Mute", exact=True).click()
    expect(jonas.page.locator(".why")).to_have_text("An admin muted you in this group.")
    lena.label("Manage Jonas Weber").click()
    lena.option("Let them write again").click()
    expect(jonas.field).to_be_visible()
    lena.page.get_by_role("switch", name="Only admins can write").click()
    expect(jonas.page.locator(".why")).to_have_text("Only admins can write in this group.")
    lena.say("Quiet please")
    jonas.sees("Quiet please")
    lena.label("Manage Jonas Weber").click()
    lena.option("Remove from group").click()
    lena.dialog().get_by_role("button", name="Remove", exact=True).click()
    expect(jonas.page.locator(".why")).to_have_text("You are no longer in this group.")
    lena.say("Not for Jonas")
    mira.sees("Not for Jonas")
    expect(jonas.page.locator("li.msg", has_text="Not for Jonas")).to_have_count(0)
    jonas.page.reload()
    jonas.sees("Quiet please")
    expect(jonas.page.locator(".why")).to_have_text("You are no longer in this group.")


def test_inviting_transferring_leaving_and_dismissing(
    three: Three, people: People, api: Api, request: pytest.FixtureRequest
) -> None:
    mira, jonas, lena, group_id = three
    api.register(f"aiko{group_id}", "Aiko Tanaka")
    mira.say("Before Aiko")
    mira.state("Before Aiko", "read")
    jonas.label("Details").click()
    jonas.button("Invite").click()
    jonas.dialog().get_by_role("combobox").fill("aiko")
    jonas.dialog().get_by_role("option", name=re.compile("Aiko")).first.click()
    jonas.dialog().get_by_role("button", name="Invite", exact=True).click()
    jonas.toast("1 person invited")
    expect(mira.page.locator(".event").last).to_contain_text("Aiko joined, invited by Jonas")
    aiko = people.window().sign_in(f"aiko{group_id}").chat(team(request))
    expect(aiko.page.get_by_text("4 members are here. You can read from now on")).to_be_visible()
    expect(aiko.page.locator("li.msg", has_text="Before Aiko")).to_have_count(0)

    mira.label("Details").click()
    mira.label("Manage Lena Petrova").click()
    mira.option("Transfer ownership").click()
    expect(mira.dialog()).to_have_attribute("role", "alertdialog")
    expect(mira.dialog().get_by_role("button", name="Cancel")).to_be_focused()
    mira.dialog().get_by_role("button", name="Transfer", exact=True).click()
    expect(lena.page.locator(".event").last).to_contain_text("Mira made you the owner")
    mira.button("Leave group").click()
    mira.dialog().get_by_role("button", name="Leave", exact=True).click()
    expect(mira.page.locator(".why")).to_have_text("You are no longer in this group.")
    lena.label("Details").click()
    lena.button("Dismiss group").click()
    lena.dialog().get_by_role("button", name="Dismiss", exact=True).click()
    expect(jonas.page.locator(".why")).to_have_text("This group was dismissed.")
    expect(jonas.page.locator(".event").last).to_contain_text("Lena dismissed the group")


def test_joining_by_id_with_approval(three: Three, people: People, api: Api, request: pytest.FixtureRequest) -> None:
    mira, jonas, _, group_id = three
    api.register(f"tom{group_id}", "Tom Rivera")
    mira.label("Details").click()
    mira.label("Edit group").click()
    mira.dialog().get_by_label("Announcement").fill("Doors open Saturday at ten.")
    mira.dialog().get_by_role("radio", name="By approval").click()
    mira.dialog().get_by_role("button", name="Save").click()
    expect(mira.page.locator(".panel")).to_contain_text("Doors open Saturday at ten.")
    expect(jonas.page.locator(".event").last).to_contain_text("Mira changed the announcement")
    tom = people.window().sign_in(f"tom{group_id}")
    tom.label("New conversation").click()
    tom.option("Join a group").click()
    tom.dialog().get_by_label("Group ID").fill("g_nonsense")
    tom.dialog().get_by_role("button", name="Join", exact=True).click()
    expect(tom.dialog().get_by_role("alert")).to_contain_text("A group ID is")
    tom.dialog().get_by_label("Group ID").fill(group_id)
    tom.dialog().get_by_label("Message to the admins").fill("Tours, please")
    tom.dialog().get_by_role("button", name="Join", exact=True).click()
    tom.toast("Your request was sent")
    mira.label("Close details").click()
    mira.label("Details").click()
    mira.page.get_by_role("button", name=re.compile("^Join requests")).click()
    expect(mira.dialog()).to_contain_text("Tours, please")
    mira.label("Accept Tom Rivera").click()
    tom.chat(team(request)).say("Thank you")
    mira.label("Close").click()
    mira.sees("Thank you")
