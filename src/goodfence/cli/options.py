"""The groups of options that commands share: the ratings, the recommender, the attacker, running, output.

A group is a frozen dataclass whose fields are flags; `panel` is its heading in `--help`. A flag has the name of the
Python argument (`rng` is `--seed`) and the same meaning and default in every command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from goodfence.attack import DEFAULT_FAKES, DEFAULT_KNOWN
from goodfence.cli.command import argument, flag, parse_scale
from goodfence.cli.output import (
    JSON,
    collected_notes,
    print_json,
    print_notes,
    print_paragraphs,
    printable,
    write_json,
)
from goodfence.errors import SettingError, did_you_mean, require

if TYPE_CHECKING:
    from goodfence.attack.attack import Attack
    from goodfence.data.load import ItemList, LocatedRatings
    from goodfence.data.ratings import Feedback, Ratings
    from goodfence.models.configuration import Configured

_FROM_RATINGS = "from-ratings"
EXPERIMENT = {"items": "from ratings"}
"""Of a model that is measured and thrown away, the items are those of its ratings: nothing of it is handed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How a command prints."""

    panel: ClassVar[str] = "Output"
    json: bool = flag(
        None, "Print the result as one JSON object, for programs.", "--json", default=False
    )
    quiet: bool = flag(None, "Print nothing on stderr but errors.", "--quiet", "-q", default=False)

    @property
    def progress(self) -> bool | None:
        """What `progress=` is: no bar where it is to be quiet, a bar on a terminal."""
        return False if self.quiet else None

    def say(self, text: str) -> None:
        """Say on stderr what is going on, before the slow imports: nobody waits for a second in the dark."""
        if not self.quiet:
            typer.echo(printable(text), err=True)

    def tell(
        self,
        result: Mapping[str, object],
        show: Callable[[], None],
        out: Path | None = None,
        write: Callable[[Path], None] | None = None,
    ) -> None:
        """Print a result, as JSON or by `show`, and then write it to `out`, as JSON or by `write`.

        What was found is told before it is written, which may fail.
        """
        if self.json:
            print_json(result)
        else:
            show()
        if out is None:
            return
        if write is None or out.suffix.lower() == JSON:
            write_json(out, result)
        else:
            write(out)
        if not self.json:
            print_paragraphs([("Saved", str(out))])

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Print what goodfence warns about in the block as notes on stderr."""
        with collected_notes() as notes:
            yield
        if not self.quiet:
            print_notes(notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running(Output):
    """How a long command runs, and prints."""

    panel: ClassVar[str] = "Running"
    seed: int | None = flag(
        "N",
        "Seed of a repeatable experiment, 0 or more. A private model fitted with a seed has no guarantee.",
        shown="fresh randomness",
    )
    threads: int | None = flag("N", "How many threads, 1 or more.", shown="all cores")

    def repeatable(self) -> Running:
        """Return the same with a fresh seed where none is given, so that the result can be repeated."""
        from goodfence.rng import fresh_seed

        return self if self.seed is not None else replace(self, seed=fresh_seed())


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededRunning(Running):
    """The same, for what is the same each time unless another seed is given."""

    seed: int = flag("N", "Seed of the experiment, 0 or more.", default=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the ratings are and how they are read, as `gf.load` takes it."""

    panel: ClassVar[str] = "Ratings"
    file: str = argument(
        "FILE",
        "A path (csv, tsv, dat, JSON lines, parquet), - for standard input, or a name of `goodfence data list`.",
    )
    user: str | None = flag(
        "COLUMN",
        "Column of the user ids, by name, or by position from 1 where the file has no header line.",
        shown="found by its name",
    )
    item: str | None = flag("COLUMN", "Column of the item ids, likewise.")
    rating: str | None = flag("COLUMN", "Column of the ratings, likewise.")
    time: str | None = flag(
        "COLUMN", "Column of the times, integers or dates, likewise.", shown="timestamp or the like"
    )
    feedback: str = flag(
        "explicit|implicit",
        "explicit: each row is a rating. implicit: each row is an event without one, a click or a purchase.",
        default="explicit",
    )
    likes: float | None = flag("X", "Make events of ratings: those of X or more.")
    weight: str | None = flag(
        "COLUMN", "Of events: column of how much each counts, more than 0.", shown="1 for each"
    )
    scale: str | None = flag(
        "LOW HIGH [STEP]",
        "Which ratings can be given; STEP is 1 unless given. Required by private models.",
        shown="as observed",
    )
    duplicates: str | None = flag(
        "error|last|first|mean|once|count|sum",
        "Which rating counts where a user rated an item more than once: last, first, mean. Of events: once, how often "
        "(count), or their weights' sum. error: refuse.",
        shown="error; events: once, or sum with --weight",
    )
    separator: str | None = flag(
        "TEXT", "What separates the fields, as in ; or tab or space.", shown="as found"
    )
    decimal: str | None = flag(
        ".|,", "What stands before the fraction of a rating in text.", shown="as found"
    )
    encoding: str | None = flag("NAME", "How text is written, as in latin-1.", shown="utf-8")
    unrated: list[float] | None = flag(
        "X", "A rating that means none, as -1 or 99: such rows are left out; may be repeated."
    )
    items: Path | None = flag(
        "FILE|from-ratings",
        "List of all items from a public source, one id a line; or from-ratings, which declares public what was "
        "rated. `fit` of a private model needs one of both.",
        shown="the items that were rated",
    )
    max_bytes: int | None = flag(
        "N", "How many bytes of memory reading may take, and a file inflate to.", shown="2 GiB"
    )

    @property
    def kind(self) -> Feedback:
        """Whether ratings are read, or events."""
        events = self.feedback == "implicit" or self.likes is not None
        return "implicit" if events else "explicit"

    def read(self, running: Running, *, on_items: bool = True) -> Ratings:
        """Return the ratings of a file or of a named data set, with the items of `--items` as columns or without."""
        running.say(f"reading {self.file}")
        scale = parse_scale(self.scale)
        from goodfence.data.frame import ReadOptions
        from goodfence.data.load import load

        with running.noting():
            listed = self.item_list() if on_items else None
            ratings = load(self.file, scale=scale, read=ReadOptions(**self.reading()))
            return ratings if listed is None else listed.applied_to(ratings)

    def located(self) -> LocatedRatings:
        """Return where the ratings are and how they are to be read, without reading them."""
        scale = parse_scale(self.scale)
        from goodfence.data.frame import ReadOptions
        from goodfence.data.load import locate

        return locate(self.file, ReadOptions(**self.reading(), scale=scale))

    def item_list(self) -> ItemList | None:
        """Return the items of `--items`, if they are given."""
        from goodfence.data.load import read_item_list

        if self.items is None or str(self.items) == _FROM_RATINGS:
            return None
        return read_item_list(self.items, self.limit())

    def public_items(self) -> dict[str, Any]:
        """Return which items are public, as a private model takes it: chosen here, and nothing where it was not."""
        from goodfence.models.private.base import FROM_RATINGS

        listed = self.item_list()
        if listed is not None:
            return {"catalogue": listed.alone()}
        return {} if self.items is None else {"items": FROM_RATINGS}

    def reading(self) -> dict[str, Any]:
        """Return how a file is read, as Python takes it; the scale apart."""
        return {
            "user": self.user,
            "item": self.item,
            "rating": self.rating,
            "time": self.time,
            "weight": self.weight,
            "feedback": self.feedback,
            "likes": self.likes,
            "duplicates": self.duplicates,
            "separator": separator_named(self.separator),
            "decimal": self.decimal,
            "encoding": self.encoding,
            "unrated": self.unrated or None,
            "max_bytes": self.limit(),
        }

    def limit(self) -> int:
        """Return how many bytes a file may inflate to."""
        from goodfence.data.files import DEFAULT_MAX_BYTES

        return DEFAULT_MAX_BYTES if self.max_bytes is None else self.max_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _AnyMethod:
    """Which recommender, and the one setting that is of both kinds."""

    panel: ClassVar[str] = "Recommender"
    mechanism: str = flag(
        "NAME",
        "Neighbour-based: knn, npns, pncf, ppns. Private: private-means, private-cf, private-top-n, "
        "mcsherry-mironov. "
        "Published systems: slope-one, randomised-response and others. `goodfence explain` lists all, "
        "`goodfence explain NAME` says what each does.",
        default="knn",
    )
    setting: list[str] | None = flag(
        "NAME=VALUE",
        "Any other setting of the recommender, as `goodfence explain NAME` lists them; may be repeated.",
    )
    epsilon: float | None = flag(
        "X",
        "pncf, ppns and private models: privacy budget, above 0; smaller is more private. Required by "
        "private models.",
        shown="1 for pncf and ppns",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NeighbourMethod(_AnyMethod):
    """Settings of neighbour-based recommenders."""

    panel: ClassVar[str] = "Neighbour-based recommenders (knn, npns, pncf, ppns)"
    k: int | None = flag("N", "Number of neighbours, 1 or more.", shown="50")
    beta: int | None = flag(
        "N",
        "ppns: number of partitions of k candidates, 1 or more: k-1 neighbours are drawn from the first, "
        "one from the last. Required.",
    )
    rho: float | None = flag(
        "X",
        "pncf: the constant rho in lambda, half the width of the band around the k-th similarity; between"
        " 0 and 1, smaller is wider.",
        shown="0.5",
    )
    reading: str | None = flag(
        "band|truncated",
        "pncf: interpretation of the paper. band: draw within lambda of the k-th similarity. truncated: "
        "draw from all, with far similarities raised to the band's lower edge.",
        shown="band",
    )
    weights: str | None = flag(
        "NAME",
        "npns: weight of a candidate in the draw: similarity, uniform, or a function of its rank "
        "(exponential, weibull, folded_normal).",
        shown="similarity",
    )
    no_noise: bool = flag(
        None,
        "pncf: leave out its second stage, the noise on the similarities in predictions.",
        "--no-noise",
        default=False,
    )
    rs_scope: str | None = flag(
        "target|pair",
        "pncf, ppns: RS of a target, the largest over its candidates; or of each pair.",
        shown="target",
    )
    rs_reading: str | None = flag(
        "printed|derived",
        "pncf, ppns: the second term of RS, as printed or as derived in the literature.",
        shown="printed",
    )
    rs_clamp: str | None = flag("yes|no", "pncf, ppns: whether RS is at most 1.", shown="yes")
    within: int | None = flag(
        "N",
        "npns: draw from the N * k nearest candidates only. pncf: the band reaches down to the (N * k)-th"
        " similarity. 1 or more.",
        shown="npns: the whole list; pncf: lambda",
    )
    axis: str | None = flag("user|item", "User-based or item-based.", shown="user")
    similarity: str | None = flag(
        "NAME",
        "Similarity of two rows. Over all ratings: cosine, centred_cosine (without each row's mean), jaccard. Over what"
        " both rated: cosine_corated, pearson, adjusted_cosine, pearson_baseline, msd.",
        shown="cosine",
    )
    center: str | None = flag(
        "user_mean|item_mean|bias",
        "Average by how much the neighbours' ratings differ from these, and add the target's own.",
        shown="the ratings are averaged",
    )
    among: str | None = flag(
        "all|raters",
        "Choose neighbours once among all, or for each item among those who rated it.",
        shown="all",
    )
    shrinkage: float | None = flag(
        "X",
        "Multiply a similarity over n co-rated items by (n-1) / (n-1 + X), 0 or more.",
        shown="0; 100 for pearson_baseline",
    )
    min_common: int | None = flag(
        "N",
        "With fewer co-rated items than this the similarity is 0; 1 or more.",
        shown="1",
    )
    min_neighbours: int | None = flag(
        "N",
        "With fewer neighbours who rated the item there is no prediction; 1 or more.",
        shown="1",
    )
    over: str | None = flag(
        "raters|neighbours",
        "A prediction divides by the similarities of the neighbours who rated the item, or of all.",
        shown="raters",
    )
    fallback: str | None = flag(
        "item_mean|user_mean|global_mean|bias",
        "What is predicted where too few neighbours rated the item.",
        shown="no prediction",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(_NeighbourMethod):
    """Which recommender, with the names of its Python arguments; None where not given."""

    panel: ClassVar[str] = (
        "Private recommenders (private-means, private-cf, private-top-n and others)"
    )
    delta: float | None = flag(
        "X",
        "Additive slack of the guarantee, in probability, between 0 and 1.",
        shown="1e-5",
    )
    unit: str | None = flag(
        "rating|event|user",
        "private-means, private-cf: what is protected, one rating or all ratings of a user; private-top-n: "
        "one event or all events of a user.",
        shown="rating, or event",
    )
    plan: str | None = flag(
        "auto|means|covariance|half_step",
        "private-cf: which statistics are released; auto decides from noisy ones.",
        shown="auto",
    )

    def configured(
        self, running: Running, *, rng: int | None = None, public: dict[str, Any] | None = None
    ) -> Configured:
        """Return the unfitted recommender that the options describe.

        `public` is what `Source.public_items` returns; None for an experiment, whose items are those of its ratings.
        """
        from goodfence.models.configuration import configured, pairs

        given = {key: value for key, value in asdict(self).items() if value is not None}
        others = pairs(given.pop("setting", []))
        if given.pop("no_noise"):
            given["noise"] = False
        rs = {
            name: given.pop(f"rs_{name}")
            for name in ("scope", "reading", "clamp")
            if f"rs_{name}" in given
        }
        if "clamp" in rs:
            require(rs["clamp"] in ("yes", "no"), "rs_clamp", "'yes' or 'no'", rs["clamp"])
            rs["clamp"] = rs["clamp"] == "yes"
        if rs:
            given["sensitivity"] = rs
        for name in given.keys() & others.keys():
            require(False, name, "given once: by its option, or by --setting", others[name])
        told = EXPERIMENT if public is None else public
        return configured(
            {**given, **others},
            rng=rng,
            threads=running.threads,
            progress=running.progress,
            public=told,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacker:
    """Who attacks, with the names of the attacks' Python arguments."""

    panel: ClassVar[str] = "Attacker"
    known: int = flag(
        "N",
        "How many ratings of each target (of events: how many items) the attacker knows, 1 or more.",
        default=DEFAULT_KNOWN,
    )
    choose: str = flag(
        "random|rarest|most_popular",
        "Which ones: drawn by chance, or those of the rarest or the most popular items.",
        default="random",
    )
    fakes: int | None = flag(
        "N",
        "How many fake profiles are added for each target, 1 or more.",
        shown=f"k, or {DEFAULT_FAKES} where the recommender has no k",
    )
    strategy: str | None = flag(
        "knn|list|cover|adaptive",
        "knn: the published attack, k fakes with the known ratings. list: the same on events, by lists. cover: as many "
        "fakes as the mechanism has candidates, all asking. adaptive: fakes that also rate the item in question, or "
        "click what was listed.",
        shown="the strongest of the usual ones; knn or list with any setting of it",
    )
    ask: str | None = flag(
        "one|all",
        "knn, list, cover: one fake asks, or all do.",
        shown="one; all with cover",
    )
    combine: str | None = flag(
        "mode|mean",
        "knn, cover: how several predictions become one, by the most frequent or the mean.",
        shown="mode",
    )
    rounds: int | None = flag(
        "N",
        "knn, cover: how often the fakes ask, each time after a refit with fresh randomness.",
        shown="1",
    )
    n: int | None = flag("N", "Of events: how many items are on a page of a list.", shown="10")
    pages: int | None = flag("N", "Of events: how many pages of a list are read.", shown="1")

    def attack(self, chosen: Configured, feedback: Feedback = "explicit") -> Attack | None:
        """Return the attack that the options describe, on this recommender; None for the usual ones."""
        from goodfence.attack.knn_attack import AdaptiveAttack, CoverAttack, KNNAttack
        from goodfence.models.configuration import traits_of

        given = {key: value for key, value in asdict(self).items() if value is not None}
        if not set(given) - {"known", "choose"} and self.choose == "random":
            return None
        if feedback == "implicit":
            return self._list_attack(chosen, given)
        strategy = given.pop("strategy", "knn")
        kinds: dict[str, Any] = {"knn": KNNAttack, "cover": CoverAttack, "adaptive": AdaptiveAttack}
        _require_strategy(strategy, kinds)
        if not traits_of(chosen.recommender).n_neighbours:
            given.setdefault("fakes", DEFAULT_FAKES)
        left_out = ("ask", "combine", "rounds") if strategy == "adaptive" else ()
        _require_left_out(given, left_out, f"with strategy={strategy!r}")
        _require_left_out(given, ("n", "pages"), "for ratings: only events have lists")
        attack: Attack = kinds[strategy](**given)
        return attack

    def _list_attack(self, chosen: Configured, given: dict[str, Any]) -> Attack:
        """Return the attack on lists that the options describe."""
        from goodfence.attack.knn_attack import CoverAttack
        from goodfence.attack.list_attack import ListAttack

        strategy = given.pop("strategy", "list")
        _require_strategy(strategy, ("list", "cover", "adaptive"))
        _require_left_out(given, ("combine", "rounds"), "for events: lists are combined by votes")
        if strategy == "cover":
            given.setdefault("ask", "all")
            cover = CoverAttack(known=self.known, fakes=self.fakes)
            given["fakes"] = cover.n_fakes(chosen.recommender, _ANY_NUMBER)
        return ListAttack(**given, adaptive=strategy == "adaptive")


_ANY_NUMBER = 2**31
"""Of users: what looks at a bounded part of a list looks at no more of a longer one."""


def _require_strategy(strategy: str, known: Collection[str]) -> None:
    near = did_you_mean(strategy, known)
    require(strategy in known, "strategy", f"one of {', '.join(known)}", strategy, near)


def _require_left_out(given: Mapping[str, Any], names: Sequence[str], why: str) -> None:
    for name in names:
        if name in given:
            raise SettingError(f"{name} must be left out {why}")


def separator_named(text: str | None) -> str | None:
    """Return what separates the fields, with names for the tab and for blanks."""
    return {"\\t": "\t", "tab": "\t", "space": " "}.get(text or "", text)


def command_line(name: str, *groups: Any, **others: Any) -> str:
    """Return the command that reproduces a result: every option that was given, files without their folders.

    Parameters
    ----------
    name : str
        The command.
    groups
        Groups of options, such as `Source`; a field without a default is an argument by position.
    others
        Further options; None is not given.

    Examples
    --------
    >>> source = Source(file="/home/ann/my ratings.csv", scale="0,10")
    >>> command_line("audit", source, seed=7, out=Path("x/audit.html"))
    "goodfence audit 'my ratings.csv' --scale 0 10 --seed 7 --out audit.html"
    """
    words = ["goodfence", name]
    for group in groups:
        for one in fields(group):
            value = getattr(group, one.name)
            if one.default is MISSING:
                words.append(shlex.quote(Path(str(value)).name))
            elif value != one.default:
                words += _flag(one.name, value)
    for key, value in others.items():
        words += _flag(key, value)
    return " ".join(words)


def _flag(name: str, value: Any) -> Sequence[str]:
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, Path):
        return [flag, shlex.quote(value.name)]
    if isinstance(value, list | tuple):
        return [word for one in value for word in _flag(name, one)]
    if name == "scale":
        return [flag, *str(value).replace(",", " ").split()]
    return [flag, shlex.quote(str(value))]
