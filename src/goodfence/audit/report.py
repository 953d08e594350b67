"""`AuditReport`: what is guaranteed, what leaked, and what runs or the exact distribution say about the guarantee."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import goodfence
from goodfence.attack.report import AttackReport
from goodfence.audit.lower_bound import LowerBound
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee
from goodfence.report.serialize import write_json
from goodfence.report.wording import verdict_line

Verdict: TypeAlias = Literal["refuted", "broken", "not broken", "no guarantee"]


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
    """What an audit found. It holds no id and no rating, and is still a function of the data without noise.

    An audit can break a guarantee; it cannot give one. `not broken` says that this attempt failed, and how hard it was.
    """

    audited: str
    """The mechanism or the recommender, with its settings."""
    guarantee: Guarantee
    """What it guarantees."""
    leakage: AttackReport
    """What the strongest attacker who was tried learnt on the given ratings; `.advantage`, `.fully_recovered`."""
    neighbourhood: str
    """Whose neighbours were attacked, in words."""
    bound: LowerBound | None
    """What repeated runs on two neighbouring data sets prove; None where none were made."""
    claimed_mu: float | None
    """The Gaussian shift that the releases claim, where they are such; beside `bound.mu`."""
    moved: float | None
    """How much of that shift the two data sets make use of: near 1 is a hard test, above 1 a violation."""
    exhibit: Exhibit | None
    """The counterexample to a mechanism; None where there is none."""
    pair: str
    """The two data sets of the runs, in words."""

    @property
    def verdict(self) -> Verdict:
        """`refuted` by a counterexample, `broken` by the runs, `not broken` by them, or `no guarantee` to break."""
        if self.guarantee.epsilon is None:
            return "no guarantee"
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
        stated, shown = self.guarantee.epsilon, 0.0 if self.bound is None else self.bound.epsilon
        if stated is None:
            least = f"runs show epsilon of {shown:.3f} at least"
            if self._impossible:
                least = (
                    "and none would hold: an output is possible with one rating, impossible without"
                )
            return f"no guarantee: {least}."
        if self.verdict == "refuted":
            return (
                "refuted: an output is possible with one rating and impossible without it, so the stated "
                f"epsilon={stated:g} does not hold, and no other does."
            )
        if self.verdict == "broken" and shown <= stated:
            return f"broken: what is released is farther apart than epsilon={stated:.3f} allows."
        relation = "above" if self.verdict == "broken" else "below"
        return (
            f"{self.verdict}: runs show epsilon of {shown:.3f} at least, {relation} the "
            f"{self.guarantee.status} {stated:.3f}."
        )

    def __repr__(self) -> str:
        found = self.leakage.estimates
        lines = [
            f"AuditReport({self.audited})",
            f"  verdict     {self.summary}",
            f"  guarantee   {self.guarantee}",
            f"  advantage   {found['advantage']}   over {self.leakage.n_targets:,} targets",
            f"  recovery    {found['recovery']}   guessing: {found['guess'].value:.4f}",
            f"  users       {found['fully_recovered']}   fully recovered",
        ]
        if self.exhibit is not None:
            lines.append(f"  example     {self.exhibit}")
        if self.bound is not None:
            lines.append(f"  runs        {self.bound}; {self.pair}")
        if self.bound is not None and self.claimed_mu is not None and self.moved is not None:
            lines.append(
                f"  shift       mu at least {self.bound.mu:.4f}, claimed {self.claimed_mu:.4f}; "
                f"the pair makes use of {self.moved:.1%} of it"
            )
        return "\n".join(lines)

    def tested(self) -> dict[str, Any]:
        """Return what became of the guarantee, as plain values: verdict, counterexample and runs."""
        return {
            "verdict": self.verdict,
            "summary": self.summary,
            "exhibit": None if self.exhibit is None else asdict(self.exhibit),
            "bound": None if self.bound is None else asdict(self.bound),
            "claimed_mu": self.claimed_mu,
            "moved": self.moved,
            "pair": self.pair,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values: no ids, no ratings."""
        return {
            "goodfence": goodfence.__version__,
            "kind": "AuditReport",
            "audited": self.audited,
            **self.tested(),
            "guarantee": self.guarantee.to_dict(),
            "leakage": self.leakage.to_dict(),
            "neighbourhood": self.neighbourhood,
            "verdict_line": self.verdict_line,
        }

    @property
    def verdict_line(self) -> str:
        """What was found, for the reader who must decide: finding, date, scope, and what was assumed."""
        return verdict_line(self.leakage, self.audited, self.neighbourhood)

    def _repr_html_(self) -> str:
        from goodfence.report.serialize import audit_html

        return audit_html(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report as a JSON file, in one atomic step; `gf.audit_page` makes a page of it."""
        page = Path(path).suffix.lower() in (".html", ".htm")
        require(not page, "path", "a name of a JSON file; gf.audit_page writes HTML", "HTML")
        write_json(path, self)
