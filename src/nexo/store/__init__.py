"""The store: SQL, the only truth. Nothing above this package knows SQL."""
