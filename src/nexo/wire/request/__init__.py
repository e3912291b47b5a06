"""Dialect B, `nexo.request.v1`: numbered requests and answers around a `data` object, snake_case."""
