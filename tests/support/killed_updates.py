"""Updates of a saved model that are killed at a point of a stage, in a forked process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import goodfence as gf
from goodfence.ledger.verify import verify
from goodfence.models.private.life import Life
from goodfence.privacy.noise import SystemNoise
from goodfence.privacy.updates import Updater
from tests.support.ledger_faults import dying_at, in_child

SAVED = ("before saving", "saved")
"""Points behind the last stage."""


def updated(folder: Path, new: gf.Ratings | None, key: str, reached: Callable[..., None] = lambda _: None) -> Any:
    """Update the model of a folder with its ledger, and save it."""
    model: Any = gf.load_model(folder / "model")
    closed, published, drawn = Life.close, Updater.publish, SystemNoise.draw

    def after(true: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            result = true(*arguments)
            reached(name)
            return result

        return run

    def publish(self: Updater, *arguments: Any) -> Any:
        reached("sums made")
        return published(self, *arguments)

    with (
        patch.object(Life, "close", after(closed, "batch closed")),
        patch.object(Updater, "publish", publish),
        patch.object(SystemNoise, "draw", after(drawn, "noise drawn")),
        gf.Ledger(folder / "ledger.db", anchor=folder / "anchor.log") as ledger,
    ):
        model.update(new, ledger=ledger, key=key)
    reached("before saving")
    model.save(folder / "model")
    reached("saved")
    return model


def killed(folder: Path, new: gf.Ratings, key: str, point: str, stage: int) -> bool:
    """Kill an update at a point, as often as `stage` says after it was reached first."""

    def work() -> None:
        with dying_at(point, stage) as reached:
            updated(folder, new, key, reached)

    return os.WIFSIGNALED(in_child(work))


def check(folder: Path, key: str) -> int:
    """Return how many charges an update has; each stage has at most one, and the ledger is whole."""
    with gf.Ledger(folder / "ledger.db", anchor=folder / "anchor.log") as ledger:
        assert verify(ledger.book) == []
        charges = [entry for entry in ledger.book.entries("kind = 'charge'") if entry.facts["key"] == key]
        assert len({str(entry.idem).partition("#")[0] for entry in charges}) == len(charges), "a stage was paid twice"
    return len(charges)
