"""What search reads from the database, and its index in a server database."""
