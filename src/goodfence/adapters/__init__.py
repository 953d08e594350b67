"""What people already run: their recommenders as ours, ours in their libraries, and their data."""
