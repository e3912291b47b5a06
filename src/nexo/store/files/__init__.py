"""Rows of files, of the messages and profiles that name them, and of uploads."""
