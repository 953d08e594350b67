"""The attack laboratory: what a recommender gives away to fake profiles.

The one place of the defaults that attack, audit, frontier, pages and command line share; this file imports nothing,
so that help is fast.
"""

DEFAULT_KNOWN = 8
"""How many of the target's ratings the attacker knows."""
DEFAULT_TARGETS = 200
"""How many users are attacked."""
DEFAULT_TARGETS_REFITTED = 30
"""How many by an attack that fits for each of them alone."""
FRONTIER_TARGETS = 100
"""How many for every recommender of a frontier."""
DEFAULT_FAKES = 50
"""How many fake profiles a given attack makes where the recommender has no k to go by; also the usual k."""
GUESSING = 0.02
"""An advantage of at most this is too small to be called a leak."""
