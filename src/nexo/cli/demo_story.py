"""The content of the demo server: users, their messages so far, and the texts of the users that answer."""

from __future__ import annotations

from typing import NamedTuple

PASSWORD = "demo-demo"
ADMIN = "admin"

# To sign in as; all other users answer.
YOU = {"mira": "Mira", "jonas": "Jonas"}
ROBOTS = {
    "guide": "Guide (robot)",
    "echo": "Echo (robot)",
    "lena": "Lena (robot)",
    "tomas": "Tomás (robot)",
    "aiko": "愛子 Aiko (robot)",
}
PEOPLE = {**YOU, **ROBOTS, ADMIN: "Administrator"}


class Line(NamedTuple):
    sender: str
    text: str
    reply_to: int | None = None  # an earlier line of the same chat, counted from 0
    mentions: tuple[str, ...] = ()


class Chat(NamedTuple):
    """A single chat of the two who speak, or a group when it has a name. Times are in minutes before now."""

    lines: tuple[Line, ...]
    began: int
    ended: int
    name: str = ""
    owner: str = ""
    members: tuple[str, ...] = ()
    unread_by_mira: int = 0
    recalled: tuple[int, ...] = ()


def _talk(*pairs: tuple[str, str]) -> tuple[Line, ...]:
    return tuple(Line(sender, text) for sender, text in pairs)


CHATS = (
    Chat(
        _talk(
            ("jonas", "Are you on the early ferry or the late one?"),
            ("mira", "The early one. I have to open the gate."),
            ("jonas", "I owe you a coffee then."),
            ("mira", "Two. The second key is with the harbour master."),
            ("jonas", "Seen. I pick it up on the way."),
            ("mira", "And bring the long ladder, the sign hangs crooked again"),
            ("jonas", "It is not crooked. The house is."),
        ),
        began=2900,
        ended=64,
        unread_by_mira=1,
    ),
    Chat(
        (
            Line("lena", "The lamps for the north room have arrived."),
            Line("mira", "All twelve?"),
            Line("lena", "Eleven and a letter of apology."),
            Line("mira", "Then the corner stays dark on opening night. Call it a concept."),
            Line("lena", "I already printed the label: Untitled (Dark Corner)", reply_to=3),
        ),
        began=1500,
        ended=210,
    ),
    Chat(
        _talk(
            ("guide", "Welcome. This server is yours to play with; it is gone when you stop it."),
            ("guide", "Write to me: help, group, recall, offline, read or admin. I answer each."),
        ),
        began=9,
        ended=8,
        unread_by_mira=2,
    ),
    Chat(
        _talk(
            ("aiko", "展示の英語の説明文、確認してもらえますか。"),
            ("mira", "Of course. Send me the page numbers."),
            ("aiko", "三ページ目と七ページ目です。ありがとう！"),
        ),
        began=700,
        ended=640,
    ),
    Chat(
        (
            Line("mira", "Everything for the opening goes here, so that we do not have to search."),
            Line("lena", "The posters hang. One of them upside down, by request of the artist."),
            Line("tomas", "Sound check at five. Please do not test the smoke machine before that."),
            Line("jonas", "It was not me."),
            Line("tomas", "It was you.", reply_to=3),
            Line("aiko", "翻訳は終わりました。印刷に回します。"),
            Line("mira", "@jonas can you take the guests from the second ferry?", mentions=("jonas",)),
            Line("jonas", "Yes. How many?"),
            Line("lena", "Forty. Forty-one with the dog."),
            Line("tomas", "The dog is on the list?"),
            Line("lena", "The dog is the sponsor."),
            Line("mira", "Rain is announced for the evening; the tent goes up after lunch."),
            Line("jonas", "This was meant for another chat."),
            Line("tomas", "@mira who has the key to the tent shed?", mentions=("mira",)),
        ),
        began=4300,
        ended=12,
        name="Opening week",
        owner="mira",
        members=("jonas", "lena", "tomas", "aiko"),
        unread_by_mira=2,
        recalled=(12,),
    ),
    Chat(
        _talk(
            ("tomas", "Today: soup of what was left yesterday."),
            ("jonas", "So, the soup of yesterday?"),
            ("tomas", "It has matured."),
            ("lena", "I bring bread."),
            ("mira", "I bring courage."),
        ),
        began=420,
        ended=300,
        name="Kitchen table",
        owner="tomas",
        members=("mira", "jonas", "lena"),
    ),
)

# By the first word that is found; the last is for everything else.
GUIDE = {
    "help": "Try: reply to a message, mention a member in a group with @, recall what you sent within two minutes, "
    "or open this page in a second browser as jonas and write to each other.",
    "group": "A group is made with the plus above the list: three people at least. Who comes in later does not see "
    "what was written before.",
    "recall": "Hover over a message of yours, or hold it, and choose Recall. It is blanked for all members, also for "
    "members that are offline now.",
    "offline": "Switch your network off and write something: it waits with a clock. Switch it on: it is sent once, "
    "in order, and gets its tick.",
    "read": "One tick: stored on the server. Two: on the other's device. Two on a line: read.",
    "admin": "Sign in as admin at /admin: that page shows what this server is doing.",
    "": "I know these words: help, group, recall, offline, read, admin.",
}

ANSWERS = {
    "lena": ("Noted. I put it on the wall with the other notes.", "Good idea. Who informs Tomás?", "Yes!"),
    "tomas": ("If it has a plug, I can do it.", "After lunch.", "Ask me again when the soup is ready."),
    "aiko": ("了解しました。", "ありがとうございます。確認します。", "Thank you, I look at it this afternoon."),
}

CHATTER = (
    ("tomas", "Sound check in five minutes. This time for real."),
    ("lena", "The second ferry is on time, which has never happened."),
    ("aiko", "案内板の位置を少し直しました。"),
    ("tomas", "Who took the yellow cable? It is the important one."),
    ("lena", "The dog has arrived."),
    ("aiko", "The labels of the north room are up."),
)
CHATTER_IN = "Opening week"
