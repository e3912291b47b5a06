"""Moving whole stores: plain connections for bulk work, a record of how far it got, the copy and its proof."""
