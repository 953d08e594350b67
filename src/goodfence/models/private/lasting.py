"""Private models with a life: a fit and updates under one guarantee, each record paid for once.

An update closes its batch, computes exact sums, charges them where a ledger is kept, and only then draws noise. What
was published is kept and never drawn again; an update that failed goes on where it stopped when it is called again.
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cache
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy import sparse

from goodfence.arrays import Integers, row_numbers
from goodfence.data.matrix import cells_inside
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import KeyReused, SettingError, require
from goodfence.ledger.costs import Cap, Charge, slack_of
from goodfence.ledger.ledger import KEY, Ledger
from goodfence.models.persistence import Arrays, write_model
from goodfence.models.private.base import PrivateRecommender, public_part
from goodfence.models.private.life import Known, Life, pack_life, unpack_life, with_items, with_new, without_rows
from goodfence.models.recommender import IdsLike, require_feedback
from goodfence.privacy.accounting import Account, FitRecord, total_mu
from goodfence.privacy.noise import MOST_MU, Noise
from goodfence.privacy.updates import LOST, Draw, Lasting, Terms, Updater, life_release, open_updater
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


class LastingRecommender(PrivateRecommender):
    """A private recommender that can be updated, if `lasting` says how."""

    life_: Life

    def _numbers(self, room: int) -> int:  # noqa: ARG002 - for others
        """Return how many integers one update publishes at most; 0 where a model cannot be updated."""
        return 0

    def _sums(self, profiles: Any, known: Known) -> dict[str, Integers]:
        """Return the integers of every stage of an update again, by the public numbers they were computed with."""
        raise NotImplementedError

    def _frozen(self, profiles: Any, known: Known) -> Integers | None:  # noqa: ARG002 - for others
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
        before = public_part(self.laid_out(ratings))
        again = hasattr(self, "record_") and not self._repeats(self._request(ratings, before), key)
        require(not again, "fit", "called once with lasting; call update with what is new", "a second call")
        if not hasattr(self, "life_"):
            n_items = before.shape[1]
            require(n_items >= 1, "catalogue", "of at least one item", n_items)
            room = GROWTH * n_items
            self.life_ = Life(self._terms(self.lasting, room), room, noise=self._noise())
        return self._advance(ratings, before, ledger, key)

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
        before = with_items(self.ratings_, () if add_items is None else add_items, life.room)
        given = public_part(before) if new is None else new
        require_feedback(given, self.learns_from, type(self).__name__)
        repeated = self._repeats(self._request(given, before), key)
        return self if repeated else self._advance(given, before, ledger, key)

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
        row, columns = ratings.row(user), ratings.columns(items)
        csr = ratings.csr
        gone = (row_numbers(csr.indptr) == row) & np.isin(csr.indices, columns)
        for column in columns.tolist():
            life.withdrawn.setdefault((row, column), life.now)
        self.restore(ratings.replaced(cells_inside(csr, ~gone)), self.model_, self.record_)

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
                for name, totals in self._sums(self._profiles_in(ratings, at), after.known[at]).items():
                    one = after.series[name]
                    one.sums[at - one.begun] = np.ascontiguousarray(totals.T).ravel()
        except BaseException:  # the users are forgotten wholly or not at all
            self.life_ = life
            raise
        gone = np.isin(np.arange(ratings.shape[0]), rows)
        kept = ratings.replaced(without_rows(ratings.csr, gone), users=ratings.users[~gone])
        self.restore(kept, self.model_, self.record_)

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

    def _request(self, given: Ratings, before: Ratings) -> bytes:
        """Return a digest of everything that an update was given: the settings, the catalogue and the ratings."""
        made, csr = hashlib.sha256(repr(self).encode()), given.csr
        for part in (before.items, given.users, given.items, csr.indptr, csr.indices, csr.data):
            content = part.tobytes() if part.dtype.kind != "O" else repr(part.tolist()).encode("utf-8", "surrogatepass")
            made.update(len(content).to_bytes(8, "big") + content)
        return made.digest()

    def _advance(self, given: Ratings, before: Ratings, ledger: Ledger | None, key: str | None) -> Self:
        """Make one update: close the batch, publish, and learn from all that was published so far."""
        life = self.life_
        noise: Noise = life.noise or self._noise()
        require(given.scale == before.scale, "scale", "that of the earlier ratings", given.scale)
        same = not hasattr(self, "record_") or self.record_.unit == self.unit
        require(same, "unit", "that of the earlier updates", self.unit)
        updater = open_updater(life.terms, noise, unit=self.unit, series=life.series, now=life.now)
        request = self._request(given, before)
        ratings, arrived = with_new(before, self._laid_out_on(before, given))
        require(not life.lost or given.n_ratings == 0, "new", "None after an update whose release was lost", "ratings")
        self._require_ledger(ledger, noise, key, ratings)
        life.open(life.digest(request), key)
        if ledger is not None:
            updater.draw = self._charged(ledger, updater, ratings, request)
        life.add_users(ratings.shape[0])
        life.close(ratings, arrived, self.unit)
        updater.past, updater.known = life.known, life.pending
        profiles = self._profiles_in(ratings, life.now)
        model = self._learn(profiles, life.terms.of_batch, updater)
        frozen = None if profiles.arrival is None else self._frozen(profiles, updater.known)
        life.finish(updater.known, None if frozen is None else frozen[profiles.arrival.new])
        life.state = None if ledger is None else ledger.state()
        self.catalogue = before.items
        return self.restore(ratings, model, self._life_record(noise.private))

    def _require_ledger(self, ledger: Ledger | None, noise: Noise, key: str | None, ratings: Ratings) -> None:
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
        names = map(repr, ratings.users.tolist()) if self.unit == "user" else (f"{keys[0]}/{each}" for each in keys)
        ledger.require_state(life.state, [ledger.account(self.unit, name) for name in names], f"{keys[0]}/")

    def _laid_out_on(self, before: Ratings, given: Ratings) -> Ratings:
        """Return new ratings on the catalogue of the earlier ones."""
        was, self.catalogue = self.catalogue, before.items
        try:
            return self.laid_out(given)
        finally:
            self.catalogue = was

    def _profiles_in(self, ratings: Ratings, at: int) -> Any:
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

    def _charged(self, ledger: Ledger, updater: Updater, ratings: Ratings, request: bytes) -> Draw:
        """Return what draws the noise of this update once the ledger has charged it."""
        life, unit = self.life_, self.unit
        cap = Cap(life.terms.sensitivity**2, life.terms.slack)

        @cache
        def accounts(at: int) -> list[bytes]:
            names = [f"{life.keys[0]}/{life.keys[at]}"]
            if unit == "user":
                entered = np.flatnonzero(np.diff(life.batches[at].indptr))
                names = [repr(one) for one in ratings.users[entered].tolist()]
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
