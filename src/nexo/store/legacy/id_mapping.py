"""New ids for old ones. An old id always gives the same new id, in every import."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping

from nexo.errors import NexoError
from nexo.ids import check_client_msg_id, is_reserved, is_user_id

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
    """Returns a number in base 62, so that no two of 64 bits collide; other ids are hashed."""
    text = str(legacy_id)
    if text.isascii() and text.isdigit() and int(text) < 1 << 64:
        return "g_" + _in_base_62(int(text), _GROUP_CHARS)
    return "g_" + _in_base_62(_number_of(text) % 62**_GROUP_CHARS, _GROUP_CHARS)


def user_id_of(legacy_id: str, renames: Mapping[str, str]) -> str:
    """Returns the operator's choice if there is one, else the old id if Nexo allows it, else one made of its hash."""
    wanted = renames.get(legacy_id, legacy_id)
    if is_user_id(wanted) and not is_reserved(wanted):
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
