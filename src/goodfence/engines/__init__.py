"""Candidate lists, draws and predictions in bulk: here (`local`) and on a cluster (`spark`), by the same names."""
