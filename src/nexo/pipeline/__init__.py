"""Two-phase acknowledgement: accepted into a stream of Redis first, saved in the database after that."""
