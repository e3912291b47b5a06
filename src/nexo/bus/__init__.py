"""The bus between instances: presence, routing, numbered frames, over Redis or within one process."""
