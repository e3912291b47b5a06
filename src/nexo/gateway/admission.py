"""Admission: whether an upgrade request becomes a connection, and in which dialect."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from nexo.config import Config
from nexo.core.addresses import address_of, client_address, parse_networks
from nexo.errors import NexoError
from nexo.gateway.connection import Connection
from nexo.gateway.handshake import Handshake, asks_outcome, parse_query, read_handshake, read_openim
from nexo.gateway.host import Host
from nexo.service.accounts import Accounts
from nexo.transport.connection_counts import PER_ADDRESS
from nexo.transport.websocket import Accept, Refuse, UpgradeRequest
from nexo.wire.dialect import Dialect
from nexo.wire.handshakes import encode_outcome
from nexo.wire.openim.codec import codec_for
from nexo.wire.openim.shown import Names
from nexo.wire.registry import choose

DRAIN_RETRY_MS = 1000
FULL_RETRY_MS = 5000
OPENIM_PATH = "/openim"


class Admission:
    def __init__(self, config: Config, host: Host[Connection], accounts: Accounts, names: Names | None = None) -> None:
        """`names` has the nicknames of users for OpenIM's clients; None: there is no place for them."""
        self._names = names
        self._host = host
        self._accounts = accounts
        self._trusted = parse_networks(config.http.trusted_proxies)
        self._count = 0
        self.is_stopping = False
        self.draining = ""  # why clients are sent to other instances

    def decide(self, request: UpgradeRequest) -> Accept | Refuse | Coroutine[Any, Any, Accept | Refuse]:
        """Returns the decision about an upgrade request; a coroutine when a token has to be checked first."""
        if self.is_stopping:
            return _refuse(NexoError("server_shutdown"))
        if self.draining:
            return _refuse(NexoError("server_shutdown", self.draining, retry_after_ms=DRAIN_RETRY_MS))
        try:
            query = parse_query(request.query)
            dialect: Dialect
            subprotocol: str | None = None
            if request.path == OPENIM_PATH and self._names is not None:
                query = read_openim(query)
                base_url = address_of(request.headers)
                dialect = codec_for(query.get("sdk_type", ""), query.get("compression", ""), base_url, self._names)
            else:
                dialect, subprotocol = choose(request.path, query, request.subprotocols)
        except NexoError as error:
            return _refuse(error)
        address = client_address(request.remote, request.headers.get("x-forwarded-for", ""), self._trusted)
        full = request.counted.move(address) if request.counted is not None else ""
        if full == PER_ADDRESS:
            detail = "Too many connections from this address"
            return _refuse(NexoError("too_many_requests", detail, retry_after_ms=FULL_RETRY_MS))
        if full:
            detail = "This instance has as many connections as it may have"
            return _refuse(NexoError("server_busy", detail, retry_after_ms=FULL_RETRY_MS))
        self._count += 1
        conn_id = f"c{self._count:x}"
        try:
            shown = read_handshake(query, request.headers)
        except NexoError as error:
            if not asks_outcome(query):
                return _refuse(error, 401, dialect)
            connection = Connection(self._host, dialect.for_connection(None), conn_id, address)
            connection.asks_outcome, connection.presigned = True, error
            return Accept(connection, subprotocol)
        connection = Connection(self._host, dialect.for_connection(shown.token), conn_id, address)
        if shown.token is None and dialect.signs_in:
            return Accept(connection, subprotocol)
        return self._let_in(connection, shown, subprotocol)

    async def _let_in(self, connection: Connection, shown: Handshake, subprotocol: str | None) -> Accept | Refuse:
        """Check the token of the upgrade request before the connection is accepted. A client that asks for the
        outcome in a frame is accepted in any case."""
        connection.asks_outcome = shown.asks_outcome
        try:
            if shown.token is None:
                raise NexoError("missing_token", "This dialect has its token in the query or in Authorization: Bearer")
            session = await self._accounts.authenticate(shown.token)
            shown.check(session)
        except NexoError as error:
            if not shown.asks_outcome:
                status = error.row.http_status if error.row.retry else 401
                return _refuse(error, status, connection.dialect)
            connection.presigned = error
        else:
            connection.device_id = session.device_id
            connection.presigned = session
        return Accept(connection, subprotocol)


def _refuse(error: NexoError, status: int | None = None, dialect: Dialect | None = None) -> Refuse:
    body = encode_outcome(error) if dialect is None else dialect.encode_outcome(error)
    return Refuse(status or error.row.http_status, body)
