"""Everything on this machine, over its threads."""
