"""Dialect A, `nexo.envelope.v1`: flat JSON objects with a `type`, camelCase."""
