"""`AuditReport`: what was promised, what leaked, and what repeated runs or the exact law say about the promise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import goodfence
from goodfence.attack.report import AttackReport
from goodfence.attack.saving import ratings_checksum
from goodfence.auditing.bounds import LowerBound
from goodfence.data.whole import written_whole
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee

Verdict: TypeAlias = Literal["refuted", "broken", "not broken", "no promise"]

_LEAKAGE = ("recovery", "recovery_without", "advantage", "guess", "exact", "coverage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """An output that one data set can give and its neighbour cannot, with exact probabilities."""

    event: str
    """What is seen, in words."""
    with_it: float
    """Its probability in the data set with the rating in question."""
    without: float
    """Its probability in the data set without it."""
    n_candidates: int
    """How many candidates the asker of these data sets has."""

    def __str__(self) -> str:
        return (
            f"{self.event}: probability {self.with_it:.4g} with one rating, {self.without:.4g} without it "
            f"({self.n_candidates} candidates; exact)"
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditReport:
    """What an audit found. It holds no id and no rating.

    An audit can break a promise; it cannot make one. `not broken` says that this attempt failed, and how hard it was.
    """

    audited: str
    """The mechanism or the recommender, with its settings."""
    guarantee: Guarantee
    """What it promises."""
    leakage: AttackReport
    """What fake accounts learnt on the given ratings."""
    bound: LowerBound | None
    """What repeated runs on two neighbouring data sets prove; None where none were made."""
    claimed_mu: float | None
    """The Gaussian shift that the releases claim, where they are such; beside `bound.mu`."""
    moved: float | None
    """How much of that shift the two data sets make use of: near 1 is a hard test, above 1 a violation."""
    exhibit: Exhibit | None
    """The witness against a mechanism; None where there is none."""
    pair: str
    """The two data sets of the runs, in words."""

    @property
    def verdict(self) -> Verdict:
        """`refuted` by an exhibit, `broken` by the runs, `not broken` by them, or `no promise` to break."""
        if self.guarantee.epsilon is None:
            return "no promise"
        if self._impossible:
            return "refuted"
        return "broken" if self._exceeded else "not broken"

    @property
    def _exceeded(self) -> bool:
        if self.moved is not None and self.moved > 1:
            return True
        if self.bound is None or self.guarantee.epsilon is None:
            return False
        if self.claimed_mu is not None and self.bound.mu > self.claimed_mu:
            return True
        return self.bound.epsilon > self.guarantee.epsilon

    @property
    def _impossible(self) -> bool:
        return self.exhibit is not None and self.exhibit.without == 0 < self.exhibit.with_it

    @property
    def summary(self) -> str:
        """The verdict as a sentence."""
        promised, shown = self.guarantee.epsilon, 0.0 if self.bound is None else self.bound.epsilon
        if promised is None:
            least = f"runs show epsilon of {shown:.3f} at least"
            if self._impossible:
                least = (
                    "and none would hold: an output is possible with one rating, impossible without"
                )
            return f"no promise: {least}."
        if self.verdict == "refuted":
            return (
                "refuted: an output is possible with one rating and impossible without it, so the stated "
                f"epsilon={promised:g} does not hold, and no other does."
            )
        if self.verdict == "broken" and shown <= promised:
            return f"broken: what is released is farther apart than epsilon={promised:.3f} allows."
        relation = "above" if self.verdict == "broken" else "below"
        return (
            f"{self.verdict}: runs show epsilon of {shown:.3f} at least, {relation} the "
            f"{self.guarantee.status} {promised:.3f}."
        )

    def __repr__(self) -> str:
        found = self.leakage.estimates
        lines = [
            f"AuditReport({self.audited})",
            f"  verdict     {self.summary}",
            f"  guarantee   {self.guarantee}",
            f"  advantage   {found['advantage']}   what her data gave away; {self.leakage.n_targets:,} targets",
            f"  recovery    {found['recovery']}   guessing the item's mean: {found['guess'].value:.4f}",
        ]
        if self.exhibit is not None:
            lines.append(f"  witness     {self.exhibit}")
        if self.bound is not None:
            lines.append(f"  runs        {self.bound}; {self.pair}")
        if self.bound is not None and self.claimed_mu is not None and self.moved is not None:
            lines.append(
                f"  shift       mu at least {self.bound.mu:.4f}, claimed {self.claimed_mu:.4f}; "
                f"the pair makes use of {self.moved:.1%} of it"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values: no ids, no ratings."""
        leakage = self.leakage.estimates
        promise = self.guarantee
        return {
            "goodfence": goodfence.__version__,
            "kind": "AuditReport",
            "audited": self.audited,
            "verdict": self.verdict,
            "summary": self.summary,
            "guarantee": {name: getattr(promise, name) for name in promise.__slots__},
            "leakage": {
                "attack": self.leakage.attack,
                "n_targets": self.leakage.n_targets,
                "n_hidden": self.leakage.n_hidden,
                **{
                    name: [number if math.isfinite(number) else None for number in leakage[name]]
                    for name in _LEAKAGE
                },
            },
            "bound": _fields(self.bound),
            "claimed_mu": self.claimed_mu,
            "moved": self.moved,
            "exhibit": _fields(self.exhibit),
            "pair": self.pair,
            "ratings": ratings_checksum(self.leakage.ratings),
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report as a JSON file, whole or not at all; `gf.audit_page` makes a page of it."""
        page = Path(path).suffix.lower() in (".html", ".htm")
        require(not page, "path", "a name of a JSON file; gf.audit_page writes HTML", "HTML")
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        with written_whole(Path(path)) as file:
            file.write((text + "\n").encode())


def _fields(value: LowerBound | Exhibit | None) -> dict[str, Any] | None:
    return None if value is None else {name: getattr(value, name) for name in value.__slots__}
