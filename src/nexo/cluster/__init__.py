"""Delivery across instances: messages published to and received from them, and the health of the cluster."""
