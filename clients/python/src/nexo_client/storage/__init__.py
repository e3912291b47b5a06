"""Storages for the session, the outbox and the baselines."""
