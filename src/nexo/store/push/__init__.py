"""Push notifications as rows: devices, notes, and what a notification shows."""
