"""Other libraries: their recommenders as ours, ours in theirs, and their data."""
