"""The life of a model that is updated: which cells and users it has learnt from, so that each is paid for once.

A cell is everything that one user ever says about one item. All that is kept here is as secret as the ratings.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import AnyIntegers, Flags, Integers, row_numbers
from goodfence.data.ids import Ids
from goodfence.data.matrix import cells_inside, check_csr
from goodfence.data.ratings import Ratings, positions_among
from goodfence.errors import DataError, ModelFileError, SettingError, require
from goodfence.ledger.book import State
from goodfence.models.persistence import Arrays
from goodfence.privacy.fixed_point import Arrival
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import Noise
from goodfence.privacy.updates import Series, Terms, narrowed

_DIGEST = 16
MOST_DIRECTIONS = 40
"""Along so many directions a life takes half steps; where fewer are found the others are 0."""
Known = dict[str, npt.NDArray[Any]]
"""The public numbers that the sums of one batch were computed with."""


@dataclass
class Life:
    """Everything that a lasting model keeps beside its ratings and what was released last."""

    terms: Terms
    room: int
    """For how many items all bounds hold: the catalogue may grow up to it."""
    now: int = 0
    """How many updates were released."""
    series: dict[str, Series] = field(default_factory=dict, repr=False)
    batches: list[sparse.csr_array] = field(default_factory=list, repr=False)
    """The cells that each update learnt from, with their first values, in the rows of the ratings."""
    known: list[Known] = field(default_factory=list, repr=False)
    """The public numbers of each update."""
    arrived: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)
    """The update in which each user was seen first."""
    frozen: list[sparse.csr_array] = field(default_factory=list, repr=False)
    """What the cells of each batch bring into pairs with later ones, for pairs over the history."""
    withdrawn: dict[tuple[int, int], int] = field(default_factory=dict, repr=False)
    """Before which update cells, by row and column, were deleted."""
    spent: set[bytes] = field(default_factory=set, repr=False)
    """Keyed hashes of the users who were forgotten, and of their cells."""
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    keys: list[str | None] = field(default_factory=list)
    """The names of the updates."""
    request: bytes | None = field(default=None, repr=False)
    """The digest of what the unfinished update was asked, if one is unfinished."""
    last: bytes | None = field(default=None, repr=False)
    """That of the last one that was finished."""
    pending: Known = field(default_factory=dict, repr=False)
    """The public numbers of the unfinished update."""
    noise: Noise | None = field(default=None, repr=False)
    there: tuple[str, int] | None = None
    """The folder on a cluster that holds the users after the last update, and in how many buckets; None for here."""
    state: State | None = None
    """The head of the ledger that counts this life, as this copy last saw it."""

    def require_whole(self) -> None:
        """Refuse to go on with a copy that holds what is public only."""
        if len(self.batches) < self.now:
            raise SettingError(
                "this copy of the model has no ratings and cannot be updated; load the one that has them"
            )

    def require_finished(self) -> None:
        """Refuse to change what an update that failed had begun to release."""
        require(self.request is None, "the update that failed", "called again first", "unfinished")

    def copied(self) -> Life:
        """Return a life whose lists may be changed."""
        series = {name: replace(one, sums=[*one.sums]) for name, one in self.series.items()}
        return replace(self, series=series, batches=[*self.batches], frozen=[*self.frozen], spent={*self.spent})

    @property
    def lost(self) -> bool:
        """Whether a release of the last update was lost: the next batch must be empty, for totals to be known."""
        return any(one.lacks(self.now - 1) for one in self.series.values())

    def open(self, digest: bytes, key: str | None) -> None:
        """Begin an update, or go on with the one that failed if the same is asked."""
        if self.request not in (None, digest):
            raise SettingError("an update failed after it had begun; call it again with the same ratings first")
        self.request = digest
        if len(self.keys) == self.now:
            self.keys.append(key)

    def finish(self, known: Known, frozen: Integers | None) -> None:
        """Note that everything of this update was published."""
        self.known.append(known)
        if self.there is None:
            self.freeze(frozen)
        self.now, self.last, self.request, self.pending = self.now + 1, self.request, None, {}

    def freeze(self, frozen: Integers | None) -> None:
        """Keep what the cells of the next batch bring into later pairs, if they do."""
        if self.terms.lasting.pairs == "history":
            batch = self.batches[len(self.frozen)]
            own = np.zeros(batch.nnz, dtype=np.int64) if frozen is None else frozen
            self.frozen.append(sparse.csr_array((own, batch.indices, batch.indptr), shape=batch.shape))

    def add_users(self, n_users: int) -> None:
        """Note when users were seen first."""
        new = np.full(n_users - len(self.arrived), self.now, dtype=np.int64)
        self.arrived = np.concatenate([self.arrived, new])

    def digest(self, content: bytes) -> bytes:
        """Return a keyed digest."""
        return hashlib.blake2b(content, key=self.key, digest_size=32).digest()

    def hashed(self, *ids: Any) -> bytes:
        """Return the keyed hash of a user's id, or of a user's and an item's."""
        text = repr([str(one) for one in ids]).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self.key, digest_size=_DIGEST).digest()

    def close(self, ratings: Ratings, new: Ratings, unit: Unit) -> sparse.csr_array:
        """Return what this update learns from: the batch, which is kept and never changes after this.

        `ratings` holds everything that is served from now on, `new` what arrived, both on the same rows and columns.
        """
        if len(self.batches) > self.now:  # closed before something failed
            return self.batches[self.now]
        if self.lost:
            self.arrived[self.arrived == self.now - self.terms.lasting.wait] += 1  # whose turn it was, later
        batch = self._of_users(ratings) if unit == "user" else self._of_cells(new)
        self.batches.append(batch)
        return batch

    def _of_users(self, ratings: Ratings) -> sparse.csr_array:
        """Return all that the users have whose turn it is: each once, when their wait is over."""
        lately = self.arrived == self.now - self.terms.lasting.wait
        entering = lately & ~self._learnt_users(len(lately))
        for row in np.flatnonzero(entering) if self.spent else ():
            entering[row] = self.hashed(ratings.users[row]) not in self.spent
        csr = ratings.csr
        return cells_inside(csr, entering[row_numbers(csr.indptr)])

    def _learnt_users(self, n_users: int) -> Flags:
        found = np.zeros(n_users, dtype=np.bool_)
        for batch in self.batches:
            found[: batch.shape[0]] |= np.diff(batch.indptr) > 0
        return found

    def _of_cells(self, new: Ratings) -> sparse.csr_array:
        """Return the cells that were never learnt from."""
        csr = new.csr
        rows = row_numbers(csr.indptr)
        fresh = ~np.isin(rows * self.room + csr.indices, self.learnt_cells())
        if self.spent:
            known = [self.hashed(user) in self.spent for user in new.users]
            for at in np.flatnonzero(fresh & np.asarray(known, dtype=np.bool_)[rows]):
                cell = self.hashed(new.users[rows[at]], new.items[csr.indices[at]])
                fresh[at] = cell not in self.spent
        return cells_inside(csr, fresh)

    def learnt_cells(self) -> Integers:
        """Return the numbers, row·room + column, of all cells that were learnt from."""
        numbers = [row_numbers(batch.indptr) * self.room + batch.indices for batch in self.batches]
        return np.concatenate([np.empty(0, dtype=np.int64), *numbers])

    def history(self, at: int) -> tuple[sparse.csr_array, Arrival]:
        """Return all cells by a batch of the users who are in it, and how they arrived."""
        last = self.batches[at]
        there = np.diff(last.indptr) > 0
        places, parts = np.cumsum(there) - 1, []
        for before, batch in enumerate(self.batches[: at + 1]):
            rows = row_numbers(batch.indptr)
            own = np.flatnonzero(there[rows])
            frozen = self.frozen[before].data[own] if before < at else np.zeros(len(own), dtype=np.int64)
            idle = self._withdrawn_by(at, rows[own], batch.indices[own])
            new = np.full(len(own), before == at)
            parts.append((places[rows[own]], batch.indices[own], batch.data[own], new, idle, frozen))
        rows, columns, values, new, idle, frozen = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((columns, rows))
        shape = (int(there.sum()), last.shape[1])
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=shape[0]))))
        csr = sparse.csr_array((values[order], columns[order], starts), shape=shape)
        return csr, Arrival(new[order], idle[order], frozen[order])

    def _withdrawn_by(self, at: int, rows: Integers, columns: AnyIntegers) -> Flags:
        """Return which cells were deleted before an update."""
        gone = [row * self.room + column for (row, column), since in self.withdrawn.items() if since <= at]
        return np.isin(rows * self.room + columns, np.array(gone, dtype=np.int64))

    def withdraw(self, csr: sparse.csr_array, row: int, columns: Integers) -> sparse.csr_array:
        """Note that cells of a user are deleted from now on; return the others."""
        for column in columns.tolist():
            self.withdrawn.setdefault((row, column), self.now)
        return cells_inside(csr, ~((row_numbers(csr.indptr) == row) & np.isin(csr.indices, columns)))

    def forget(self, ratings: Ratings, rows: Integers, unit: Unit) -> list[int]:
        """Take users, by their row, out of all batches; return the batches that lost something."""
        gone = np.zeros(len(self.arrived), dtype=np.bool_)
        gone[rows] = True
        touched = []
        for at, batch in enumerate(self.batches):
            lost = gone[: batch.shape[0]]
            for row in np.flatnonzero(lost).tolist():
                own = batch.indices[batch.indptr[row] : batch.indptr[row + 1]]
                self._spend(ratings, row, own, unit)
            touched += [at] if np.diff(batch.indptr)[lost].any() else []
            self.batches[at] = without_rows(batch, lost)
            if at < len(self.frozen):
                self.frozen[at] = without_rows(self.frozen[at], lost)
        moved = np.cumsum(~gone) - 1
        kept = [(cell, since) for cell, since in self.withdrawn.items() if not gone[cell[0]]]
        self.withdrawn = {(int(moved[row]), column): since for (row, column), since in kept}
        self.arrived = self.arrived[~gone]
        return touched

    def _spend(self, ratings: Ratings, row: int, columns: Integers, unit: Unit) -> None:
        user = ratings.users[row]
        if len(columns):
            self.spent.add(self.hashed(user))
        if unit != "user":
            self.spent.update(self.hashed(user, ratings.items[column]) for column in columns)


