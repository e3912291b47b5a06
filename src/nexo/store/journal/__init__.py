"""The journal in SQL: written with each change, read in order, trimmed."""
