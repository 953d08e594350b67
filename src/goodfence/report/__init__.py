"""The audit as a page: one HTML file without scripts, and the sentences that the command line shares with it."""
