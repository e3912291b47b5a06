"""What the people of a run do, one module per kind of thing."""
