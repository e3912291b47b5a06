"""Called by Alembic; the connection comes from `store/migrate.py`."""

from alembic import context

from nexo.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
