"""The HTTP API of the scripted server, as far as SDKs use it."""

from __future__ import annotations

import secrets
from typing import Any

from harness import scripted_changes as changes
from harness.scripted_faults import Frame
from harness.scripted_truth import Message
from harness.scripted_world import World
from nexo.errors import NexoError


class Api:
    def __init__(self, world: World) -> None:
        self._world = world

    def answer(self, method: str, path: str, query: Frame, body: Any, token: str) -> Any:
        data = {**query, **(body if isinstance(body, dict) else {})}
        match method, path:
            case "POST", "/user/register":
                user_id = data.get("user_id") or "u" + secrets.token_hex(4)
                if user_id in self._world.truth.passwords:
                    raise NexoError("user_exists")
                self._world.truth.add_user(user_id, data["password"])
                return {"user_id": user_id, "nickname": "", "avatar": "", "extra": None, "created_at": 0}
            case "POST", "/auth/login":
                if self._world.truth.passwords.get(data["user_id"]) != data["password"]:
                    raise NexoError("invalid_credentials")
                return self._world.new_tokens(data["user_id"])
            case "POST", "/auth/refresh":
                self._world.counts["refresh"] += 1
                if data["refresh_token"] not in self._world.refresh:
                    raise NexoError("session_invalid")
                return self._world.new_tokens(self._world.refresh[data["refresh_token"]])
        return self._answer_signed_in(method, path, self._world.check_token(token), data)

    def _answer_signed_in(self, method: str, path: str, user_id: str, data: Frame) -> Any:
        truth = self._world.truth
        match method, path:
            case "GET", "/user/info":
                found = data.get("user_id") or user_id
                return {"user_id": found, "nickname": "", "avatar": "", "extra": None, "created_at": 0}
            case "POST", "/auth/logout":
                return {}
            case "GET", "/conversation/list":
                start, mine = int(data.get("cursor") or 0), truth.mine(user_id)
                most = min(int(data.get("limit") or 200), self._world.settings["sync_page"])
                more = len(mine) > start + most
                for conversation in mine[start : start + most]:  # it may be the first that the client hears of it
                    self._world.note_entry(truth.entry(conversation, user_id))
                entries = [truth.list_entry(c, user_id) for c in mine[start : start + most]]
                return {"conversations": entries, "next_cursor": str(start + most) if more else "", "has_more": more}
            case "POST", "/conversation/read":
                conversation, seq = truth.of(data["conversation_id"], user_id), int(data["seq"])
                self._world.check_ack(conversation.conversation_id, seq)
                truth.advance(conversation, user_id, "read", seq)
                unread = truth.unread(conversation, user_id)
                read_seq = conversation.members[user_id].read_seq
                return {"conversation_id": conversation.conversation_id, "read_seq": read_seq, "unread": unread}
            case "GET", "/msg/pull":
                begin, end = int(data.get("begin_seq") or 1), int(data.get("end_seq") or 1 << 60)
                page = self._world.page(user_id, data["conversation_id"], begin, end, int(data.get("limit") or 200))
                return page | {"messages": [truth.plain(message, user_id) for message in page["messages"]]}
            case "GET", "/msg/history":
                return self._history(user_id, data)
            case "POST", "/msg/recall":
                event = truth.recall(data["server_msg_id"], user_id)
                self._world.push(event)
                return {"server_msg_id": data["server_msg_id"], "seq": event.seq}
            case "GET", "/msg/receipts":
                return self._receipts(data["server_msg_id"])
            case "POST", "/group/create":
                return self._world.steps.create_group_of(user_id, data["name"], data["member_ids"])
        return self._change(method, path, user_id, data)

    def _change(self, method: str, path: str, user_id: str, data: Frame) -> Any:
        """Calls that change earlier messages, or what the user sees of them."""
        truth, server_msg_id = self._world.truth, data.get("server_msg_id", "")
        match method, path:
            case "PUT", "/msg/edit":
                event = self._edit(user_id, data)
                place = {"server_msg_id": server_msg_id, "conversation_id": event.conversation_id, "seq": event.seq}
                return place | {"edited_at": event.content["edited_at"]}
            case "POST", "/msg/react":
                event = changes.react(truth, server_msg_id, user_id, data["emoji"], data["on"])
                self._world.push(event)
                target = truth.find(server_msg_id)
                assert target is not None
                return {"reactions": truth.plain(target, user_id).get("reactions", [])}
            case "POST", "/msg/pin":
                event = changes.pin(truth, server_msg_id, user_id, data["on"])
                self._world.push(event)
                return {"server_msg_id": server_msg_id, "seq": event.seq}
            case "POST", "/msg/delete":
                target = truth.find(data["server_msg_ids"][0])
                assert target is not None
                self._world.steps.tell_deleted(truth.of(target.conversation_id), data["server_msg_ids"])
                return {}
            case "POST", "/conversation/clear":
                conversation = truth.of(data["conversation_id"], user_id)
                self._world.steps.tell_deleted(conversation, [], conversation.head_seq)
                return {"up_to_seq": conversation.head_seq, "deleted_rev": 0, "unread": 0}
            case "GET", "/msg/deleted":
                member = truth.of(data["conversation_id"], user_id).members[user_id]
                since = member.deletions[int(data["after"]) :]
                seqs = [up_to for _, up_to in since if up_to is not None]
                ids = [one for found, _ in since for one in found]
                rev = {"deleted_rev": len(member.deletions), "has_more": False}
                return {"server_msg_ids": ids, "up_to_seq": max(seqs, default=None)} | rev
            case "PUT", "/conversation/update":
                return self._world.steps.update_settings(data.pop("conversation_id"), data)
        raise NexoError("not_found", f"{method} {path}")

    def _edit(self, user_id: str, data: Frame) -> Message:
        """Again with the same id it is the same edit."""
        key = (user_id, data["client_msg_id"])
        if key not in self._world.edits:
            mentions = data.get("mentions")
            event = changes.edit(self._world.truth, data["server_msg_id"], user_id, data["content"], mentions)
            self._world.edits[key] = event
            self._world.push(event)
        return self._world.edits[key]

    def _history(self, user_id: str, data: Frame) -> Frame:
        conversation = self._world.truth.of(data["conversation_id"], user_id)
        before = int(data.get("before_seq") or 1 << 60)
        most = min(int(data.get("limit") or 200), self._world.settings["pull_limit"])
        found = [message for message in reversed(conversation.visible(user_id)) if message.seq < before]
        page = found[:most]
        return {
            "messages": [self._world.truth.plain(message, user_id) for message in page],
            "head_seq": conversation.visible_head(user_id),
            "next_seq": page[-1].seq if page else 0,
            "has_more": len(found) > most,
        }

    def _receipts(self, server_msg_id: str) -> Frame:
        message = self._world.truth.find(server_msg_id)
        if message is None:
            raise NexoError("message_not_found")
        members = self._world.truth.of(message.conversation_id).members
        others = {user: member for user, member in members.items() if user != message.sender_id}
        read = [user for user, member in others.items() if member.read_seq >= message.seq]
        delivered = [u for u, member in others.items() if member.delivered_seq >= message.seq and u not in read]
        pending = [user for user in others if user not in read and user not in delivered]
        counts = {"read_count": len(read), "delivered_count": len(read) + len(delivered)}
        return {"read": read, "delivered": delivered, "pending": pending} | counts
