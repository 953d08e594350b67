"""What is handed on of a private model is a function of what was released and of public input, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.arrays import Integers
from goodfence.data.ratings import Ratings
from goodfence.data.splits import core
from goodfence.errors import SettingError
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.cf import PrivateCF, PrivateMeans
from goodfence.papers.mcsherry_mironov import McSherryMironov
from goodfence.privacy.noise import Publisher

CATALOGUE = [*range(10, 60)]
Row = tuple[str, str, int]


def read(rows: list[Row]) -> Ratings:
    """Return the ratings as a file of them is read: ids are numbers if all are, titles are those of what was rated."""
    if not rows:
        return Ratings(sparse.csr_array((0, 0)), [], [], scale=(1, 5))
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    for column in columns[:2]:
        if all(value.isdecimal() for value in column):
            column[:] = [int(value) for value in column]
    kinds = [pa.int64() if all(isinstance(v, int) for v in c) else pa.string() for c in columns]
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    named = Ratings.from_frame(pa.table(arrays, ["user", "item", "rating"]), scale=(1, 5))
    titles = {item: f"Film {item}" for item in named.items.tolist()}
    ids = (named.users, named.items)
    return Ratings(named.csr, *ids, named.scale, titles, items_declared=False)


def some_rows(rng: np.random.Generator, every_item: bool) -> list[Row]:
    n_users = int(rng.integers(0 if not every_item else 1, 12))
    rows = [
        (str(user), str(item), int(rng.integers(1, 6)))
        for user in range(n_users)
        for item in rng.choice(CATALOGUE, 6, replace=False)
    ]
    if every_item:  # without a catalogue two neighbours have the same list of items
        rows += [("900", str(item), 3) for item in CATALOGUE]
    return rows


def pairs(unit: str, *, every_item: bool, n: int) -> Iterator[tuple[list[Row], list[Row]]]:
    """Yield data sets and the same with one rating or one user more, of any kind of id."""
    rng = np.random.default_rng(5)
    for turn in range(n):
        rows = some_rows(rng, every_item)
        names = ["zoe", "7000", "-1"] if not every_item else ["zoe", "7000"]
        who = names[turn % len(names)]
        extra = CATALOGUE if every_item else [*CATALOGUE, "tt9", "4711"]
        what = rng.permutation(np.array(extra, dtype=object))[: 5 if unit == "user" else 1]
        new = [(who, str(item), int(rng.integers(1, 6))) for item in what]
        yield rows, [*rows, *new]


class Replay:
    """A door that lets the same released numbers out for both data sets: as likely noise as any other."""

    def __init__(self) -> None:
        self.released: list[Integers] = []
        self.turn: int | None = None
        self.publish = Publisher.publish

    def __call__(self, publisher: Publisher, name: str, totals: Integers, bound: int) -> Integers:
        noisy = self.publish(publisher, name, totals, bound)
        if self.turn is None:
            self.released.append(noisy)
            return noisy
        self.turn += 1
        return self.released[self.turn - 1]


MODELS: dict[str, Callable[..., PrivateRecommender]] = {
    "means, rating": lambda **public: PrivateMeans(epsilon=1.0, **public),
    "means, user": lambda **public: PrivateMeans(epsilon=1.0, unit="user", **public),
    "cf, rating": lambda **public: PrivateCF(epsilon=2.0, plan="covariance", **public),
    "cf, user": lambda **public: PrivateCF(epsilon=2.0, unit="user", plan="half_step", **public),
    "mcsherry, rating": lambda **public: McSherryMironov(epsilon=2.0, **public),
}


@pytest.mark.parametrize("given", [True, False], ids=["catalogue", "from ratings"])
@pytest.mark.parametrize("kind", MODELS)
def test_the_file_that_anybody_may_hold_tells_nothing_but_the_release(
    kind: str, given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = kind.split(", ")[1]
    public = {"catalogue": CATALOGUE} if given else {"items": "from ratings"}
    for turn, (without, with_it) in enumerate(pairs(unit, every_item=not given, n=12)):
        replay = Replay()
        monkeypatch.setattr(Publisher, "publish", lambda *a, replay=replay: replay(*a))
        saved: list[bytes] = []
        for rows in (without, with_it):
            path = tmp_path / f"{turn}-{len(saved)}"
            MODELS[kind](**public).fit(read(rows)).save(path, ratings=False)
            saved.append(path.read_bytes())
            replay.turn = 0
        assert saved[0] == saved[1], f"pair {turn}"
        monkeypatch.undo()


@pytest.mark.parametrize("given", [True, False], ids=["catalogue", "from ratings"])
@pytest.mark.parametrize("unit", ["event", "user"])
def test_a_file_of_private_lists_tells_nothing_but_the_release(
    unit: Any, given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor whether somebody had something twice: the events are likes, each once but for those that are added."""
    public: dict[str, Any] = {"catalogue": CATALOGUE} if given else {"items": "from ratings"}
    for turn, (without, with_it) in enumerate(pairs(unit, every_item=not given, n=12)):
        replay = Replay()
        monkeypatch.setattr(Publisher, "publish", lambda *a, replay=replay: replay(*a))
        saved: list[bytes] = []
        for rows in (without, with_it):
            found = read([(user, item, 1 + (place >= len(without))) for place, (user, item, _) in enumerate(rows)])
            how: dict[str, Any] = {"feedback": "implicit", "liked_from": 4.0, "items_declared": False}
            events = Ratings(found.csr, found.users, found.items, **how)
            path = tmp_path / f"{turn}-{len(saved)}"
            model = gf.PrivateTopN(epsilon=2.0, unit=unit, **public).fit(events)
            assert model.ratings_.liked_from == 4.0
            model.save(path, ratings=False)
            saved.append(path.read_bytes())
            replay.turn = 0
        assert saved[0] == saved[1], f"pair {turn}"
        monkeypatch.undo()


