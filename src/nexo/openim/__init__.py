"""OpenIM's clients: the HTTP API under /openim, notifications, and lists with versions."""
