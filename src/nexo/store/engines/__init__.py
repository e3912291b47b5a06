"""Everything that differs between SQLite, PostgreSQL and MySQL: drivers, hot statements, clocks, quirks."""
