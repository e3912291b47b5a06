"""Looks names up, each in a thread of its own.

The event loop has two threads for the names of the whole process, of databases and Redis too, and a name server that
does not answer keeps one for many seconds. A user may name a host of their own (Web Push): it must delay nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

UNDER_WAY_MAX = 128


class NameLookups:
    """At most `UNDER_WAY_MAX` names are looked up at a time. Users and operators name hosts: each kind has its own."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def find(self, host: str, port: int) -> list[str]:
        """Returns the addresses of a name, or raises OSError. Callers that ask for the same name share a look-up, which
        continues when a caller has given up."""
        found = self._under_way.get((host, port))
        if found is None or found.get_loop() is not asyncio.get_running_loop():
            found = self._begin(host, port)
        return await asyncio.shield(found)

    def _begin(self, host: str, port: int) -> asyncio.Future[list[str]]:
        if len(self._under_way) >= UNDER_WAY_MAX:
            raise OSError(f"{UNDER_WAY_MAX} names are being looked up, and their name servers do not answer")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()
        self._under_way[host, port] = answer

        def end(found: list[str] | OSError) -> None:
            if self._under_way.get((host, port)) is answer:
                del self._under_way[host, port]
            if isinstance(found, OSError):
                answer.set_exception(found)
                answer.exception()  # all callers may have given up
            else:
                answer.set_result(found)

        def look_up() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, _addresses_of(host, port))

        threading.Thread(target=look_up, name="name_lookup", daemon=True).start()
        return answer


def _addresses_of(host: str, port: int) -> list[str] | OSError:
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError as error:  # a label that is empty or too long
        return OSError(f"{host} is not a name: {error}")
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


OPERATORS = NameLookups()
USERS = NameLookups()
