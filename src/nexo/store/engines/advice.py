"""What an operator can do about failures that several engines have."""

from __future__ import annotations

DISK_FULL = "make room on its disk"

# of database servers
UNREACHABLE = "is it running, and are host and port in store.url right?"
DENIED = "the user or the password in store.url is wrong"
NO_DATABASE = "create the database first (docs/operate.md), then run `nexo migrate`"
NO_RIGHT = "its user needs all rights on the database: GRANT them"
LASTING = (DENIED, NO_DATABASE, NO_RIGHT)  # until an operator changes something
TOO_MANY_CONNECTIONS = "raise its limit of connections, or lower store.pool_size on every instance"
# of PostgreSQL, with the names in store.url
NOT_OWNER = "its user must own the database; as an administrator: ALTER DATABASE {database} OWNER TO {user}"
