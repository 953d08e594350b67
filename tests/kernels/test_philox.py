"""Philox4x32-10: the published known answers, and a pure function of its place."""

from __future__ import annotations

import numpy as np
import pytest

from goodfence.kernels.draw import DRAW, NOISE, hash_candidates, philox, to_uniform, uniform_and_coin
from tests.support import reference

pytestmark = pytest.mark.kernel

ONES = 0xFFFFFFFF
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([ONES] * 4, [ONES] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers_of_random123(counter: list[int], key: list[int], words: list[int]) -> None:
    c0, c1, c2, c3 = (np.uint64(word) for word in counter)
    k0, k1 = (np.uint64(word) for word in key)
    assert [int(word) for word in philox(c0, c1, c2, c3, k0, k1)] == words
    assert reference.philox(counter, key) == words


@pytest.mark.parametrize("key", [0, 7, 2**63 + 5, 2**64 - 1])
def test_the_hashes_are_those_of_the_plain_twin(key: int) -> None:
    candidates = np.array([0, 1, 5, 2**31 - 1, 5], dtype=np.int32)
    out = np.empty(5, dtype=np.uint64)
    hash_candidates(np.uint64(key), DRAW, np.uint64(2**32 - 1), candidates, out)
    wanted = [reference.uniform(key, 0, 2**32 - 1, int(row)) for row in candidates]
    assert [to_uniform(one) for one in out] == wanted
    assert out[2] == out[4]


def test_uniforms_are_strictly_between_0_and_1() -> None:
    assert to_uniform(np.uint64(0)) == 2.0**-53
    assert to_uniform(np.uint64(2**52 - 1)) == 1 - 2.0**-53


def test_every_part_of_the_place_matters() -> None:
    places = [(7, 0, 1, 2), (8, 0, 1, 2), (7, 1, 1, 2), (7, 0, 2, 2), (7, 0, 1, 3), (7, 0, 2, 1)]
    places.append((7 + 2**32, 0, 1, 2))
    seen = set()
    for key, purpose, asker, candidate in places:
        words = [np.uint64(word) for word in (key, purpose, asker, candidate)]
        seen.add(uniform_and_coin(*words)[0])
    assert len(seen) == len(places)


def test_the_coin_is_a_bit_of_another_word() -> None:
    coins = []
    for candidate in range(40):
        words = (np.uint64(3), NOISE, np.uint64(4), np.uint64(candidate))
        chance, coin = uniform_and_coin(*words)
        plain = reference.philox([candidate, 4, 1, 0], [3, 0])
        assert chance == reference.uniform(3, 1, 4, candidate)
        assert coin == (plain[2] % 2 == 1)
        coins.append(coin)
    assert 0 < sum(coins) < 40
