"""The rules of chat, without any I/O: the model, permissions, visibility."""
