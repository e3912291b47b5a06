"""Ids of the old system as ids of Nexo. The same id always becomes the same, whatever else is imported."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping

from nexo.errors import NexoError
from nexo.ids import CANARY_IDS, check_client_msg_id, is_user_id

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_GROUP_CHARS = 12


def _in_base_62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, rest = divmod(number, 62)
        digits.append(_DIGITS[rest])
    return "".join(reversed(digits))


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())


def group_id_of(legacy_id: object) -> str:
    """Numbers keep their value, written in base 62: no two of 64 bits meet. Other ids are hashed."""
    text = str(legacy_id)
    if text.isascii() and text.isdigit() and int(text) < 1 << 64:
        return "g_" + _in_base_62(int(text), _GROUP_CHARS)
    return "g_" + _in_base_62(_number_of(text) % 62**_GROUP_CHARS, _GROUP_CHARS)


def user_id_of(legacy_id: str, renames: Mapping[str, str]) -> str:
    """As it is where Nexo allows it; as the operator says where they say so; else made of its hash."""
    wanted = renames.get(legacy_id, legacy_id)
    if is_user_id(wanted) and wanted not in CANARY_IDS:
        return wanted
    return f"u{_in_base_62(_number_of(legacy_id), 16)}"


def is_client_msg_id(value: str) -> bool:
    try:
        check_client_msg_id(value)
    except NexoError:
        return False
    return True


def client_msg_id_of(message_id: int) -> str:
    return f"legacy-{message_id}"
