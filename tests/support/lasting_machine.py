"""A life driven at random: updates, crashes, older files put back, people forgotten; an index is published once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy import sparse

import goodfence as gf
from goodfence.errors import LedgerProblem, SettingError
from goodfence.ledger.verify import verify

N_ITEMS, UPDATES = 12, 8
SEEDS = st.integers(0, 5)


def arrivals(seed: int) -> gf.Ratings:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((6, N_ITEMS)) < 0.4, rng.integers(1, 6, (6, N_ITEMS)), 0)
    users = np.arange(4 * seed, 4 * seed + 6)  # some come back
    return gf.Ratings(sparse.csr_array(values.astype(float)), users, list(range(N_ITEMS)), (1, 5))


class Dies:
    """Noise whose draw fails after the charge."""

    private = True

    def draw(self, n: int) -> Any:
        raise MemoryError(n)


class LastingMachine(RuleBasedStateMachine):
    """`self.model` is the newest copy of the life, except in `put_back`."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = gf.Ledger(self.folder / "ledger.db", anchor=self.folder / "anchor.log")
        self.seen: dict[tuple[str, int], bytes] = {}
        self.asked: Any = None
        self.failed = False

    def teardown(self) -> None:
        self.ledger.close()
        shutil.rmtree(self.folder)

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        lasting = gf.Lasting(updates=UPDATES)
        self.model: Any = gf.PrivateMeans(epsilon=1.0, catalogue=list(range(N_ITEMS)), lasting=lasting)
        self.model.fit(arrivals(seed), ledger=self.ledger, key="1")
        self.asked = ("1", arrivals(seed))
        self.save()

    def save(self) -> None:
        self.model.save(self.folder / f"{self.model.life_.now}")

    def going(self) -> bool:
        return bool(self.model.updates_left_) and not self.failed

    @precondition(going)
    @rule(seed=st.none() | SEEDS, crash=st.booleans())
    def update(self, seed: int | None, crash: bool) -> None:
        new = None if seed is None or self.model.life_.lost else arrivals(seed)
        key = str(self.model.life_.now + 1)
        self.asked = (key, new)
        if crash:
            self.model.life_.noise = Dies()
            try:
                self.model.update(new, ledger=self.ledger, key=key)
            except MemoryError:
                self.failed = True
            self.model.life_.noise = None
            return
        self.model.update(new, ledger=self.ledger, key=key)
        self.save()

    @precondition(lambda self: self.failed)
    @rule(reloads=st.booleans())
    def go_on(self, reloads: bool) -> None:
        key, new = self.asked
        if reloads:
            self.model = gf.load_model(self.folder / f"{self.model.life_.now}")
        self.model.update(new, ledger=self.ledger, key=key)
        self.failed = False
        self.save()

    @precondition(lambda self: self.failed)
    @rule(seed=SEEDS)
    def go_on_with_other_data(self, seed: int) -> None:
        key, new = self.asked
        if new is None or seed != self.seed_of(new):
            self.refuses(self.model, arrivals(seed), key)

    @precondition(lambda self: not self.failed)
    @rule(seed=SEEDS)
    def repeat(self, seed: int) -> None:
        key, new = self.asked
        before = self.model.life_.now
        if before > 1:
            self.model.update(new, ledger=self.ledger, key=key)
            assert self.model.life_.now == before
            if new is None or seed != self.seed_of(new):
                self.refuses(self.model, arrivals(seed), key)

    @precondition(lambda self: not self.failed)
    @rule(user=st.integers(0, 25))
    def forget(self, user: int) -> None:
        if user in self.model.ratings_.users:
            self.model.forget([user])
            self.save()

    @precondition(lambda self: self.model.life_.now > 2 and not self.failed)
    @rule(at=st.integers(1, UPDATES), key=st.sampled_from(["new", "2", "3"]))
    def put_back(self, at: int, key: str) -> None:
        """An older copy never makes an update of its own, whatever it is asked."""
        old: Any = gf.load_model(self.folder / f"{1 + at % (self.model.life_.now - 2)}")
        self.refuses(old, arrivals(6), key)

    @staticmethod
    def seed_of(new: gf.Ratings) -> int:
        return int(new.users[0]) // 4

    def refuses(self, model: Any, new: gf.Ratings, key: str) -> None:
        entries = len(self.ledger.book.entries("kind = 'charge'"))
        try:
            model.update(new, ledger=self.ledger, key=key)
        except (LedgerProblem, SettingError):
            assert len(self.ledger.book.entries("kind = 'charge'")) == entries
        else:
            raise AssertionError("an update was made twice")

    @invariant()
    def an_index_is_published_once(self) -> None:
        if self.asked is None:
            return
        life = self.model.life_
        for name, one in life.series.items():
            for at, noisy in enumerate(one.noisy, one.begun):
                assert self.seen.setdefault((name, at), noisy.tobytes()) == noisy.tobytes()

    @invariant()
    def a_cell_is_learnt_once_and_paid(self) -> None:
        if self.asked is None:
            return
        life = self.model.life_
        cells = life.learnt_cells()
        assert len(np.unique(cells)) == len(cells)
        assert verify(self.ledger.book) == []
        assert len(self.ledger.book.entries("kind = 'charge'")) == life.now + self.failed