def test_with_the_ratings_the_same_pairs_differ(tmp_path: Path) -> None:
    """The comparison itself: it sees a difference where there is one."""
    without, with_it = next(iter(pairs("rating", every_item=False, n=1)))
    for name, rows in (("without", without), ("with", with_it)):
        model = PrivateMeans(epsilon=1.0, catalogue=CATALOGUE, rng=1).fit(read(rows))
        model.save(tmp_path / name)
    assert (tmp_path / "without").read_bytes() != (tmp_path / "with").read_bytes()


@pytest.mark.parametrize("kind", MODELS)
def test_an_item_of_another_kind_is_left_out_silently(kind: str) -> None:
    rows = [("1", "10", 3), ("2", "20", 4)]
    numbers, text = read(rows), read([*rows, ("2", "tt9", 5)])
    assert text.items.tolist() == ["10", "20", "tt9"]
    for ratings in (numbers, text):
        model = MODELS[kind](catalogue=CATALOGUE).fit(ratings)
        assert model.ratings_.items.tolist() == CATALOGUE
        assert model.ratings_.csr.toarray()[:, [0, 10]].tolist() == [[3.0, 0.0], [0.0, 4.0]]
        assert model.ratings_.n_ratings == 2
        assert model.ratings_.title(10) == "Film 10"


@pytest.mark.parametrize("kind", MODELS)
def test_which_items_are_public_must_be_said(kind: str) -> None:
    undecided = MODELS[kind]()
    with pytest.raises(SettingError, match=r"catalogue=.*items='from ratings'"):
        undecided.fit(read([("1", "10", 3)]))
    assert "The scale and the list of items are public." in undecided.guarantee().reason
    chosen = MODELS[kind](items="from ratings")
    assert "the list of items in the ratings" in chosen.guarantee().reason


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_items_that_were_declared_with_the_ratings_are_a_choice(kind: str) -> None:
    """A published data set, a given list, a matrix with its columns; what was read, or thinned out by it, is none."""
    read_rows = read([("1", "10", 3)])
    stated = [gf.load("movietweetings"), read_rows.on_items(CATALOGUE), gf.synthetic(users=30, items=20, ratings=200)]
    for ratings in (*stated, gf.holdout(stated[0], rng=7)[0]):
        assert ratings.items_declared
        MODELS[kind]().fit(ratings)
    for ratings in (read_rows, core(stated[0], per_user=20, per_item=11)):
        assert not ratings.items_declared
        with pytest.raises(SettingError, match="the list of items must be chosen"):
            MODELS[kind]().fit(ratings)


def test_the_choice_survives_a_file(tmp_path: Path) -> None:
    model = PrivateMeans(epsilon=1.0, items="from ratings").fit(read([("1", "10", 3)]))
    model.save(tmp_path / "model")
    again = gf.PrivateMeans.load(tmp_path / "model")
    assert (again.items, again.catalogue) == ("from ratings", None)
    again.fit(read([("1", "10", 3), ("1", "20", 3)]))
