"""The Python client of the Nexo messaging server: `NexoClient`, and for a product's backend `NexoBackend`."""

from nexo_client.backend import NexoBackend
from nexo_client.calls import Call
from nexo_client.client import NexoClient
from nexo_client.conversation import Conversation
from nexo_client.core.options import Options
from nexo_client.errors import ClientError
from nexo_client.inbox_stream import InboxMessage
from nexo_client.outgoing_message import OutgoingMessage
from nexo_client.storage.file import FileStorage
from nexo_client.storage.memory import MemoryStorage
from nexo_client.types import BackendEvent, Draft, Message, Quote, Reaction, Session, Storage
from nexo_client.webhooks import verify_webhook

__version__ = "0.1.0"

__all__ = [
    "BackendEvent",
    "Call",
    "ClientError",
    "Conversation",
    "Draft",
    "FileStorage",
    "InboxMessage",
    "MemoryStorage",
    "Message",
    "NexoBackend",
    "NexoClient",
    "Options",
    "OutgoingMessage",
    "Quote",
    "Reaction",
    "Session",
    "Storage",
    "verify_webhook",
]
