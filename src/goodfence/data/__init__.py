"""Ratings: what they are, how they are read, where they come from, how they are split and made up."""
