"""The server port: HTTP and WebSocket connections."""
