"""Private models with a life: a fit and updates under one guarantee, each record paid for once.

An update closes its batch, computes exact sums, charges them where a ledger is kept, and only then draws noise. What
was published is kept and never drawn again; an update that failed goes on where it stopped when it is called again.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from os import PathLike
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Integers
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import KeyReused, SettingError, require
from goodfence.ledger.costs import Cap, Charge, slack_of
from goodfence.ledger.ledger import KEY, Ledger
from goodfence.models.persistence import Arrays, write_model
from goodfence.models.private.base import PrivateRecommender, public_part
from goodfence.models.private.life import (
    Known,
    Life,
    pack_life,
    pack_users,
    unpack_life,
    unpack_users,
    with_items,
    with_new,
    without_rows,
)
from goodfence.models.recommender import IdsLike, require_feedback
from goodfence.privacy.accounting import Account, FitRecord, total_mu
from goodfence.privacy.fixed_point import Arrival
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import MOST_MU, Noise
from goodfence.privacy.updates import LOST, Draw, Lasting, Series, Terms, Updater, life_release, open_updater
from goodfence.settings import checked

_LONGEST_KEYS = 160
_NO_LEDGER = " No ledger is kept, so nothing would notice an older copy that is updated again: that is not covered."
GROWTH = 2
"""How many times as many items a catalogue may come to have in a life as in its first update."""
_RECORDS = {
    "rating": ("A rating is all that one user ever says about one item", "first arrives"),
    "event": ("An event is all that happens between one user and one item", "first arrives"),
    "user": ("A user is all that one account ever does", "enters"),
}


Changed: TypeAlias = tuple[npt.NDArray[Any], Arrays, int, list[int]]
"""Users, what is kept of them, how many of them changed, and the batches that lost something."""


class Arriving:
    """What one update of a model is given, and the users of its life: here on this machine."""

    def __init__(self, model: Any, given: Ratings, before: Ratings) -> None:
        self.model, self.given, self.before = model, given, before
        self.scale, self.n_ratings = given.scale, given.n_ratings

    @cached_property
    def _joined(self) -> tuple[Ratings, Ratings]:
        return with_new(self.before, self.model.laid_out_on(self.before, self.given))

    @property
    def kept(self) -> Ratings:
        """What the model keeps of all ratings."""
        return self._joined[0]

    def digest(self) -> bytes:
        """Return a digest of everything that the update was given."""
        csr, given = self.given.csr, self.given
        return self.model.digest_of(self.before, given.users, given.items, csr.indptr, csr.indices, csr.data)  # type: ignore[no-any-return]

    def users(self) -> list[Id]:
        """Return all users."""
        return list(self.kept.users.tolist())

    def entered(self, at: int) -> list[Id]:
        """Return the users of whom a batch holds something."""
        there = np.flatnonzero(np.diff(self.model.life_.batches[at].indptr))
        return list(self.kept.users[there].tolist())

    def close(self) -> Any:
        """Close the batch, and return what each user contributes to its sums."""
        life, (ratings, arrived) = self.model.life_, self._joined
        life.add_users(ratings.shape[0])
        life.close(ratings, arrived, self.model.unit)
        return self.model.profiles_in(ratings, life.now)

    def finish(self, profiles: Any, known: Known) -> None:
        """Note that everything was published."""
        frozen = None if profiles.arrival is None else self.model.frozen(profiles, known)
        self.model.life_.finish(known, None if frozen is None else frozen[profiles.arrival.new])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BucketOfUsers:
    """How a task goes on with the life of some users: what it must know of the model and of the life of all."""

    kind: type[LastingRecommender]
    unit: Unit
    before: Ratings
    """Ratings of nobody, on the items of this update."""
    life: Life
    """What all users share."""

    def model_of(self, users: npt.NDArray[Any], kept: Arrays) -> LastingRecommender:
        """Return a model with the life of these users alone."""
        model = object.__new__(self.kind)
        model.unit, model.catalogue, model.items = self.unit, None, None
        own: dict[str, Any] = {"batches": [], "frozen": [], "withdrawn": {}, "spent": set()}
        model.life_, model.ratings_ = dataclasses.replace(self.life, **own), self.before
        if kept:
            unpack_users(model.life_, kept, self.before)
            cells = kept["data"], kept["indices"], kept["indptr"]
            csr = sparse.csr_array(cells, shape=(len(users), len(self.before.items)))
            model.ratings_ = self.before.replaced(csr, users=users)
        return model

    def opened(self, users: npt.NDArray[Any], kept: Arrays, given: Ratings) -> tuple[npt.NDArray[Any], Arrays]:
        """Close the batch of these users; return all of them by now, and what is kept of them."""
        model = self.model_of(users, kept)
        life, last = model.life_, self.life.now - 1
        # The public numbers of the last batch were not known when it was closed.
        if life.terms.lasting.pairs == "history" and len(life.frozen) < len(life.batches):
            profiles = model.profiles_in(model.ratings_, last)
            own = model.frozen(profiles, life.known[last])
            life.freeze(None if own is None else own[profiles.arrival.new])
        new = Arriving(model, given, model.ratings_)
        new.close()
        model.ratings_ = new.kept
        return model.ratings_.users, _kept_of(model)

    def without(self, users: npt.NDArray[Any], kept: Arrays, gone: set[str], items: list[int] | None) -> Changed:
        """Forget some users, or delete what they said of some items, by column."""
        model = self.model_of(users, kept)
        lost = np.array([str(user) in gone for user in users.tolist()], dtype=np.bool_)
        rows, csr, touched = np.flatnonzero(lost), model.ratings_.csr, []
        if items is None:
            touched = model.life_.forget(model.ratings_, rows, self.unit)
            csr, users = without_rows(csr, lost), users[~lost]
        else:
            for row in rows.tolist():
                csr = model.life_.withdraw(csr, row, np.array(items, dtype=np.int64))
        model.ratings_ = self.before.replaced(csr, users=users)
        return users, _kept_of(model), len(rows), touched

    def profiles(self, users: npt.NDArray[Any], kept: Arrays, at: int) -> Any:
        """Return what these users contribute to the sums of a batch; without them, what nobody does."""
        model = self.model_of(users, kept)
        if kept:
            return model.profiles_in(model.ratings_, at)
        nothing: Integers = np.empty(0, dtype=np.int64)
        arrival = Arrival(nothing > 0, nothing > 0, nothing) if self.life.terms.lasting.pairs == "history" else None
        return dataclasses.replace(model.profiles_of(self.before), room=self.life.room, arrival=arrival)

    def entered(self, users: npt.NDArray[Any], kept: Arrays, at: int) -> npt.NDArray[Any]:
        """Return those of whom a batch holds something."""
        batch = self.model_of(users, kept).life_.batches[at]
        return users[np.flatnonzero(np.diff(batch.indptr))]


def _kept_of(model: LastingRecommender) -> Arrays:
    csr = model.ratings_.csr
    return {**pack_users(model.life_), "indptr": csr.indptr, "indices": csr.indices, "data": csr.data}


class LastingRecommender(PrivateRecommender):
    """A private recommender that can be updated, if `lasting` says how."""

    life_: Life
    _sized: ClassVar[Mapping[str | None, tuple[str, slice]]] = {}
    """As in `Updater`."""

    def _numbers(self, room: int) -> int:  # noqa: ARG002 - for others
        """Return how many integers one update publishes at most; 0 where a model cannot be updated."""
        return 0

    def _sums(self, profiles: Any, known: Known) -> dict[str, Integers]:
        """Return the integers of every stage of an update again, by the public numbers they were computed with."""
        raise NotImplementedError

    def frozen(self, profiles: Any, known: Known) -> Integers | None:  # noqa: ARG002 - for others
        """Return what the cells of a batch bring into pairs with later ones; None for nothing."""
        return None

    @checked
    def fit(self, ratings: Ratings, *, ledger: Ledger | None = None, key: str | None = None) -> Self:
        """Release what the model needs, once. To fit again is to spend again.

        The scale of the ratings must be declared. It is public, as is the list of items: the `catalogue`, or that of
        the ratings, where it was declared there or is by `items="from ratings"`. With `lasting` this is the first
        update of a life: call it once, and then `update`, which says what `ledger` and `key` are.
        """
        if self.lasting is None:
            require(ledger is None, "lasting", "given with a ledger", None)
            return super().fit(ratings)
        self._require_lasting(self.lasting)
        return self.begin_life(Arriving(self, ratings, public_part(self.laid_out(ratings))), ledger, key)

    def begin_life(self, new: Arriving, ledger: Ledger | None, key: str | None) -> Self:
        """Make the first update of a life, wherever the users are."""
        lasting, n_items = self.lasting or Lasting(), new.before.shape[1]
        self._require_lasting(lasting)
        again = hasattr(self, "record_") and not self._repeats(new.digest(), key)
        require(not again, "fit", "called once with lasting; call update with what is new", "a second call")
        if not hasattr(self, "life_"):
            require(n_items >= 1, "catalogue", "of at least one item", n_items)
            room = GROWTH * n_items
            self.life_ = Life(self._terms(lasting, room), room, noise=self._noise())
        return self._advance(new, ledger, key)

    @checked
    def update(
        self,
        new: Ratings | None = None,
        *,
        ledger: Ledger | None = None,
        key: str | None = None,
        add_items: IdsLike | None = None,
    ) -> Self:
        """Learn from what is new; one guarantee covers the fit and all updates together.

        Parameters
        ----------
        new : Ratings, optional
            What arrived since the last update, and nothing older; None for an empty batch. Close batches by the clock
            or by hand, never by what is in them.
        ledger : Ledger, optional
            Where each release is charged before its noise is drawn; needs a `key`.
        key : str, optional
            The name of this update. Asked again with the same key and ratings, nothing is released twice.
        add_items : sequence of ids, optional
            Items that are new in the catalogue, from a public source.
        """
        life = self._living()
        life.require_whole()
        before = self.on_items_with(add_items)
        given = public_part(before) if new is None else new
        require_feedback(given, self.learns_from, type(self).__name__)
        return self.continue_life(Arriving(self, given, before), ledger, key)

    def bucket_of(self, before: Ratings) -> BucketOfUsers:
        """Return how tasks go on with the life of the users of one bucket."""
        life = self.life_
        lost = {"": Series(life.now - 1, [np.ones(1, dtype=np.int64)], [LOST])} if life.lost else {}
        shared = dataclasses.replace(life, series=lost, noise=None, pending={}, state=None, there=None, keys=[])
        return BucketOfUsers(kind=type(self), unit=self.unit, before=public_part(before), life=shared)

    def on_items_with(self, more: IdsLike | None) -> Ratings:
        """Return the ratings of a catalogue that has grown by some items."""
        return with_items(self.ratings_, () if more is None else more, self._living().room)

    def continue_life(self, new: Arriving, ledger: Ledger | None, key: str | None) -> Self:
        """Make the next update of a life, wherever the users are."""
        self._living()
        return self if self._repeats(new.digest(), key) else self._advance(new, ledger, key)

    @property
    def updates_left_(self) -> int | None:
        """How many updates may follow; None where a life has no end."""
        life = self._living()
        lasting = life.terms.lasting
        return None if lasting.half_life is not None else lasting.updates - life.now

    @checked
    def withdraw(self, user: Id, items: IdsLike) -> None:
        """Delete ratings of a user: they are served no more. What was learnt from them stays until `forget`."""
        life, ratings = self._living(), self.ratings_
        life.require_finished()
        served = life.withdraw(ratings.csr, ratings.row(user), ratings.columns(items))
        self.restore(ratings.replaced(served), self.model_, self.record_)

    @checked
    def forget(self, user: Id | IdsLike) -> None:
        """Delete a user, or several, with all that they ever gave, also from the exact sums of later updates.

        They enter no later update. What was released before stays, and stays covered by the guarantee.
        """
        life, ratings = self._living(), self.ratings_
        life.require_whole()
        life.require_finished()
        asked: Any = [user] if isinstance(user, str | int | np.integer) else user
        rows = ratings.rows(asked)
        self.life_ = after = life.copied()
        try:
            for at in after.forget(ratings, rows, self.unit):
                self.sum_again(self.profiles_in(ratings, at), at)
        except BaseException:  # the users are forgotten wholly or not at all
            self.life_ = life
            raise
        gone = np.isin(np.arange(ratings.shape[0]), rows)
        kept = ratings.replaced(without_rows(ratings.csr, gone), users=ratings.users[~gone])
        self.restore(kept, self.model_, self.record_)

    def sum_again(self, profiles: Any, at: int) -> None:
        """Put the sums of these profiles in the place of those of a batch."""
        for name, totals in self._sums(profiles, self.life_.known[at]).items():
            one = self.life_.series[name]
            one.sums[at - one.begun] = np.ascontiguousarray(totals.T).ravel()

    @checked
    def save(self, path: str | PathLike[str], *, ratings: bool = True) -> None:
        """Write the fitted model to the file `path`; a seed is not written, only that there was one.

        With `ratings=False` it holds what was released and what is public (settings, scale, the list of items), and may
        be given to anybody; no titles, since those that are known are of items that somebody rated. The model then
        answers profiles, knows no user, and cannot be updated.
        """
        if self.lasting is None:
            super().save(path, ratings=ratings)
            return
        self._require_fitted()
        kind, settings, arrays = self.packed(self.ratings_ if ratings else public_part(self.ratings_))
        stated, own = pack_life(self.life_, whole=ratings)
        write_model(path, kind, {**settings, "life": stated}, {**arrays, **own})

    @classmethod
    def _restored(cls, ratings: Ratings, settings: dict[str, Any], arrays: Arrays) -> Self:
        if "life" in settings:
            lasting = Lasting(**settings["life"]["lasting"])
            settings = {**settings, "arguments": {**settings["arguments"], "lasting": lasting}}
        return super()._restored(ratings, settings, arrays)

    def _revive(self, ratings: Ratings, settings: dict[str, Any], arrays: Arrays) -> None:
        if self.lasting is not None:
            self._require_lasting(self.lasting)
            terms = self._terms(self.lasting, int(settings["life"]["room"]))
            self.life_ = unpack_life(settings["life"], arrays, terms, ratings)

    def _living(self) -> Life:
        self._require_fitted()
        require(self.lasting is not None, "lasting", "given to a model that is updated", None)
        return self.life_

    def _require_lasting(self, lasting: Lasting) -> None:
        """Refuse settings with which a model cannot last."""
        require(self._numbers(1) > 0, "lasting", f"left out for {type(self).__name__}", lasting)
        given = self.catalogue is not None
        require(given, "catalogue", "given with lasting, because items that appear over time show who came", None)
        of_user = self.unit == "user"
        require(lasting.wait == 0 or of_user, "wait", "0 but for the unit 'user'", lasting.wait)
        once = lasting.pairs == "batch" or not of_user
        require(once, "pairs", "'batch' for the unit 'user', who enters once", lasting.pairs)

    def _terms(self, lasting: Lasting, room: int) -> Terms:
        """Return the constants of a life with a catalogue of at most `room` items."""

        def within(distance: float) -> float:
            allowed = total_mu(self.epsilon, self.delta, distance)
            require(allowed <= MOST_MU, "epsilon", f"smaller (its mu at most {MOST_MU})", self.epsilon)
            return self._useful(allowed)

        return Terms.of(lasting, self._numbers(room), within)

    def _repeats(self, request: bytes, key: str | None) -> bool:
        """Return whether this was asked and done last; another request under an earlier key raises."""
        life = self.life_
        if key is None or key not in life.keys[: life.now]:
            return False
        if key == life.keys[life.now - 1] and life.digest(request) == life.last:
            return True
        raise KeyReused(f"{key!r} is the key of another update of this model; use a new key")

    def digest_of(self, before: Ratings, *given: npt.NDArray[Any]) -> bytes:
        """Return a digest of the settings, the catalogue and what else an update was given."""
        made = hashlib.sha256(repr(self).encode())
        for part in (before.items, *given):
            content = part.tobytes() if part.dtype.kind != "O" else repr(part.tolist()).encode("utf-8", "surrogatepass")
            made.update(len(content).to_bytes(8, "big") + content)
        return made.digest()

    def _advance(self, new: Arriving, ledger: Ledger | None, key: str | None) -> Self:
        """Make one update: close the batch, publish, and learn from all that was published so far."""
        life, before = self.life_, new.before
        noise: Noise = life.noise or self._noise()
        require(new.scale == before.scale, "scale", "that of the earlier ratings", new.scale)
        same = not hasattr(self, "record_") or self.record_.unit == self.unit
        require(same, "unit", "that of the earlier updates", self.unit)
        of_life: Any = {"series": life.series, "now": life.now, "sized": self._sized}
        updater = open_updater(life.terms, noise, unit=self.unit, **of_life)
        request = new.digest()
        require(not life.lost or new.n_ratings == 0, "new", "None after an update whose release was lost", "ratings")
        self._require_ledger(ledger, noise, key, new)
        life.open(life.digest(request), key)
        if ledger is not None:
            updater.draw = self._charged(ledger, updater, new, request)
        profiles = new.close()
        updater.past, updater.known = life.known, life.pending
        model = self._learn(profiles, life.terms.of_batch, updater)
        new.finish(profiles, updater.known)
        life.state = None if ledger is None else ledger.state()
        self.catalogue = before.items
        return self.restore(new.kept, model, self._life_record(noise.private))

    def _require_ledger(self, ledger: Ledger | None, noise: Noise, key: str | None, new: Arriving) -> None:
        """Refuse a ledger that did not count all of this life, or knows of a later update than this copy does."""
        life = self.life_
        if ledger is None:
            require(life.state is None, "ledger", "given with every update, as with the first", None)
            return
        require(noise.private, "rng", "left out where a ledger is kept", "a seed")
        if life.state is None and (life.now or life.request is not None):
            raise SettingError("ledger must be given with the first update of a life, or never")
        keys = [each or "" for each in (*life.keys, key)[: life.now + 1]]
        for each in keys:
            sound = KEY.fullmatch(each) is not None and len(keys[0] + each) <= _LONGEST_KEYS
            require(sound, "key", "given where a ledger is kept, of at most 80 characters without #", each)
        life.state = life.state or ledger.state()
        names = map(repr, new.users()) if self.unit == "user" else (f"{keys[0]}/{each}" for each in keys)
        ledger.require_state(life.state, [ledger.account(self.unit, name) for name in names], f"{keys[0]}/")

    def laid_out_on(self, before: Ratings, given: Ratings) -> Ratings:
        """Return new ratings on the catalogue of the earlier ones."""
        was, self.catalogue = self.catalogue, before.items
        try:
            return self.laid_out(given)
        finally:
            self.catalogue = was

    def profiles_in(self, ratings: Ratings, at: int) -> Any:
        """Return what each user contributes to the sums of a batch."""
        life, width = self.life_, ratings.shape[1]
        if life.terms.lasting.pairs == "history":
            csr, arrival = life.history(at)
            wider = sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=(csr.shape[0], width))
            profiles = self.profiles_of(ratings.replaced(wider, users=np.arange(csr.shape[0])))
            return dataclasses.replace(profiles, room=life.room, arrival=arrival)
        batch = life.batches[at]
        wider = sparse.csr_array((batch.data, batch.indices, batch.indptr), shape=(batch.shape[0], width))
        profiles = self.profiles_of(ratings.replaced(wider, users=ratings.users[: batch.shape[0]]))
        return dataclasses.replace(profiles, room=life.room)

    def _charged(self, ledger: Ledger, updater: Updater, new: Arriving, request: bytes) -> Draw:
        """Return what draws the noise of this update once the ledger has charged it."""
        life, unit = self.life_, self.unit
        cap = Cap(life.terms.sensitivity**2, life.terms.slack)

        @cache
        def accounts(at: int) -> list[bytes]:
            names = [f"{life.keys[0]}/{life.keys[at]}"]
            if unit == "user":
                names = list(map(repr, new.entered(at)))
            if at == updater.now:
                return ledger.open_accounts(unit, names, cap)
            return [ledger.account(unit, name) for name in names]

        def draw(name: str, exact: Integers, sensitivity: int) -> Integers:
            one = updater.series[name]
            costs = life.terms.costs(updater.now - one.begun, sensitivity, exact.size)
            charges = [
                Charge(account, cost, slack_of(exact.size))
                for at, cost in enumerate(costs, one.begun)
                for account in accounts(at)
            ]
            asked = hashlib.sha256(b"\0".join([request, name.encode(), exact.tobytes()])).digest()
            stated = {"name": name, "update": updater.now + 1, "dimension": exact.size, "key": life.keys[-1]}
            whole = f"{life.keys[0]}/{updater.now + 1}/{name}"
            if ledger.burned(whole, request=asked):
                return LOST  # to pay for it again would leave no room for all later updates
            content = ledger.release(
                whole,
                request=asked,
                charges=charges,
                draw=lambda: (exact + updater.noise.draw(exact.size)).tobytes(),
                facts=stated,
                stated=(max(costs), slack_of(exact.size)),  # whether somebody came or not
            )
            return np.frombuffer(content, dtype=np.int64)

        return draw

    def _life_record(self, private: bool) -> FitRecord:
        """Return what is guaranteed from the first update on: the cost of the whole life."""
        if hasattr(self, "record_"):
            return dataclasses.replace(self.record_, private=self.record_.private and private)
        asked: Any = {"unit": self.unit, "epsilon": self.epsilon, "delta": self.delta}
        account = Account((life_release(self.life_.terms, self.unit),))
        spent: Any = {"mu": account.mu, "distance": account.distance}
        return FitRecord(**asked, **spent, account=account, private=private, catalogue_given=True)

    def _spends(self, record: FitRecord, n_items: int) -> float:
        return self.life_.terms.mu if self.lasting is not None else super()._spends(record, n_items)

    def _conditions(self) -> str:
        if self.lasting is None:
            return super()._conditions()
        used = self.life_.now if hasattr(self, "record_") else 0
        whole = f"{used} of {self.lasting.updates} updates have been released, and the rest are included"
        if self.lasting.half_life is not None:
            whole = f"{used} updates have been released, and all that follow are included"
        what, enters = _RECORDS[self.unit]
        public = "The catalogue is" if self.unit == "event" else "The scale and the given catalogue are"
        return (
            f"{public} public. This holds for the whole life of this model: {whole}. {what}; the model learns from it "
            f"once, in the update in which it {enters}. Which update that is must not depend on other {self.unit}s. "
            "A changed value serves its user alone. Forgotten users enter no later update; what was released before "
            f"stays covered.{'' if used == 0 or self.life_.state else _NO_LEDGER}"
        )
