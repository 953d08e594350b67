"""The options that commands share: where the ratings are, which mechanism, how to print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

_READING = "Reading the file"
_MECHANISM = "Mechanism"
_POSITION = "by name, or by position from 1 where there is no header line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the ratings are and how they are read, as `gf.load` takes it."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A path (csv, tsv, dat, parquet), or a name of `goodfence data list`.",
        ),
    ]
    user: Annotated[
        str | None,
        typer.Option(help=f"The column of the person, {_POSITION}.", rich_help_panel=_READING),
    ] = None
    item: Annotated[
        str | None,
        typer.Option(help="The column of the item, likewise.", rich_help_panel=_READING),
    ] = None
    rating: Annotated[
        str | None,
        typer.Option(help="The column of the rating, likewise.", rich_help_panel=_READING),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="LOW HIGH [STEP]",
            help="Which ratings can be given; steps of 1.",
            rich_help_panel=_READING,
        ),
    ] = None
    duplicates: Annotated[
        str | None,
        typer.Option(
            metavar="error|last|first|mean",
            help="What to do where a pair is rated twice.",
            rich_help_panel=_READING,
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(
            help="What separates the fields, if not what the name says.", rich_help_panel=_READING
        ),
    ] = None
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="All items there are, from a public source: one id a line, as the ratings have it.",
            rich_help_panel=_READING,
        ),
    ] = None
    max_bytes: Annotated[
        int | None,
        typer.Option(
            help="How many bytes the file may inflate to (2 GiB if not given).",
            rich_help_panel=_READING,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Which recommender, with the names of its Python arguments; None where not given."""

    mechanism: Annotated[
        str,
        typer.Option(
            help="knn, npns, pncf, ppns, private-means, private-cf or mcsherry-mironov.",
            rich_help_panel=_MECHANISM,
        ),
    ] = "knn"
    k: Annotated[
        int | None,
        typer.Option(help="How many neighbours; 50 if not given.", rich_help_panel=_MECHANISM),
    ] = None
    beta: Annotated[
        int | None,
        typer.Option(help="ppns: how many partitions.", rich_help_panel=_MECHANISM),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(help="The budget: pncf, ppns, private ones.", rich_help_panel=_MECHANISM),
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(help="Private ones: how often it may fail.", rich_help_panel=_MECHANISM),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="rating|user",
            help="Private ones: what is protected.",
            rich_help_panel=_MECHANISM,
        ),
    ] = None
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="auto|means|covariance|half_step",
            help="private-cf: what is released.",
            rich_help_panel=_MECHANISM,
        ),
    ] = None
    rho: Annotated[
        float | None, typer.Option(help="pncf: in lambda.", rich_help_panel=_MECHANISM)
    ] = None
    reading: Annotated[
        str | None,
        typer.Option(
            metavar="band|truncated", help="pncf: which reading.", rich_help_panel=_MECHANISM
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(help="npns: similarity, uniform, or a rank law.", rich_help_panel=_MECHANISM),
    ] = None
    within: Annotated[
        int | None,
        typer.Option(help="npns, pncf: only the within * k nearest.", rich_help_panel=_MECHANISM),
    ] = None
    axis: Annotated[
        str | None,
        typer.Option(
            metavar="user|item", help="Neighbours of people, or items.", rich_help_panel=_MECHANISM
        ),
    ] = None
    similarity: Annotated[
        str | None,
        typer.Option(
            metavar="cosine|cosine_corated|pearson",
            help="Who counts as alike.",
            rich_help_panel=_MECHANISM,
        ),
    ] = None
    over: Annotated[
        str | None,
        typer.Option(
            metavar="raters|neighbours", help="Whom to divide by.", rich_help_panel=_MECHANISM
        ),
    ] = None
    fallback: Annotated[
        str | None,
        typer.Option(
            metavar="item_mean|user_mean|global_mean",
            help="Where no neighbour rated the item; nothing is predicted if not given.",
            rich_help_panel=_MECHANISM,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How a command prints."""

    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Running(Output):
    """How a long command runs."""

    threads: Annotated[
        int | None, typer.Option(help="How many threads; as many as cores if not given.")
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")] = (
        False
    )

    @property
    def progress(self) -> bool | None:
        """What `progress=` is: none where it is to be quiet, a bar on a terminal."""
        return False if self.quiet else None


Seed = Annotated[
    int | None,
    typer.Option(help="The same seed gives the same result; fresh randomness if not given."),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Exit with 1 where more than N of 100 hidden ratings are read exactly.",
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="A folder for the table and the manifest.")
]
