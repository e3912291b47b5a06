"""Notifications for members without a connection, made from the journal and sent to push services."""