def without_rows(csr: sparse.csr_array, lost: Flags) -> sparse.csr_array:
    """Return the matrix without these rows."""
    return sparse.csr_array(csr[np.flatnonzero(~lost)])


def with_items(ratings: Ratings, more: Iterable[Any], room: int) -> Ratings:
    """Return the ratings of a catalogue that has grown; what is there already stays where it is."""
    added = Ids.of(list(more), "items")
    if len(added) == 0:
        return ratings
    if added.are_text != Ids.of_sorted(ratings.items, "items").are_text:
        raise DataError("add_items must be ids of the same kind as those of the catalogue")
    new = positions_among(added, Ids.of_sorted(ratings.items, "items")) < 0
    items = np.concatenate([ratings.items, added.values[new]])
    require(len(items) <= room, "add_items", f"so few that the catalogue has at most {room:,}", len(items))
    csr = ratings.csr
    wider = sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=(csr.shape[0], len(items)))
    return ratings.replaced(wider, ratings.times, items=items)


def with_new(old: Ratings, new: Ratings) -> tuple[Ratings, Ratings]:
    """Return all ratings, a new value in the place of an older one, and the new ones alone on the same rows.

    Both have the same items. Users keep their rows; new ones come last.
    """
    ids, own = Ids.of_sorted(old.users, "users"), Ids.of_sorted(new.users, "users")
    if len(ids) and len(own) and ids.are_text != own.are_text:
        raise DataError("the new ratings must have ids of users of the same kind as the earlier ones")
    places = positions_among(own, ids) if len(ids) else np.full(len(own), -1, dtype=np.int64)
    rows = np.where(places >= 0, places, len(ids) + np.cumsum(places < 0) - 1)
    users = np.concatenate([ids.values, own.values[places < 0]]) if len(ids) else own.values
    if not len(own):
        users = ids.values
    shape = (len(users), old.shape[1])
    fresh = sparse.csr_array((new.csr.data, (rows[row_numbers(new.csr.indptr)], new.csr.indices)), shape=shape)
    fresh.sum_duplicates()
    arrived = old.replaced(fresh, users=users, titles=new.titles)
    cells, came = old.csr.tocoo(), row_numbers(fresh.indptr)
    again = np.flatnonzero((np.diff(fresh.indptr) > 0)[cells.row])
    numbers = cells.row[again].astype(np.int64) * shape[1] + cells.col[again]
    stay = np.ones(len(cells.data), dtype=np.bool_)
    stay[again] = ~np.isin(numbers, came * shape[1] + fresh.indices)
    data = np.concatenate([cells.data[stay], fresh.data])
    kind = cells.row.dtype
    at = tuple(np.concatenate([a[stay], b], dtype=kind) for a, b in ((cells.row, came), (cells.col, fresh.indices)))
    del cells
    whole = sparse.csr_array((data, at), shape=shape)
    whole.sum_duplicates()
    return old.replaced(whole, users=users, titles={**old.titles, **new.titles}), arrived


