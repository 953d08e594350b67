"""`goodfence frontier FILE`: leak against error, mechanism by mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.again import command_line
from goodfence.cli.grouping import command
from goodfence.cli.options import Running, Seed, Source
from goodfence.cli.printing import as_text, print_json, print_paragraphs, print_table
from goodfence.cli.reading import fresh_seed, read, say
from goodfence.cli.recipes import parse
from goodfence.cli.writing import JSON, check_out, is_page, write_whole
from goodfence.report.wording import measured, of_100, promise

if TYPE_CHECKING:
    from goodfence.auditing.frontier import Frontier
    from goodfence.auditing.frontier_point import FrontierPoint
    from goodfence.data.ratings import Ratings
    from goodfence.privacy.guarantee import Guarantee

COMPARED = (
    "knn k=50",
    "ppns k=50 beta=7",
    "npns k=50 within=7",
    "pncf k=50 within=7",
    "private-means epsilon=1",
    "private-cf epsilon=1",
)
"""What is compared where nobody says otherwise: each way once, which takes minutes and not hours."""


@command
def frontier(
    source: Source,
    running: Running,
    compared: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MECHANISM",
            help="What to compare, as in 'ppns k=50 beta=7'; may be given several times.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Compare many settings of each; takes long.")
    ] = False,
    known: Annotated[int, typer.Option(help="How many ratings of a person he knows.")] = 16,
    targets: Annotated[
        int, typer.Option(help="How many people to attack; each takes two fits of a private model.")
    ] = 100,
    fraction: Annotated[float, typer.Option(help="The part of all ratings to hold out.")] = 0.2,
    max_mae: Annotated[float | None, typer.Option(help="The error that you can bear.")] = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write a .html, a .json, or table, manifest and chart to a folder.",
        ),
    ] = None,
) -> None:
    """Compare mechanisms: what each gives away, its error, its promise; and recommend one."""
    check_out(out, folder=True)
    if seed is None and is_page(out):
        seed = fresh_seed()  # a page says how it is made again
    recipes = [parse(text, running) for text in compared or COMPARED]
    ratings = read(source, running)
    from goodfence.auditing.compared import default_list, family_of, label_of
    from goodfence.auditing.frontier import frontier as run
    from goodfence.models.private.base import PrivateRecommender
    from goodfence.privacy.fixed_point import require_declared

    ways: list[Any] = [recipe.recommender for recipe in recipes]
    names = [recipe.label for recipe in recipes]
    if full:
        ways = list(default_list(ratings.shape[0]))
        names = [f"{family_of(way)} {label_of(way)}" for way in ways]
    if any(isinstance(way, PrivateRecommender) for way in ways):
        require_declared(ratings.scale)  # at once, and not after minutes
    say(f"comparing {len(ways)} ways to recommend", running)
    found = run(
        ratings,
        ways,
        known=known,
        targets=targets,
        fraction=fraction,
        rng=seed,
        threads=running.threads,
        progress=running.progress,
    )
    choice = _name(found.recommended(max_mae), found, names)
    promises = [way.guarantee() for way in ways]
    if out is not None and is_page(out):
        line = command_line(
            "frontier",
            source,
            compared=compared,
            full=full,
            known=known,
            targets=targets,
            fraction=fraction,
            max_mae=max_mae,
            seed=seed,
            out=out,
        )
        _write_page(found, promises, ratings, Path(source.file).name, line, max_mae, out)
    elif out is not None:
        _write(found, names, choice, out)
    if running.json:
        print_json(_as_json(found, names, choice))
        return
    _print_table(found, names, promises)
    lines = [("Read by", _attacker(known)), ("Choice", _sentence(choice, max_mae))]
    print_paragraphs(lines if out is None else [*lines, ("Saved", str(out))])


def _name(best: FrontierPoint | None, found: Frontier, names: list[str]) -> str | None:
    return None if best is None else names[found.points.index(best)]


def _write_page(
    found: Frontier,
    promises: list[Guarantee],
    ratings: Ratings,
    data: str,
    line: str,
    max_mae: float | None,
    out: Path,
) -> None:
    from goodfence.report.frontier_page import FrontierPage

    page = FrontierPage(
        found=found, promises=promises, ratings=ratings, data=data, command=line, max_mae=max_mae
    )
    page.save(out)


def _write(found: Frontier, names: list[str], choice: str | None, out: Path) -> None:
    if out.suffix.lower() == JSON:
        write_whole(out, as_text(_as_json(found, names, choice)) + "\n")
    else:
        found.save(out)


def _as_json(found: Frontier, names: list[str], choice: str | None) -> dict[str, Any]:
    rows = zip(names, found.points, strict=True)
    return {
        "points": [{"name": name, **point.row()} for name, point in rows],
        "guess": found.guess._asdict(),
        "recommended": choice,
        "settings": found.settings,
    }


def _print_table(found: Frontier, names: list[str], promises: list[Guarantee]) -> None:
    rows = [
        [
            name,
            measured(point.recovery),
            measured(point.advantage),
            f"{point.n_targets:,}",
            f"{point.mae:.3f}",
            of_100(point.coverage),
            promise(stated),
        ]
        for name, point, stated in zip(names, found.points, promises, strict=True)
    ]
    heading = [
        "mechanism",
        "read of 100",
        "because of her data",
        "people",
        "MAE",
        "covered",
        "promise",
    ]
    print_table(heading, [*rows, ["guessing", measured(found.guess), *[""] * 5]])


def _attacker(known: int) -> str:
    return (
        f"someone who knows {known} of a person's ratings and opens as many accounts as there are neighbours, or "
        "as candidates are looked at; one asks, or all do: the strongest of these. In brackets the 95% interval "
        "over people. MAE is over the held-out ratings that got a prediction, covered is how many of 100 did."
    )


def _sentence(choice: str | None, max_mae: float | None) -> str:
    error = "" if max_mae is None else f" at an error of at most {max_mae:g}"
    if choice is None:
        return f"None of these is shown to be no better than guessing{error}."
    return f"{choice}: the least error among those no better than guessing{error}."
