"""What a figure is: read from `definitions/*.toml`, checked, and fitted to the data at hand."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from goodfence.data.load import load
from goodfence.data.ratings import Ratings
from goodfence.errors import DownloadProblem, GoodfenceWarning, SettingError, did_you_mean, require
from goodfence.neighbours.predict import Over
from goodfence.registry import made_of, settings_of
from goodfence.selection.mechanism import Mechanism

Protocol: TypeAlias = Literal["paper", "attack"]
Number: TypeAlias = int | float

ORDER = ("item-movielens", "user-movielens", "user-douban", "attack-beta", "attack-k", "attack-epsilon", "attack-m")
"""The figures in the order of the paper."""
BUNDLED = "movietweetings"
DATA_LABELS = {
    "ml-100k": "MovieLens",
    "ml-1m": "MovieLens 1M",
    "douban-movie": "Douban film",
    "movietweetings": "MovieTweetings",
}
PRIVATE = ("nPNS", "PNCF", "PPNS")
"""The series that a claim compares with each other."""
COMPARED = ("kNN", *PRIVATE)
"""The methods of the paper."""
_AS_READ = ("id", "caption", "protocol", "axis", "fixed", "series")
LARGEST_RS = "PNCF, largest RS"
"""PNCF once more, with one RS for a target instead of one for each pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One figure: what is fixed, what varies, and which mechanisms are drawn."""

    id: str
    title: str
    caption: str
    protocol: Protocol
    """`paper`: all ratings of some targets, in place. `attack`: the hidden ratings of attacked targets."""
    axis: Literal["user", "item"]
    data: str
    note: str
    x: str
    label: str
    scale: Literal["linear", "log"]
    values: tuple[Number, ...]
    fixed: Mapping[str, Number]
    bounded: bool
    """Whether only points within the paper's own bound of beta, `n / (2 k)`, are drawn."""
    series: Mapping[str, Mapping[str, Any]]
    """The mechanisms; a text other than the mechanism's name is a parameter."""
    n_rows: int | None = None
    """How many users (item-based: items) the ratings have that it was fitted to."""

    def parameters(self, x: Number) -> dict[str, Number]:
        """Return every parameter at one point."""
        return {**self.fixed, self.x: x}

    def mechanism(self, series: str, x: Number) -> Mechanism:
        """Return the mechanism of one series at one point."""
        parameters = self.parameters(x)
        settings = {
            name: parameters[value] if name != "mechanism" and isinstance(value, str) else value
            for name, value in self.series[series].items()
        }
        return cast("Mechanism", made_of(settings))

    def known(self, x: Number) -> int:
        """Return m, how many ratings the attacker knows, at one point."""
        return int(self.parameters(x)["known"])

    @property
    def judged(self) -> tuple[Number, ...]:
        """The points that claims are judged by: without an attack those within the paper's bound of beta."""
        if self.protocol == "attack" or self.n_rows is None:
            return self.values
        return tuple(x for x in self.values if self._within_bound(x, self.n_rows))

    @property
    def most_known(self) -> int:
        """The largest m of the figure: targets have more ratings than that."""
        return max(map(self.known, self.values)) if self.protocol == "attack" else 0

    def fitted(self, ratings: Ratings) -> Definition:
        """Return the definition with the points that these ratings can hold."""
        n_rows = ratings.shape[0 if self.axis == "user" else 1]
        kept = tuple(x for x in self.values if self._fits(x, n_rows, ratings))
        if not kept:
            raise SettingError(f"data must be larger for the figure {self.id}: no point of it fits")
        return replace(self, values=kept, n_rows=n_rows)

    def _within_bound(self, x: Number, n_rows: int) -> bool:
        parameters = self.parameters(x)
        return 2 * parameters["beta"] * parameters["k"] <= n_rows

    def _fits(self, x: Number, n_rows: int, ratings: Ratings) -> bool:
        parameters = self.parameters(x)
        if self.bounded and not self._within_bound(x, n_rows):
            return False
        longer = np.diff(ratings.csr.indptr) > parameters.get("known", 0)
        within = parameters["beta"] * parameters["k"] <= n_rows - 1
        return bool(within and (self.protocol == "paper" or longer.any()))


