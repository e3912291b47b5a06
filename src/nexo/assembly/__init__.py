"""Assembly of the parts: the only code that chooses implementations."""
