"""The lists of a user that clients keep up to date by versions: friends, groups, conversations, members of a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from nexo.core.model import Group, GroupMember, User
from nexo.core.people import Contact
from nexo.openim import shapes
from nexo.openim.directory import Directory
from nexo.ports.openim import ListChanges, OpenimStore
from nexo.service.actions import Actions
from nexo.wire.openim.names import name_of

FRIENDS_MAX = 5000
MEMBERS_MAX = 2000  # a client of a larger group gets the whole list anew, page by page
PAGE = 200
GROUP_ENTRY = "*"  # no user has this id
FRIENDS, GROUPS, CONVERSATIONS, MEMBERS = "friends", "groups", "conversations", "members"


class ListedMember(NamedTuple):
    member: GroupMember
    user: User | None


class Lists:
    def __init__(self, actions: Actions, store: OpenimStore, directory: Directory) -> None:
        self._actions = actions
        self._store = store
        self._directory = directory

    # -- what there is -----------------------------------------------------------------------------------

    async def contacts(self, user_id: str) -> list[Contact]:
        found: list[Contact] = []
        cursor: str | None = None
        while len(found) < FRIENDS_MAX:
            page, cursor, has_more = await self._actions.people.contacts.contacts(user_id, cursor, PAGE)
            found += page
            if not has_more:
                break
        return found

    async def friends(self, user_id: str, base_url: str) -> dict[str, dict[str, Any]]:
        contacts = await self.contacts(user_id)
        users = await self._directory.users(contact.user_id for contact in contacts)
        return {
            contact.user_id: shapes.friend_info(user_id, contact, users.get(contact.user_id), base_url)
            for contact in contacts
        }

    async def groups(self, user_id: str) -> list[Group]:
        return await self._actions.groups.mine(user_id)

    async def conversations(self, user_id: str) -> dict[str, dict[str, Any]]:
        heads = {head.conversation_id: head for head in await self._actions.conversations.heads(user_id)}
        found: dict[str, dict[str, Any]] = {}
        for number in await self._store.heads(user_id):
            head = heads.get(number.conversation_id)
            if head is None or head.hidden is True:
                continue
            shape = shapes.conversation_info(user_id, number.conversation_id, head, number.first)
            if shape is not None:
                found[name_of(number.conversation_id)] = shape
        return found

    async def members(self, user_id: str, group_id: str, limit: int = MEMBERS_MAX) -> list[ListedMember]:
        """Returns the first members of a group, for one of them."""
        found: list[GroupMember] = []
        cursor: str | None = None
        while len(found) < limit:
            page, cursor, has_more = await self._actions.groups.members(user_id, group_id, cursor, PAGE)
            found += page
            if not has_more:
                break
        users = await self._directory.users(member.user_id for member in found)
        return [ListedMember(member, users.get(member.user_id)) for member in found]

    # -- what has changed --------------------------------------------------------------------------------

    async def follow(
        self, owner: str, kind: str, entries: Mapping[str, Any], version: int = 0, version_id: str = ""
    ) -> ListChanges:
        digests = {name: shapes.digest(shape) for name, shape in entries.items()}
        return await self._store.follow(owner, kind, digests, version, version_id)

    async def follow_members(
        self, user_id: str, group: Group, version: int = 0, version_id: str = "", base_url: str = ""
    ) -> tuple[ListChanges, dict[str, dict[str, Any]]]:
        """Returns the changes of a group's members, and the members. Of a large group neither is known."""
        if group.member_count > MEMBERS_MAX:
            return ListChanges(1, group.group_id, True, [], [], []), {}
        entries = {
            listed.member.user_id: shapes.member_info(group.group_id, listed.member, listed.user, base_url)
            for listed in await self.members(user_id, group.group_id)
        }
        plain = {
            member_id: {name: value for name, value in shape.items() if name != "faceURL"}
            for member_id, shape in entries.items()
        }
        # a change of the group itself raises this version too: clients take no news of it otherwise
        plain[GROUP_ENTRY] = {**shapes.group_info(group), "memberCount": 0}
        return await self.follow(group.group_id, MEMBERS, plain, version, version_id), entries


def changed_shape(changes: ListChanges, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the changes as clients read them. Lists that are empty are null: a client takes the first entry of any
    list that is there."""
    return {
        "version": changes.version,
        "versionID": changes.version_id,
        "full": changes.full,
        "insert": [entries[name] for name in changes.inserted if name in entries] or None,
        "update": [entries[name] for name in changes.updated if name in entries] or None,
        "delete": changes.deleted or None,
    }