_BATCH = ("indptr", "indices", "data")
Packed = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]


def pack_life(life: Life, *, whole: bool) -> Packed:
    """Return the statements and the arrays of a life, or the statements that are public."""
    seen = life.state and [life.state.ledger_id.hex(), life.state.seq, life.state.hash.hex()]
    stated: dict[str, Any] = {"lasting": asdict(life.terms.lasting), "room": life.room, "now": life.now, "ledger": seen}
    if not whole:
        return stated, {}
    names = sorted({name for known in life.known for name in known})
    stated |= {} if life.there is None else {"there": list(life.there)}
    stated |= {"keys": life.keys, "series": {name: one.begun for name, one in life.series.items()}, "known": names}
    arrays: dict[str, npt.NDArray[Any]] = {}
    for at, one in enumerate(life.series.values()):
        arrays |= _joined(f"life_sums{at}", one.sums) | _joined(f"life_noisy{at}", one.noisy)
    for at, name in enumerate(names):
        nothing = next(known[name] for known in life.known if name in known)[:0]
        arrays |= _joined(f"life_known{at}", [known.get(name, nothing) for known in life.known])
    return stated, arrays | pack_users(life)


def pack_users(life: Life) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of what a life knows of users."""
    withdrawn = [(*cell, since) for cell, since in sorted(life.withdrawn.items())]
    arrays: dict[str, npt.NDArray[Any]] = {"life_arrived": life.arrived}
    arrays["life_withdrawn"] = np.array(withdrawn, dtype=np.int64).reshape(-1, 3)
    for part in _BATCH:
        arrays |= _joined(f"life_{part}", [getattr(batch, part) for batch in life.batches])
    arrays |= _joined("life_frozen", [each.data for each in life.frozen])
    arrays["life_spent"] = np.frombuffer(b"".join(sorted(life.spent)), dtype=np.uint8)
    digests = [life.key, life.request or b"", life.last or b""]
    return arrays | _joined("life_secret", [np.frombuffer(each, dtype=np.uint8) for each in digests])


def _joined(name: str, parts: Sequence[npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return {name: np.concatenate(parts) if parts else np.empty(0), f"{name}_ends": ends}


def _parted(name: str, arrays: Arrays) -> list[npt.NDArray[Any]]:
    ends, joined = arrays[f"{name}_ends"], arrays[name]
    _require(ends.ndim == 1 and len(ends) > 0 and ends[0] == 0 and ends[-1] == len(joined))
    _require(bool((np.diff(ends) >= 0).all()))
    return [joined[a:b] for a, b in pairwise(ends.tolist())]


def unpack_life(stated: Mapping[str, Any], arrays: Arrays, terms: Terms, of: Ratings) -> Life:
    """Return the life that `pack_life` packed; what it cannot have written raises."""
    room, now = int(stated["room"]), int(stated["now"])
    life = Life(terms, room, now)
    _require(now >= 0 and of.shape[1] <= room)
    if stated["ledger"] is not None:
        ledger_id, seq, head = stated["ledger"]
        life.state = State(bytes.fromhex(ledger_id), int(seq), bytes.fromhex(head))
    if "series" not in stated:
        return life
    life.keys = list(stated["keys"])
    _require(len(life.keys) in (now, now + 1))
    for at, (name, begun) in enumerate(stated["series"].items()):
        sums, noisy = (_parted(f"life_{what}{at}", arrays) for what in ("sums", "noisy"))
        life.series[name] = _sound_series(Series(int(begun), sums, noisy), now)
    kept = {name: _parted(f"life_known{at}", arrays) for at, name in enumerate(stated["known"])}
    life.known = [{name: each[update] for name, each in kept.items() if len(each[update])} for update in range(now)]
    for listed in kept.get("listed", ()):
        _require(listed.dtype == np.int64 and bool(((listed >= 0) & (listed < of.shape[1])).all()))
    if "there" in stated:
        name, n_buckets = stated["there"]
        life.there = str(name), int(n_buckets)
    unpack_users(life, arrays, of)
    for known, batch in zip(life.known, life.batches, strict=False):
        _require_known(known, int(batch.indices.max(initial=-1)) + 1)
    return life


def _sound_series(one: Series, now: int) -> Series:
    _require(all(each.dtype in (np.int32, np.int64) and each.ndim == 1 for each in (*one.sums, *one.noisy)))
    _require(0 <= one.begun <= now and len(one.noisy) <= len(one.sums) <= now + 1 - one.begun)
    return Series(one.begun, [*map(narrowed, one.sums)], [*map(narrowed, one.noisy)])


def _require_known(known: Known, n_items: int) -> None:
    """Refuse public numbers that kernels cannot take for a batch of so many items."""
    biases = [known[name] for name in ("biases", "pair biases") if name in known]
    _require(all(each.dtype == np.float64 and each.ndim == 1 and len(each) >= n_items for each in biases))
    if "directions" in known:
        directions, (size,) = known["directions"], known["projected size"]
        _require(directions.dtype == np.int32 and len(directions) == MOST_DIRECTIONS * len(known["pair biases"]))
        _require(bool((np.abs(directions) <= 1 << 20).all()) and 0 <= size < 1 << 30)


def unpack_users(life: Life, arrays: Arrays, of: Ratings) -> None:
    """Take over what `pack_users` packed."""
    life.arrived = arrays["life_arrived"]
    for starts, columns, values in zip(*(_parted(f"life_{part}", arrays) for part in _BATCH), strict=True):
        shape = (len(starts) - 1, of.shape[1])
        check_csr(starts, columns, len(values), shape)
        _require(len(starts) - 1 <= len(life.arrived))
        life.batches.append(sparse.csr_array((values, columns, starts), shape=shape))
    _require(len(life.batches) in ((life.now, life.now + 1) if life.there is None else (0,)))
    for batch, own in zip(life.batches, _parted("life_frozen", arrays), strict=False):
        _require(len(own) == batch.nnz)
        life.frozen.append(sparse.csr_array((own, batch.indices, batch.indptr), shape=batch.shape))
    life.withdrawn = {(int(row), int(column)): int(since) for row, column, since in arrays["life_withdrawn"]}
    spent = arrays["life_spent"].tobytes()
    life.spent = {spent[at : at + _DIGEST] for at in range(0, len(spent), _DIGEST)}
    key, request, last = (each.tobytes() for each in _parted("life_secret", arrays))
    life.key, life.request, life.last = key, request or None, last or None


def _require(holds: bool) -> None:
    if not holds:
        raise ModelFileError("the arrays of the model's life are not sound; refused")
