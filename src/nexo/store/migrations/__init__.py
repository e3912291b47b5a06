"""Alembic migrations, one file per step in `versions/`. `store/migrate.py` runs them.

0008_life: edits, reactions and pins of messages. 0009_own: deleting for oneself, and expiry. There is no 0013.
"""
