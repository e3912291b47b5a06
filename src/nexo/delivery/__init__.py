"""Delivery to connected clients: registered connections, audiences, fan-out, receipts, presence."""
