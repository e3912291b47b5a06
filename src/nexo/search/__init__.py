"""The index of search: filled from the journal, asked by users."""
