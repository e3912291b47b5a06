"""What later events change of earlier messages, also of those that are loaded after the event."""

from __future__ import annotations

from typing import Any

from nexo_client.core.message_changes import Edit, MessageChanges
from nexo_client.core.options import RECALLED_MAX
from nexo_client.types import Message, Quote, Reaction


def message(server_msg_id: str = "m1", **fields: Any) -> Message:
    given = {"client_msg_id": None, "conversation_id": "si_ann:ben", "seq": 1, "sender_id": "ben", "content": "one"}
    return Message(server_msg_id=server_msg_id, **{**given, **fields})


def test_a_newer_edit_is_applied_and_an_older_one_is_not() -> None:
    changes = MessageChanges()
    assert changes.edited("m1", Edit("two", ("ann",), 20))
    assert not changes.edited("m1", Edit("older", (), 10))
    edited = changes.apply(message())
    assert (edited.content, edited.mentions, edited.edited_at) == ("two", ("ann",), 20)
    newer = message(content="three", edited_at=30)  # a page that was read later than the event
    assert changes.apply(newer) is newer


def test_the_quote_of_an_edited_message_has_the_new_text_and_of_a_gone_one_there_is_none() -> None:
    changes = MessageChanges()
    reply = message("m2", quote=Quote("m1", "ben", 1, "one"))
    assert changes.apply(reply) is reply
    changes.edited("m1", Edit("x" * 300, (), 20))
    quote = changes.apply(reply).quote
    assert quote is not None
    assert quote.text == "x" * 200
    changes.recalled("m1", 30)
    assert changes.apply(reply).quote is None


def test_own_reactions_are_known_from_the_changes_or_from_the_message() -> None:
    changes = MessageChanges()
    changes.reacted("m1", {"a": 2, "b": 1}, [("a", True)])
    changes.reacted("m1", {"a": 3, "b": 2}, [])  # of an event with too many changes to name them
    shown = changes.apply(message(reactions=(Reaction("b", 1, True),)))
    assert shown.reactions == (Reaction("a", 3, True), Reaction("b", 2, True))
    assert changes.apply(shown) is shown


def test_deleted_and_cleared_messages_are_hidden() -> None:
    changes = MessageChanges()
    assert changes.deleted("m1")
    assert not changes.deleted("m1")
    changes.cleared_seq = 5
    assert [changes.hides(message(f"m{seq}", seq=seq)) for seq in (1, 5, 6)] == [True, True, False]


def test_a_recall_blanks_everything_and_what_is_remembered_is_bounded() -> None:
    changes = MessageChanges()
    changes.edited("m0", Edit("two", (), 20))
    for number in range(RECALLED_MAX + 1):
        changes.recalled(f"m{number}", 30)
    blank = changes.apply(message("m1", extra={"a": 1}, reactions=(Reaction("a", 1),)))
    assert (blank.status, blank.content, blank.extra, blank.reactions, blank.recalled_at) == (1, "", None, (), 30)
    assert changes.apply(message("m0")).content == "two"  # the oldest recall is forgotten
