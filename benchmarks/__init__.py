"""Measurements beside the peers."""
