"""A reading of the paper: which of its ambiguities is settled how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from goodfence.models.neighbour_cf import Over
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.settings import mechanism_of, settings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the paper is read; the defaults are the readings that its text supports best.

    Examples
    --------
    >>> from goodfence.selection.ppns import PPNS
    >>> Reading(rs="derived").applied(PPNS(k=5, beta=2)).sensitivity.reading
    'derived'
    """

    similarity: str = "cosine"
    """`cosine` as printed [COS], or `cosine_corated`: norms over co-rated items only."""
    rs: Literal["printed", "derived"] = "printed"
    """The second term of [RS]."""
    pncf: Literal["band", "truncated"] = "band"
    """How PNCF draws: as this paper describes it, or as Zhu et al. do."""
    over: Over = "raters"
    """Whom the denominator of [PRED] counts."""

    def applied(self, mechanism: Mechanism) -> Mechanism:
        """Return the mechanism under this reading."""
        settings: dict[str, Any] = settings_of(mechanism)
        if settings.get("sensitivity") is not None:
            settings["sensitivity"] = {**settings["sensitivity"], "reading": self.rs}
        if "rho" in settings:
            settings["reading"] = self.pncf
        return mechanism_of(settings)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The reading as a manifest holds it."""
        return asdict(self)


DEFAULT = Reading()
