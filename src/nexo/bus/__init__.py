"""Many instances as one server: presence, routing, numbered frames."""
