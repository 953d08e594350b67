"""The frontier as a page: what each way to recommend gives away, how wrong it is, and what it promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import goodfence
from goodfence.attack.saving import ratings_checksum
from goodfence.auditing.frontier import Frontier
from goodfence.auditing.frontier_point import FrontierPoint
from goodfence.data.ratings import Ratings
from goodfence.privacy.guarantee import Guarantee
from goodfence.report.cards import cards_of
from goodfence.report.enclosed import frontier_as_json
from goodfence.report.frontier_picture import choice_of, frontier_pictures, name_of, ways_of
from goodfence.report.rendering import render, write_page
from goodfence.report.waffle import Waffle, waffle
from goodfence.report.wording import dashed, interval, of_100


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FrontierPage:
    """A frontier ready to be written as a page. What it writes holds no id and no rating."""

    found: Frontier
    """The figures."""
    promises: Sequence[Guarantee]
    """What each way promises, in the same order."""
    ratings: Ratings
    """What was recommended from: its shape, scale and checksum are shown."""
    data: str
    """What the ratings are called; never a path."""
    command: str
    """What makes these figures again."""
    max_mae: float | None = None
    """The error that can be borne."""

    def __repr__(self) -> str:
        return f"FrontierPage({len(self.found.points)} ways)"

    @property
    def html(self) -> str:
        """The page as text."""
        enclosed = {
            "goodfence": goodfence.__version__,
            "command": self.command,
            "data": {"name": self.data, "checksum": ratings_checksum(self.ratings)},
            "max_mae": self.max_mae,
            **frontier_as_json(self.found, self.promises, self.max_mae),
        }
        return render("frontier.html", self._values(), enclosed)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        write_page(self.html, Path(path))

    def _values(self) -> dict[str, Any]:
        found, ratings = self.found, self.ratings
        ways = ways_of(found, own=False, max_mae=self.max_mae)
        n_users, n_items = ratings.shape
        return {
            "data": self.data,
            "n_users": n_users,
            "n_items": n_items,
            "n_ratings": ratings.n_ratings,
            "scale": ratings.scale,
            "m": found.known,
            "sentences": _sentences(found, self.max_mae),
            "waffles": _waffles(found, self.max_mae),
            "ways": ways,
            "pictures": frontier_pictures(found, ways),
            "choice": choice_of(ways, self.max_mae),
            "cards": cards_of([way.name for way in ways], self.promises),
            "command": self.command,
            "seed": found.settings.get("seed"),
            "checksum": ratings_checksum(ratings),
        }


def _ends(found: Frontier, max_mae: float | None) -> tuple[FrontierPoint, FrontierPoint | None]:
    """Return the way that gives most away, and the recommended one if it is another."""
    most = max(found.points, key=lambda point: point.recovery.value)
    best = found.recommended(max_mae)
    return most, None if best is most else best


def _sentences(found: Frontier, max_mae: float | None) -> list[str]:
    most, best = _ends(found, max_mae)
    known = "some" if found.known is None else str(found.known)
    read = (
        f"Someone who knows {known} of a person's ratings reads {of_100(most.recovery.value)} of 100 of her others "
        f"exactly where {name_of(most)} recommends (95%: {interval(most.recovery)})"
    )
    if best is not None:
        other = best.recovery
        read += f", and {of_100(other.value)} of 100 where {name_of(best)} does (95%: {interval(other)})"
    guess = found.guess
    guessed = f"Someone who never saw her data guesses {of_100(guess.value)} of 100 (95%: {interval(guess)})."
    return [dashed(f"{read}."), dashed(guessed)]


def _waffles(found: Frontier, max_mae: float | None) -> list[Waffle]:
    most, best = _ends(found, max_mae)
    shown = [waffle("read", f"read from {name_of(most)}", most.recovery)]
    if best is not None:
        shown.append(waffle("good", f"read from {name_of(best)}", best.recovery))
    return [*shown, waffle("guess", "guessed, with no account at all", found.guess)]
