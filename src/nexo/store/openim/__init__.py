"""What OpenIM clients need of the store: messages by number, and versions of lists."""
