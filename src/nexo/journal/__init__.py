"""The journal's readers: consumers with stored cursors, and the work that keeps it small."""
