"""The similarities, by name: `cosine` [COS], `cosine_corated` and `pearson`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from goodfence.errors import did_you_mean, require

Name: TypeAlias = Literal["cosine", "cosine_corated", "pearson"]
Centre: TypeAlias = Literal["all", "corated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """What "people like you" means.

    Examples
    --------
    >>> Similarity.of("pearson")
    Similarity(name='pearson', centre='all')
    """

    name: Name = "cosine"
    """`cosine`: dot product over the co-rated items, norms over all items each one rated [COS].
    `cosine_corated`: norms over the co-rated items only. `pearson`: correlation over the co-rated items."""
    centre: Centre = "all"
    """For `pearson`: centre by the mean over all of one's ratings, or over the co-rated ones only."""

    def __post_init__(self) -> None:
        names = get_args(Name)
        rule = f"one of {', '.join(names)}{did_you_mean(str(self.name), names)}"
        require(self.name in names, "similarity", rule, self.name)
        require(self.centre in get_args(Centre), "centre", "'all' or 'corated'", self.centre)

    @classmethod
    def of(cls, similarity: Similarity | str) -> Similarity:
        """Return `similarity` itself, or the one of that name."""
        if isinstance(similarity, Similarity):
            return similarity
        return cls(name=similarity)  # type: ignore[arg-type]  # checked by __post_init__

    def __str__(self) -> str:
        return f"{self.name}, centred on co-rated" if self.centre == "corated" else self.name
