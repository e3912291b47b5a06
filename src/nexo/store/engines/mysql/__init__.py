"""MySQL and MariaDB, through asyncmy."""
