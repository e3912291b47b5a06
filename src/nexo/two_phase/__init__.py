"""Two-phase acknowledgement: sends are accepted into a stream of Redis first and saved in the database later."""
