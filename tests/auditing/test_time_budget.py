"""How many users are attacked by default, and by how many fits: counted, never timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import pytest

import goodfence as gf
from goodfence.attack.attack import Subject
from goodfence.attack.knn_attack import AdaptiveAttack
from goodfence.attack.strongest import usual_attackers
from goodfence.auditing.audit import affordable_targets
from tests.support.attack_worlds import tied_ratings


@pytest.mark.parametrize(
    ("n_users", "n_ratings", "refits", "expected"),
    [
        (1_238, 45_027, False, 1_238),
        (6_040, 1_000_209, False, 1_999),
        (50_000, 10**8, False, 200),
        (150, 10**8, False, 150),
        (1_238, 45_027, True, 30),
        (20, 300, True, 20),
        (50_000, 10**8, True, 10),
    ],
)
def test_the_size_of_the_data_decides_how_many_are_attacked(
    n_users: int, n_ratings: int, refits: bool, expected: int
) -> None:
    ratings = SimpleNamespace(shape=(n_users, 10), n_ratings=n_ratings)
    subject: Any = SimpleNamespace(ratings=ratings, traits=SimpleNamespace(needs_refits=refits))
    assert affordable_targets(subject) == expected


class Slow(gf.PrivateMeans):
    """A private model of which a fit takes a second, by a clock of its own."""

    fits = 0

    def fit(self, ratings: gf.Ratings) -> Self:
        Slow.fits += 1
        return super().fit(ratings)


def test_a_private_model_is_attacked_by_all_in_ten_fits_for_each_world() -> None:
    """Four numbers of plain fakes, and three of helpers, twice each: however many hidden items are asked for."""
    ratings = tied_ratings(3, values=(1, 2, 3, 4, 5))
    subject = Subject(ratings, Slow(epsilon=1.0, items="from ratings"))
    attackers = usual_attackers(subject, known=3)
    helping = [one for one in attackers if isinstance(one, AdaptiveAttack)]
    assert {(one.fakes, one.centred, one.helpers) for one in helping} == {
        (n, centred, helpers) for n in (10, 20, 50) for centred in (False, True) for helpers in ("measured", "equal")
    }
    before = Slow.fits
    for one in attackers:
        one.run_on(subject, targets=1, rng=1)
    assert Slow.fits - before == 2 * (4 + 3 * 2)
