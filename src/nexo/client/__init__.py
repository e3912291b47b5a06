"""The Python SDK: `NexoClient`. docs/clients.md has the concepts, README.md beside this file the first steps."""

from nexo.client.client import NexoClient
from nexo.client.conversation import Conversation, OutgoingMessage
from nexo.client.failures import ClientError
from nexo.client.model import Message, Quote, Session
from nexo.client.options import Options
from nexo.client.storage import FileStorage, MemoryStorage, Storage

__all__ = [
    "ClientError",
    "Conversation",
    "FileStorage",
    "MemoryStorage",
    "Message",
    "NexoClient",
    "Options",
    "OutgoingMessage",
    "Quote",
    "Session",
    "Storage",
]
