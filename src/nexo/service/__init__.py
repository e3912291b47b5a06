"""What each command does, on the ports."""