@cache
def definition(name: str, *, quick: bool = False, bundled: bool = False, data: str | None = None) -> Definition:
    """Return a figure of `ORDER`: on the ratings that come with goodfence (`bundled`), or on other `data`."""
    near = did_you_mean(name, ORDER)
    require(name in ORDER, "figure", f"one of {', '.join(ORDER)}", name, near)
    file = files("goodfence.papers.reproduction") / "definitions" / f"{name}.toml"
    read = tomllib.loads(file.read_text(encoding="utf-8"))
    points = read["bundled"] if bundled else read["x"]
    elsewhere = BUNDLED if bundled else data
    name_of_data = elsewhere or read["data"]
    note = str(read.get("note", ""))
    if elsewhere is not None:
        where = "the bundled MovieTweetings" if elsewhere == BUNDLED else "other ratings"
        note = f"Drawn from {where}, NOT from {DATA_LABELS[read['data']]} as in the paper."
    return Definition(
        **{name: read[name] for name in _AS_READ},
        title=read["title"].format(data=DATA_LABELS.get(name_of_data, name_of_data)),
        data=name_of_data,
        note=note,
        x=read["x"]["name"],
        label=read["x"]["label"],
        scale=read["x"]["scale"],
        values=tuple(points["quick" if quick else "values"]),
        bounded=read["x"].get("bounded", False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """How the paper is interpreted where it is ambiguous; the defaults are what its text supports best."""

    similarity: str = "cosine"
    """`cosine` as printed [COS], or `cosine_corated`: norms over co-rated items only."""
    rs: Literal["printed", "derived"] = "printed"
    """The second term of [RS]."""
    scope: Literal["target", "pair"] | None = None
    """Whose RS: the largest over a target's candidates, or the pair's own; None as the figure states of each series."""
    clamp: bool = True
    """Take min(RS, 1); False leaves RS as it is computed."""
    pncf: Literal["band", "truncated"] = "band"
    """How PNCF draws: as this paper describes it, or as Zhu et al. do, which needs one RS for a target."""
    noise: bool = True
    """Whether PNCF adds its second noise."""
    over: Over = "raters"
    """Whom the denominator of [PRED] counts."""
    choose: Literal["random", "rarest", "most_popular"] = "random"
    """Which of the target's ratings the attacker knows."""
    more_than: int = 0
    """Attack only users with more ratings than this; the figures' own bound where that is higher."""

    def applied(self, mechanism: Mechanism) -> Mechanism:
        """Return the mechanism under this interpretation."""
        settings: dict[str, Any] = settings_of(mechanism)
        is_pncf = "rho" in settings
        if settings.get("sensitivity") is not None:
            asked = {"reading": self.rs, "clamp": self.clamp}
            scope = self.scope or settings["sensitivity"]["scope"]
            if is_pncf and self.pncf == "truncated":
                scope = "target"
            settings["sensitivity"] = {**asked, "scope": scope}
        if is_pncf:
            settings |= {"reading": self.pncf, "noise": self.noise}
        return cast("Mechanism", made_of(settings))


DEFAULT = Interpretation()


@dataclass(frozen=True, eq=False, repr=False)
class Sources:
    """Loads each set of ratings once."""

    data: str | None = None
    """Take these ratings for every figure: a catalogue name, or a path; None for those of the paper."""
    _loaded: dict[str, Ratings | None] = field(default_factory=dict)

    def figure(self, name: str, *, quick: bool) -> tuple[Definition, Ratings]:
        """Return a figure with the points that its ratings can hold, and the ratings."""
        bundled = self.data == BUNDLED
        data = None if bundled else self.data
        wanted = definition(name, quick=quick, bundled=bundled, data=data)
        ratings = self.ratings(wanted.data)
        if ratings is None:
            wanted = definition(name, quick=quick, bundled=True)
            ratings = self.ratings(BUNDLED)
        assert ratings is not None, "the bundled ratings are always there"  # noqa: S101 - types
        return wanted.fitted(ratings), ratings

    def ratings(self, name: str) -> Ratings | None:
        """Return the ratings of this name; None, with a warning, where they cannot be had."""
        if name not in self._loaded:
            try:
                self._loaded[name] = load(name)
            except DownloadProblem as problem:
                if name == self.data:
                    raise
                told = "until then the figures that need it are drawn from the bundled ratings"
                warnings.warn(f"{problem}; {told}", GoodfenceWarning, stacklevel=2)
                self._loaded[name] = None
        return self._loaded[name]
