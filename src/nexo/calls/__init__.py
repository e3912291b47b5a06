"""Calls between two users: signalling and records. Media goes between the devices."""
