"""The dialects: pure codecs between frames and the commands and events of `core`. None knows another."""
