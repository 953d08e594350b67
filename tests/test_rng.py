"""Streams of chance: fixed by (seed, path), the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from goodfence.errors import SettingError
from goodfence.rng import Streams, keys_of


def test_words_are_fixed_for_ever() -> None:
    assert [hex(word) for word in Streams(7).words(2).tolist()] == ["0x78046c3e44c57fae", "0x6d17e4bdf94f8ac5"]
    assert Streams(7).order(8, 3).tolist() == [4, 5, 1, 0, 3, 6, 2, 7]
    assert Streams(7).key(1, 2) == 10549271650533257363


def test_a_stream_does_not_depend_on_what_was_drawn_before() -> None:
    streams = Streams(11)
    later = [streams.at(target).random() for target in (5, 3, 4)]
    assert later == [Streams(11).at(target).random() for target in (5, 3, 4)]
    assert len(set(later)) == 3


def test_no_seed_is_fresh_entropy() -> None:
    assert Streams().key() != Streams().key()
    assert not Streams().seeded
    assert Streams(1).seeded


def test_one_seed_in_its_several_forms() -> None:
    assert Streams([7]).key(1) == Streams(7).key(1)
    assert Streams([7, 8]).key(1) != Streams(7).key(1)
    sequence = np.random.SeedSequence(7)
    assert Streams(sequence).key(1) == Streams(np.random.SeedSequence(7)).key(1)


def test_a_generator_gives_a_new_seed_each_time() -> None:
    generator = np.random.default_rng(7)
    first, second = Streams(generator).key(), Streams(generator).key()
    assert first != second
    assert first == Streams(np.random.default_rng(7)).key()


@pytest.mark.parametrize("wrong", [True, "7", b"7", 1.5, -1, [], [3, -1]])
def test_what_is_no_seed_is_refused(wrong: object) -> None:
    with pytest.raises(SettingError, match="rng must be"):
        Streams(wrong)  # type: ignore[arg-type] # the point of the test


def test_repr_shows_no_seed() -> None:
    assert "7131" not in repr(Streams(7131))


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 5, 2**127 + 12345, [1, 2, 3], [2**40, 1, 2**70, 9]])
def test_many_keys_are_those_of_each_stream(seed: Any) -> None:
    streams, chance = Streams(seed), np.random.default_rng(0)
    rows, turns = chance.integers(0, 2**32, (2, 50))
    each = [streams.key(2, row, turn) for row, turn in zip(rows.tolist(), turns.tolist(), strict=True)]
    assert streams.keys(2, rows, turns).tolist() == each
    assert streams.keys(2, rows, 0).tolist() == [streams.key(2, row, 0) for row in rows.tolist()]


def test_keys_of_many_seeds_are_those_of_their_streams() -> None:
    seeds = [0, 1, 2**32 - 1, 2**32, 2**64 - 1, 123456789, 2**63 + 11]
    assert keys_of(seeds).tolist() == [Streams(seed).key() for seed in seeds]
