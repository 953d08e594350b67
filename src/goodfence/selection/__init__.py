"""Whom to ask: one published mechanism per file, and what is written once for all of them."""
