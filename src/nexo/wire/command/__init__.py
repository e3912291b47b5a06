"""Dialect C, `nexo.command.v1`: named commands (`chat.…`, `group.…`, `auth.…`) around a `data` object, snake_case."""
