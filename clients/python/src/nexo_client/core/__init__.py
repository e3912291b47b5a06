"""The client without I/O: frames and times go in; frames, events and storage writes come out."""
