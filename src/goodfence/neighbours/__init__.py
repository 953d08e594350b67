"""Candidate lists, draws and predictions on this machine, over its threads."""
