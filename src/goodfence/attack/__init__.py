"""The attack laboratory: what a recommender gives away to fake profiles.

The one place of the defaults that attack, audit, frontier, pages and command line share; this file imports nothing,
so that help is fast.
"""

DEFAULT_KNOWN = 8
"""How many of the target's ratings the attacker knows."""
DEFAULT_TARGETS = 200
"""How many users are attacked."""
DEFAULT_TARGETS_REFITTED = 30
"""How many where every target needs fits."""
FRONTIER_TARGETS = 100
"""How many for every recommender of a frontier."""
DEFAULT_FAKES = 50
"""How many fake profiles a given attack makes where the recommender has no k to go by; also the usual k."""
# More fakes than a neighbourhood holds crowd the target out of it, and far fewer are lost in it: where the number
# of neighbours is not known, one attacker alone may find nothing where another recovers everything.
FAKES_TRIED = (10, 20, 50)
"""How many fake profiles attack what has no k, or one that nobody knows: each number in turn."""
ADAPTIVE_ITEMS = 5
"""For how many hidden items of each target the adaptive attackers ask where they share a fit; else for one."""
GUESSING = 0.02
"""An advantage of at most this is called no better than guessing, by the attackers tried."""
