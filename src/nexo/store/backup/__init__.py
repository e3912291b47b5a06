"""Backups of the embedded database: one file, written and restored so that a kill at any moment leaves no half."""
