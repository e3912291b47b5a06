"""Settings of users, contacts, policy, reports and exports. Part of `tree.py`."""

from __future__ import annotations

from typing import Annotated, Literal

from nexo.config.fields import Section, about


class UserConfig(Section, frozen=True):
    search: Annotated[bool, about("Users may look for others by the beginning of id or nickname.")] = True


class PolicyConfig(Section, frozen=True):
    single_chat: Annotated[
        Literal["open", "contacts"],
        about("Who may send to whom outside groups: `open`, or `contacts` only (others are refused `not_contact`)."),
    ] = "open"


class ContactConfig(Section, frozen=True):
    max: Annotated[int, about("Contacts that a user may have.", ge=1, le=100_000)] = 5000
    max_requests: Annotated[
        int, about("Open contact requests that a user may have received, and may have sent.", ge=1, le=10_000)
    ] = 500
    requests_per_min: Annotated[int, about("Contact requests and decisions of one user; 0: any number.", ge=0)] = 60


class ReportConfig(Section, frozen=True):
    per_min: Annotated[int, about("Messages that one user may report to the moderators; 0: any number.", ge=0)] = 20


class ExportConfig(Section, frozen=True):
    keep_h: Annotated[int, about("Hours until the file of an export is deleted.", ge=1, le=720)] = 24
    max_mb: Annotated[
        int, about("Size of the file of an export, in MiB; a larger one is given up.", ge=1, le=100_000)
    ] = 512
