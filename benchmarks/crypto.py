"""Encrypted threshold neighbours (Erkin et al.) with real keys: equal to the clear, and what it costs.

Run by ./scripts/crypto-test, in an environment with the extra `crypto`. All parties are in one process; the asker
alone has the secret keys.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
import warnings
from typing import Any

import numpy as np
from tno.mpc.encryption_schemes.dgk import DGK
from tno.mpc.encryption_schemes.paillier import Paillier
from tno.mpc.encryption_schemes.utils import next_prime
from tno.mpc.protocols.secure_comparison import Initiator, KeyHolder

import goodfence as gf
from benchmarks.results import write_table

DENSE, BITS, THRESHOLD = 100, 7, 0.3
LENGTH = 15
"""Bits of a similarity: two profiles of length 2^7 have at most a product of 2^14, and rounding."""
SLOT = 14
"""Bits of a sum of ratings or of a count in a packed number: enough for 943 people."""


class Mailbox:
    """Messages between two parties in one process."""

    def __init__(self) -> None:
        self.queues: dict[str, asyncio.Queue[Any]] = {}

    def queue(self, name: str) -> asyncio.Queue[Any]:
        """Return the queue of messages of this name."""
        return self.queues.setdefault(name, asyncio.Queue())

    async def send(self, party_id: str, message: Any, msg_id: str) -> None:
        """Put a message where its receiver finds it."""
        await self.queue(f"{party_id} {msg_id}").put(message)


class End:
    """One party's end of the mailbox."""

    def __init__(self, box: Mailbox, own: str) -> None:
        self.box, self.own = box, own

    async def send(self, party_id: str, message: Any, msg_id: str) -> None:
        """Send a message to another party."""
        await self.box.send(party_id, message, msg_id)

    async def recv(self, party_id: str, msg_id: str) -> Any:
        """Wait for a message to this party."""
        del party_id
        return await self.box.queue(f"{self.own} {msg_id}").get()


class Timer:
    """How long each kind of work took."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def add(self, name: str, began: float) -> None:
        """Add what began then and ends now."""
        self.seconds.setdefault(name, []).append(time.process_time() - began)

    def mean(self, name: str) -> float:
        """Return how long it took on average."""
        return float(np.mean(self.seconds[name]))


async def is_at_least(least: int, similarity: Any, asker: KeyHolder, provider: Initiator) -> Any:
    """Return an encryption of 1 if the encrypted similarity is at least `least`, of 0 if not."""
    found, _ = await asyncio.gather(
        provider.perform_secure_comparison(least, similarity), asker.perform_secure_comparison()
    )
    return found


def packed(numbers: np.ndarray, per: int) -> list[int]:
    """Return non-negative integers side by side in as few large ones."""
    return [
        sum(int(number) << (SLOT * at) for at, number in enumerate(numbers[first : first + per]))
        for first in range(0, len(numbers), per)
    ]


def unpacked(large: list[int], per: int, n: int) -> np.ndarray:
    """Return what `packed` packed."""
    mask = (1 << SLOT) - 1
    found = [(one >> (SLOT * at)) & mask for one in large for at in range(per)]
    return np.array(found[:n])


async def run(ratings: gf.Ratings, timer: Timer, key_bits: int) -> tuple[Any, Any, int]:
    """Run the protocol for the first user against all others; return sums, counts, and how many are near."""
    model = gf.papers.ThresholdNeighbours(threshold=THRESHOLD, dense=DENSE, bits=BITS).fit(ratings)
    paillier = Paillier.from_security_parameter(key_length=key_bits, precision=0)
    dgk = DGK.from_security_parameter(v_bits=160, n_bits=1024, u=next_prime(1 << (LENGTH + 2)), full_decryption=False)
    box = Mailbox()
    asker = KeyHolder(LENGTH, End(box, "asker"), "provider", paillier, dgk)
    provider = Initiator(LENGTH, End(box, "provider"), "asker")
    csr, profiles = ratings.csr, model.profiles_
    own = model.profile(csr[[0]].indices, csr[[0]].data)
    began = time.process_time()
    sent = [paillier.encrypt(int(value)) for value in own]
    timer.add("asker encrypts the profile", began)
    per = (key_bits - 18) // SLOT
    totals: list[Any] = []
    near = 0
    for row in range(1, ratings.shape[0]):
        began = time.process_time()
        part = slice(profiles.indptr[row], profiles.indptr[row + 1])
        pairs = zip(profiles.indices[part].tolist(), profiles.data[part].tolist(), strict=True)
        similarity = paillier.encrypt(0)
        for column, value in pairs:
            similarity = similarity + sent[column] * int(value)
        timer.add("similarity", began)
        began = time.process_time()
        chosen = await is_at_least(math.ceil(model.least), similarity, asker, provider)
        timer.add("comparison", began)
        began = time.process_time()
        dense = csr[[row]].toarray()[0]
        numbers = [*packed(dense, per), *packed(dense > 0, per)]
        masked = [chosen * number for number in numbers]
        totals = masked if not totals else [a + b for a, b in zip(totals, masked, strict=True)]
        timer.add("masked ratings and counts", began)
        near += int(paillier.decrypt(chosen))  # for the comparison with the clear only
    began = time.process_time()
    large = [int(paillier.decrypt(one)) for one in totals]
    timer.add("asker decrypts", began)
    half, n_items = len(large) // 2, ratings.shape[1]
    for scheme in (paillier, dgk):
        scheme.shut_down()
    return unpacked(large[:half], per, n_items), unpacked(large[half:], per, n_items), near


def some(ratings: gf.Ratings, n: int) -> gf.Ratings:
    """Return n users with many ratings, and all items."""
    rows = np.sort(np.argsort(-np.diff(ratings.csr.indptr), kind="stable")[: 8 * n : 8])
    return gf.Ratings(ratings.csr[rows], ratings.users[rows], ratings.items, ratings.scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--people", type=int, default=12, help="how many others answer")
    parser.add_argument("--key-bits", type=int, default=2048)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the library's hints about unused randomness
    whole = gf.load(options.data)
    ratings, timer = some(whole, options.people + 1), Timer()
    sums, counts, near = asyncio.run(run(ratings, timer, options.key_bits))
    model = gf.papers.ThresholdNeighbours(threshold=THRESHOLD, dense=DENSE, bits=BITS).fit(ratings)
    clear = model.sums(ratings.csr[[0]].indices, ratings.csr[[0]].data, 0)
    if not (np.array_equal(sums, clear[0]) and np.array_equal(counts, clear[1]) and near > 0):
        raise SystemExit("the encrypted sums are not those in the clear")
    others = whole.shape[0] - 1
    each = sum(timer.mean(name) for name in ("similarity", "comparison", "masked ratings and counts"))
    alone = sum(timer.mean(name) for name in ("asker encrypts the profile", "asker decrypts"))
    rows = [[name, f"{timer.mean(name):.3f} s", str(len(took))] for name, took in timer.seconds.items()]
    question = others * each + alone
    rows += [
        [f"one asker, {others} others, one core", f"{question / 60:.1f} min", "computed"],
        [f"all {others + 1} askers", f"{question * (others + 1) / 86400:.1f} days", "computed"],
    ]
    write_table(
        "crypto",
        "Threshold neighbours under encryption",
        ["work", "mean processor time", "times"],
        rows,
        command="./scripts/crypto-test",
        data=options.data,
        people=f"{options.people} others, {near} of them near, sums and counts equal to the clear",
        keys=f"Paillier {options.key_bits} bits, DGK 1024 bits",
    )


if __name__ == "__main__":
    main()
