"""Nexo: a self-hosted instant-messaging server."""

__version__ = "0.1.0"
