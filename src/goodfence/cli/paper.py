"""`goodfence paper reproduce | predict | alpha`: the paper's figures and claims, its Algorithm 1, its two metrics."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.command import argument, command, command_group, flag, panel
from goodfence.cli.options import Method, Running, SeededRunning, Source
from goodfence.cli.output import FOLDER, LINE, out_option, print_paragraphs, print_table
from goodfence.errors import SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from goodfence.data.ratings import Id
    from goodfence.models.method import Configured

_INDENT = " " * 19
_COLOURS = {"holds": "green", "fails": "red", "reversed": "red", "cannot tell": "yellow"}


@panel("Experiment")
class FigureOptions:
    """Which figure, at what size, on which data."""

    figure: str | None = argument(
        "FIGURE",
        "item-movielens, user-movielens, user-douban, attack-beta, attack-k, attack-epsilon, attack-m; or all.",
        default=None,
    )
    quick: bool = flag(None, "Fewer points: minutes, not hours.", "--quick", default=False)
    data: str | None = flag("NAME|FILE", "Use other ratings.", shown="the paper's data")


@command("Reproduce the paper's figures and judge its claims.")
def reproduce_command(
    chosen: FigureOptions,
    running: SeededRunning,
    out: Annotated[
        Path, out_option(FOLDER, of="a folder with tables, charts and manifests; a second run resumes")
    ] = Path("reproduction"),
) -> None:
    """Draw the figures of the paper and judge its claims; a failed claim is a result, not an error."""
    from goodfence.papers.reproduction.figures import reproduce, reproduce_all

    figure = chosen.figure
    settings: dict[str, Any] = {"quick": chosen.quick, "data": chosen.data, "keep": out / "points"}
    settings |= {"rng": running.seed, "threads": running.threads}
    with running.noting() as notes:
        found: Any = reproduce(figure, **settings) if figure else reproduce_all(**settings)
        found.save(out / figure if figure else out)

    def show() -> None:
        typer.echo(f"\nVerdicts on {'the claims about ' + figure if figure else 'all claims'}\n")
        for claim in found.claims:
            verdict = typer.style(claim.verdict.ljust(11), fg=_COLOURS[claim.verdict], bold=True)
            typer.echo(f" {claim.label:>3}  {verdict}  {claim.text}")
            needed = f" It would take {claim.needed:,} targets." if claim.needed else ""
            for line in textwrap.wrap(claim.sentence + needed, LINE - len(_INDENT)):
                typer.echo(f"{_INDENT}{typer.style(line, dim=True)}")
        typer.echo(f"\nTables, charts and manifests: {out}")

    running.tell({"out": str(out), **found.to_dict(), "notes": notes}, show)


@panel("Prediction")
class OnePrediction:
    """Whose rating of which item is predicted."""

    whom: str = argument("USER", "The user's id.")
    what: str = argument("ITEM", "The item's id.")
    show_neighbours: bool = flag(
        None, "Also print the neighbours, for the operator only.", "--show-neighbours", default=False
    )


@command("Predict one rating by the paper's Algorithm 1.")
def predict_command(source: Source, asked: OnePrediction, method: Method, running: Running) -> None:
    """Choose the neighbours of one user and predict one rating, as Algorithm 1 of the paper does."""
    chosen = _neighbour_based(method, running)
    for name in ("center", "among", "min_neighbours", "fallback"):
        if name in chosen.settings:
            raise SettingError(f"{name} must be left out: Algorithm 1 has none; `fit` takes it")
    ratings = source.load(running)
    from goodfence.papers.protocol import algorithm_1

    user, item = id_of(asked.whom, ratings.users), id_of(asked.what, ratings.items)
    model = chosen.recommender
    how = {"axis": model.axis, "similarity": model.similarity, "over": model.over}
    found = algorithm_1(ratings, model.mechanism, user, item, **how, rng=running.seed)
    made = not math.isnan(found.rating)
    near = list(zip(found.neighbours.tolist(), found.similarities.tolist(), strict=True))
    told: dict[str, Any] = {"prediction": found.rating if made else None}
    if asked.show_neighbours:
        told["neighbours"] = [{"neighbour": one, "similarity": value} for one, value in near]

    def show() -> None:
        text = f"{found.rating:.4f}" if made else "none: no neighbour rated the item"
        print_paragraphs([("Method", chosen.label), ("Predicted", text)])
        if asked.show_neighbours:
            rows = [[f"{value:.4f}", str(one)] for one, value in near]
            print_table(["similarity", "neighbour"], rows)

    running.tell({**chosen.stated(running.seed), **told}, show)


@panel("Metrics")
class Metrics:
    """On how many lists, and how."""

    targets: int = flag("N", "Number of users (item-based: items), drawn at random.", default=200)
    inclusion: str = flag("exact|manly", "Inclusion probabilities.", default="exact")


@command("Compute the paper's two metrics of a mechanism, alpha and beta.")
def alpha_command(source: Source, method: Method, metrics: Metrics, running: Running) -> None:
    """Compute alpha, the expected sum of the neighbours' similarities, and beta, the partitions they come from."""
    chosen = _neighbour_based(method, running)
    ratings = source.load(running)
    from goodfence.papers.protocol import paper_metrics

    model = chosen.recommender
    how: dict[str, Any] = {"targets": metrics.targets, "method": metrics.inclusion}
    how |= {"axis": model.axis, "similarity": model.similarity, "rng": running.seed}
    found = paper_metrics(ratings, model.mechanism, **how)
    lines = [
        ("Method", chosen.label),
        ("alpha", f"{found.alpha:.4f}; the sum over the k nearest is {found.largest:.4f}"),
        ("beta", f"{found.beta:g} partitions of k candidates"),
        ("Lists", f"mean over {found.n:,}"),
    ]
    told = {**chosen.stated(running.seed), "method": metrics.inclusion, **found._asdict()}
    running.tell(told, lines)


def _neighbour_based(method: Method, running: Running) -> Configured:
    chosen = method.configured(running, rng=running.seed)
    from goodfence.models.neighbour_cf import NeighbourCF

    if not isinstance(chosen.recommender, NeighbourCF):
        raise SettingError("method must be neighbour-based: knn, npns, pncf or ppns")
    return chosen


def id_of(text: str, ids: npt.NDArray[Any]) -> Id:
    """Return the id that a word of the command line means: an integer if the ratings have integers."""
    digits = text.removeprefix("-")
    number = ids.dtype.kind in "iu" and digits.isascii() and digits.isdecimal()
    return int(text) if number else text


_ABOUT = "Reproduce the paper: its figures, its predictions, its metrics."
app = command_group("paper", _ABOUT, reproduce_command, predict_command, alpha_command)
