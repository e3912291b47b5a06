"""Where people are connected: the one port, WebSocket connections, who is here, and pushing to them."""
