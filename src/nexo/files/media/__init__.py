"""What the bytes of a file show: its type, size, duration and previews. Decoding runs in processes of its own."""
