"""Notifications for members without a connection: what the journal has is sent to push services."""
