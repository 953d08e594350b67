"""A privacy claim as a value: whom it is about, what it says, and whether it is true.

A mechanism M is (epsilon, delta)-differentially private if for all neighbouring data sets D and D' and every set S of
outputs P[M(D) in S] <= e^epsilon P[M(D') in S] + delta. Unit and adjacency say which data sets are neighbours. delta is
an additive slack in the probability of every event, not the probability with which the bound fails.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from goodfence.errors import require
from goodfence.markup import html_table
from goodfence.settings import Share, checked

Status: TypeAlias = Literal["proved", "claimed", "refuted", "none"]
Unit: TypeAlias = Literal["rating", "event", "user"]
Adjacency: TypeAlias = Literal["add/remove", "replace"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What is guaranteed to whom, and the status of that claim.

    Examples
    --------
    >>> print(Guarantee(status="none", reason="The nearest are always chosen."))
    none: The nearest are always chosen.
    """

    status: Status
    """`proved` here, `claimed` by a paper, `refuted` by a counterexample, or `none` made."""
    unit: Unit | None = None
    """What two neighbouring data sets differ in: one rating, one event, or all that one user gave."""
    adjacency: Adjacency | None = None
    """How they differ in it: it is there or not, or it has another value."""
    epsilon: float | None = None
    """The guaranteed (where refuted: the claimed) epsilon; `None` without one."""
    delta: Share | None = None
    """The slack that is added to the bound on the probability of every event; `None` without a guarantee."""
    reason: str
    """One sentence: why this is so."""

    def __post_init__(self) -> None:
        require(bool(self.reason.strip()), "reason", "a sentence", self.reason)
        stated = [self.unit, self.adjacency, self.epsilon, self.delta]
        if self.status == "none":
            require(stated == [None] * 4, "a guarantee of status 'none'", "without numbers", stated)
            return
        complete = None not in stated
        require(complete, "a guarantee", "stated with unit, adjacency, epsilon and delta", stated)
        require((self.epsilon or 0.0) >= 0, "epsilon", "at least 0", self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        rows = [(name, value) for name, value in asdict(self).items() if value is not None]
        return html_table(["guarantee", ""], rows)

    def __str__(self) -> str:
        if self.status == "none":
            return f"none: {self.reason}"
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"{self.status}: {budget} per {self.unit} ({self.adjacency}). {self.reason}"
