"""Client connections: admission, sign-in, commands, heartbeats and the end of a connection."""
