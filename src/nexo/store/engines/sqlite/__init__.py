"""SQLite, the embedded default: a file in the data folder, used by one process."""
