"""Webhooks: the journal delivered to a product's backend, and the question before a send."""
