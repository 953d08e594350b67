"""A life that a ledger counts: kills, older copies, forks, and what a refused call leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import goodfence as gf
from goodfence.errors import KeyReused, RolledBack, SettingError
from goodfence.ledger.export import told
from goodfence.ledger.verify import verify
from goodfence.models.private.cf import PrivateCF
from tests.models.test_lasting import ITEMS, batch, ledger_in, sums_of
from tests.support.killed_updates import SAVED, check, killed, updated
from tests.support.lasting_machine import LastingMachine
from tests.support.ledger_faults import POINTS

SUMS = "item sums and counts"


def means(updates: int = 32, **how: Any) -> gf.PrivateMeans:
    return gf.PrivateMeans(epsilon=1.0, catalogue=ITEMS, lasting=gf.Lasting(updates=updates), **how)


class Dies:
    """Noise whose draw fails after the charge."""

    private = True

    def draw(self, n: int) -> Any:
        raise MemoryError(n)


def test_a_lost_release_does_not_end_a_life(tmp_path: Path) -> None:
    """To pay for it again, which the cap would allow, leaves no room for what this batch pays later."""
    ledger, model = ledger_in(tmp_path), means()
    model.fit(batch(0), ledger=ledger, key="1")
    model.life_.noise = Dies()
    with pytest.raises(MemoryError):
        model.update(batch(1), ledger=ledger, key="2")
    model.life_.noise = None
    account = ledger.account("rating", "1/2")
    paid = ledger.spent(account).cost
    model.update(batch(1), ledger=ledger, key="2")
    assert ledger.spent(account).cost == paid
    for key in range(3, 33):
        model.update(None, ledger=ledger, key=str(key))
    assert [len(each) for each in model.life_.series[SUMS].noisy] == [80, 0, *[80] * 30]


def test_whether_somebody_entered_is_not_told(tmp_path: Path) -> None:
    shown = []
    for name, second in (("a", batch(1, first=100)), ("b", None)):
        (tmp_path / name).mkdir()
        ledger = ledger_in(tmp_path / name)
        lasting = gf.Lasting(updates=3, wait=1)
        model = gf.PrivateMeans(epsilon=4.0, unit="user", catalogue=ITEMS, lasting=lasting)
        model.fit(batch(0) if second else batch(0, n_users=0), ledger=ledger, key="1")  # nobody enters yet
        model.update(second, ledger=ledger, key="2").update(None, ledger=ledger, key="3")
        entries = [told(entry) for entry in ledger.book.entries("kind IN ('open', 'charge')")]
        shown.append([(entry["kind"], entry["idem"], entry["cost"], entry["slack"]) for entry in entries])
        ledger.close()
    assert shown[0] == shown[1]


def test_a_refused_call_leaves_the_life_as_it_was(tmp_path: Path) -> None:
    ledger, model = ledger_in(tmp_path), means()
    model.fit(batch(0), ledger=ledger, key="1")
    for key in (None, "a#b", "a" * 200):
        with pytest.raises(SettingError, match="key"):
            model.update(batch(1), ledger=ledger, key=key)
    with pytest.raises(SettingError, match="ledger"):
        model.update(batch(1), key="2")
    model.unit = "user"
    with pytest.raises(SettingError, match="unit"):
        model.update(batch(1), ledger=ledger, key="2")
    model.unit = "rating"
    assert model.update(batch(1), ledger=ledger, key="2").updates_left_ == 30
    without = means().fit(batch(0), key="1")
    with pytest.raises(SettingError, match="first update of a life, or never"):
        without.update(batch(1), ledger=ledger, key="2")
    assert "No ledger is kept" in without.guarantee().reason
    assert "No ledger is kept" not in model.guarantee().reason


def test_an_empty_update_that_failed_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    ledger, model = ledger_in(tmp_path), means()
    model.fit(batch(0), ledger=ledger, key="1").update(None, ledger=ledger, key="2")
    model.life_.noise = Dies()
    with pytest.raises(MemoryError):
        model.update(None, ledger=ledger, key="3")
    model.life_.noise = None
    with pytest.raises(SettingError, match="failed"):
        model.forget([0])
    with pytest.raises(SettingError, match="failed"):
        model.withdraw(0, [ITEMS[0]])
    assert model.update(None, ledger=ledger, key="3").updates_left_ == 29


def test_an_older_copy_is_refused_where_models_share_a_ledger(tmp_path: Path) -> None:
    ledger, model, other = ledger_in(tmp_path), means(), means(updates=8)
    model.fit(batch(0), ledger=ledger, key="a")
    other.fit(batch(0), ledger=ledger, key="b")
    model.save(tmp_path / "old")
    model.update(batch(1), ledger=ledger, key="a2").update(batch(2), ledger=ledger, key="a3")
    other.update(batch(1), ledger=ledger, key="b2")  # what another model did since is nothing to this one
    old: Any = gf.load_model(tmp_path / "old")
    with pytest.raises(RolledBack, match="older than the ledger"):
        old.update(batch(1), ledger=ledger, key="a2")
    (tmp_path / "second").mkdir()
    with pytest.raises(RolledBack, match="another ledger"):
        model.update(batch(3), ledger=ledger_in(tmp_path / "second"), key="a4")
    model.update(batch(3), ledger=ledger, key="a4")
    assert verify(ledger.book) == []


def test_two_copies_cannot_both_go_on(tmp_path: Path) -> None:
    ledger, model = ledger_in(tmp_path), means()
    model.fit(batch(0), ledger=ledger, key="1").save(tmp_path / "model")
    copies: list[Any] = [gf.load_model(tmp_path / "model") for _ in range(2)]
    copies[0].update(batch(1), ledger=ledger, key="2")
    with pytest.raises((KeyReused, RolledBack)):
        copies[1].update(batch(2), ledger=ledger, key="3")
    third: Any = gf.load_model(tmp_path / "model")
    with pytest.raises(KeyReused):
        third.update(batch(2), ledger=ledger, key="2")


def test_a_catalogue_of_one_item() -> None:
    """Without pairs nothing is released of them, which is not a release that was lost."""
    lasting = gf.Lasting(updates=3)
    model = PrivateCF(epsilon=1.0, plan="covariance", catalogue=[ITEMS[0]], lasting=lasting)
    model.fit(batch(0)).update(batch(1, first=100))
    assert not model.life_.lost


def test_forgetting_fails_wholly_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model = means().fit(batch(0))
    before, kept = sums_of(model), model.life_.learnt_cells()

    def fails(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(gf.PrivateMeans, "_sums", fails)
        with pytest.raises(MemoryError):
            model.forget(5)
    assert (model.life_.learnt_cells() == kept).all()
    assert all((a == b).all() for a, b in zip(before, sums_of(model), strict=True))
    model.forget([5])
    assert len(model.life_.arrived) == model.ratings_.shape[0] == 29


MAY_LOSE = ("committed", "anchor written", "anchor synced", "noise drawn", "temp written", "temp synced")
"""Between charge and artefact."""


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("point", [*POINTS, *SAVED])
def test_a_killed_update_goes_on(point: str, tmp_path: Path) -> None:
    """SIGKILL in the second stage: no stage is paid twice, a lost draw stays lost, and the life goes on."""
    model: Any = PrivateCF(epsilon=1.0, catalogue=ITEMS, lasting=gf.Lasting(updates=4))
    with ledger_in(tmp_path) as ledger:
        model.fit(batch(0), ledger=ledger, key="1").save(tmp_path / "model")
    assert killed(tmp_path, batch(1), "2", point, 1 if point in ("batch closed", *SAVED) else 2)
    model = updated(tmp_path, batch(1), "2")
    published = [
        one for one in model.life_.series.values() if one.begun + len(one.noisy) > 1
    ]  # some pairs may have ended
    assert check(tmp_path, "2") == len(published)
    assert (point in ("committed", "noise drawn")) <= model.life_.lost <= (point in MAY_LOSE)
    model = updated(tmp_path, None if model.life_.lost else batch(2), "3")
    assert updated(tmp_path, batch(3), "4").updates_left_ == 0
    assert not model.life_.lost


def test_a_life_driven_at_random() -> None:
    run_state_machine_as_test(LastingMachine, settings=settings(max_examples=20, stateful_step_count=15, deadline=None))
