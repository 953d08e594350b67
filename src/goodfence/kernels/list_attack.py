"""Attacks on recommended lists: popularity as the guess, votes of fakes, and the hits. `NO_ITEM` ends a list."""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyIntegers, Csr, Flags, Floats, Integers, Rows
from goodfence.kernels import kernel
from goodfence.kernels.lists import NO_ITEM, insert


@kernel
def rank_popular(
    counts: Floats, order: Integers, targets: AnyIntegers, known: AnyIntegers, held: Csr, lists: Rows
) -> None:
    """Write for each target the most popular items of all other users, without the `known` ones, (targets, m) or -1.

    `order` has all columns by falling `counts`, in which the target's own items count once.
    """
    scores = np.empty(lists.shape[1])
    barred = np.zeros(counts.size, dtype=np.bool_)
    own = np.zeros(counts.size, dtype=np.bool_)
    for target in range(targets.size):
        row = targets[target]
        for entry in range(held.starts[row], held.starts[row + 1]):
            own[held.columns[entry]] = True
        for column in known[target]:
            if column >= 0:
                barred[column] = True
        n_listed = 0
        for column in order:
            if n_listed == scores.size and counts[column] < scores[n_listed - 1]:
                break
            if not barred[column]:
                score = counts[column] - (1.0 if own[column] else 0.0)
                n_listed = insert(column, score, lists[target], scores, n_listed)
        lists[target, n_listed:] = NO_ITEM
        for entry in range(held.starts[row], held.starts[row + 1]):
            own[held.columns[entry]] = False
        for column in known[target]:
            if column >= 0:
                barred[column] = False


@kernel
def vote(told: Rows, n_items: int, lists: Rows) -> None:
    """Write for each target the items that most of its fakes were shown, then by mean place, (targets, n)."""
    n_fakes, n = told.shape[1], told.shape[2]
    votes, places = np.zeros(n_items), np.zeros(n_items)
    touched = np.empty(n_items, dtype=np.int32)
    scores = np.empty(lists.shape[1])
    for target in range(told.shape[0]):
        n_touched = 0
        for fake in range(n_fakes):
            for place in range(n):
                column = told[target, fake, place]
                if column < 0:
                    break
                if votes[column] == 0.0:
                    touched[n_touched] = column
                    n_touched += 1
                votes[column] += 1.0
                places[column] += n - place
        n_listed = 0
        for position in range(n_touched):
            column = touched[position]
            score = votes[column] + places[column] / (n_fakes * n + 1.0)  # a part below 1
            n_listed = insert(column, score, lists[target], scores, n_listed)
            votes[column], places[column] = 0.0, 0.0
        lists[target, n_listed:] = NO_ITEM


@kernel
def fill(lists: Rows, guesses: Rows, filled: Rows) -> None:
    """Write each list with its free places taken by the first `guesses`, as long, that are not in it."""
    for row in range(lists.shape[0]):
        n_listed = 0
        while n_listed < lists.shape[1] and lists[row, n_listed] >= 0:
            filled[row, n_listed] = lists[row, n_listed]
            n_listed += 1
        n_told = n_listed
        for guess in guesses[row]:
            if n_listed == filled.shape[1] or guess < 0:
                break
            new = True
            for place in range(n_told):
                if lists[row, place] == guess:
                    new = False
                    break
            if new:
                filled[row, n_listed] = guess
                n_listed += 1
        filled[row, n_listed:] = NO_ITEM


@kernel
def find_hidden(lists: Rows, starts: Integers, hidden: Integers, found: Flags) -> None:
    """Mark which hidden items, those of target t from starts[t], ascending, are in the list of their target."""
    for target in range(lists.shape[0]):
        first, last = starts[target], starts[target + 1]
        for column in lists[target]:
            if column < 0:
                break
            place = first + np.searchsorted(hidden[first:last], column)
            if place < last and hidden[place] == column:
                found[place] = True
