"""Recommenders: fit, predict, recommend, answer, and say what they guarantee."""
