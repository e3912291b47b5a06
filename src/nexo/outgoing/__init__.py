"""Requests to addresses that an operator or a product has named: checked, bounded in time and size."""
