"""Alembic migrations, one file per step in `versions/`. `store/migrate.py` runs them."""
