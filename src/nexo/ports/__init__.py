"""The interfaces between the services and their implementations. Their docstrings are the guarantees.

Every method may raise `NexoError("server_busy")` when the database cannot be reached; nothing was changed then
unless the docstring states otherwise.
"""

from nexo.ports.bus import Bus, BusListener, PresenceChange, PresenceStore, Registration
from nexo.ports.message_changes import MessageChangeStore, SentBefore
from nexo.ports.publishing import Address, CommitListener, Origin, Outcome, SendAcceptor
from nexo.ports.stores import (
    ConversationStore,
    GroupStore,
    InstanceRow,
    InstancesSeen,
    InstanceStore,
    MessageStore,
    OwnerStore,
)
from nexo.ports.values import (
    ActiveSince,
    Audience,
    DeletedSince,
    Deletion,
    EditResult,
    GivenReaction,
    GroupChange,
    GroupDraft,
    Listener,
    Located,
    MemberSettings,
    MessageEdit,
    MessageEvent,
    Permission,
    PinResult,
    ReactionsWritten,
    ReactResult,
    RecallResult,
)

__all__ = [
    "ActiveSince",
    "Address",
    "Audience",
    "Bus",
    "BusListener",
    "CommitListener",
    "ConversationStore",
    "DeletedSince",
    "Deletion",
    "EditResult",
    "GivenReaction",
    "GroupChange",
    "GroupDraft",
    "GroupStore",
    "InstanceRow",
    "InstanceStore",
    "InstancesSeen",
    "Listener",
    "Located",
    "MemberSettings",
    "MessageChangeStore",
    "MessageEdit",
    "MessageEvent",
    "MessageStore",
    "Origin",
    "Outcome",
    "OwnerStore",
    "Permission",
    "PinResult",
    "PresenceChange",
    "PresenceStore",
    "ReactResult",
    "ReactionsWritten",
    "RecallResult",
    "Registration",
    "SendAcceptor",
    "SentBefore",
]
