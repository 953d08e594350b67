"""Recommenders as one line of settings: what is put around others takes their settings too."""

from __future__ import annotations

import pytest

from goodfence.errors import SettingError
from goodfence.models.method import pairs, parsed


@pytest.mark.parametrize("line", ["noisy-answers epsilon=2 k=7", "nends k=7", "randomised-response epsilon=2 k=7"])
def test_what_is_put_around_a_neighbourhood_takes_its_k(line: str) -> None:
    found = parsed(line).recommender
    assert found.recommender.mechanism.k == 7


def test_what_has_no_neighbourhood_takes_no_k() -> None:
    with pytest.raises(SettingError, match="SlopeOne has no setting 'k'"):
        parsed("slope-one k=7")


def test_a_setting_is_given_once() -> None:
    assert pairs(["noise=2", "min-common=3"]) == {"noise": 2, "min_common": 3}
    with pytest.raises(SettingError, match="k must be given once, got 'k=4'"):
        pairs(["k=3", "k=4"])
