"""Reports: messages that users put before the moderators, with what is around them."""

from __future__ import annotations

from harness.api import make_group, make_key, open_api, send

PEOPLE = ("ann", "bob", "cat", "dan", "boss")


async def test_a_report_shows_the_message_and_what_its_reporter_may_see_around_it(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        await api.accounts.set_admin("boss", True)
        key = await make_key(api, "mods", "moderate")
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        await send(api, "ann", group_id, "before dan")
        await api.post("dan", "/group/join", group_id=group_id)
        bad = await send(api, "bob", group_id, "you fool")
        await send(api, "cat", group_id, "stop it")
        assert (await api.post("dan", "/msg/report", server_msg_id=bad["server_msg_id"], reason="")).error == (
            "missing_reason"
        )
        fields = {"server_msg_id": bad["server_msg_id"], "reason": "insult"}
        first = (await api.post("dan", "/msg/report", **fields)).data
        assert (await api.post("dan", "/msg/report", **fields)).data == first
        for caller in ("boss", key):
            (report,) = (await api.get(caller, "/server/reports")).data["reports"]
            assert (report["report_id"], report["reporter_id"], report["reason"], report["sender_id"]) == (
                first["report_id"], "dan", "insult", "bob",
            )  # fmt: skip
            assert report["message"]["content"] == "you fool"
            assert [one["content"] for one in report["context"]] == [{"user_ids": ["dan"], "by": "dan"}, "stop it"]
        for person in ("ann", "dan"):
            assert (await api.get(person, "/server/reports")).error == "scope_missing"
        resolve = f"/server/reports/{first['report_id']}/resolve"
        assert (await api.post(key, resolve, resolution="warned")).status == 200
        assert (await api.post("boss", resolve)).status == 200
        assert (await api.get(key, "/server/reports")).data["reports"] == []
        (done,) = (await api.get(key, "/server/reports", state="resolved")).data["reports"]
        assert (done["resolved_by"], done["resolution"]) == ("key:mods", "warned")
        assert len((await api.get(key, "/server/reports", state="all")).data["reports"]) == 1
        acts = [entry["act"] for entry in (await api.get(key, "/server/audit")).data["entries"]]
        assert acts.count("reports.read") == 5
        assert acts.count("report.resolve") == 1


async def test_what_a_user_may_not_see_cannot_be_reported(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await make_key(api, "mods", "moderate")
        private = await send(api, "ann", "bob", "between us")
        refused = await api.post("cat", "/msg/report", server_msg_id=private["server_msg_id"], reason="x")
        assert refused.error == "message_not_found"
        assert (await api.post("cat", "/msg/report", server_msg_id="12345", reason="x")).error == "message_not_found"
        assert (await api.post("cat", "/msg/report", server_msg_id="x", reason="x")).error == "bad_server_msg_id"
        long = await api.post("bob", "/msg/report", server_msg_id=private["server_msg_id"], reason="x" * 513)
        assert long.error == "bad_reason"
        assert (await api.post(key, "/server/reports/99/resolve")).error == "not_found"
        assert (await api.post(key, "/server/reports/x/resolve")).error == "not_found"
        assert (await api.get(key, "/server/reports", state="new")).error == "bad_kind"


async def test_reports_have_pages_and_a_recalled_message_is_blank_in_them(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await make_key(api, "mods", "moderate")
        for number in range(3):
            sent = await send(api, "ann", "bob", f"text {number}")
            await api.post("bob", "/msg/report", server_msg_id=sent["server_msg_id"], reason="r")
        await api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
        first = (await api.get(key, "/server/reports", limit=2)).data
        assert [one["message"]["content"] for one in first["reports"]] == ["", "text 1"]
        rest = (await api.get(key, "/server/reports", limit=2, before=first["next_before"])).data
        assert ([one["message"]["content"] for one in rest["reports"]], rest["has_more"]) == (["text 0"], False)
