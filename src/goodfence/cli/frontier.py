"""`goodfence frontier FILE`: leak against error, method by method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from goodfence.attack import DEFAULT_KNOWN, FRONTIER_TARGETS
from goodfence.cli.command import command, flag
from goodfence.cli.options import EXPERIMENT, Running, Source, command_line
from goodfence.cli.output import (
    FOLDER,
    HTML,
    JSON,
    check_out,
    is_page,
    out_option,
    print_paragraphs,
    print_table,
)
from goodfence.report.wording import (
    guarantee_short,
    liked,
    measured,
    of_100,
    recommendation,
    words_of,
)

if TYPE_CHECKING:
    from goodfence.auditing.frontier import Frontier
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
"""What is compared if nothing is given: each method once, which takes minutes and not hours."""
COMPARED_LISTS = (
    "knn k=50",
    "ppns k=50 beta=7",
    "npns k=50 within=7",
    "pncf k=50 within=7",
    "knn k=50 axis=item",
    "ease",
    "popularity",
    "private-top-n epsilon=1",
    "private-top-n epsilon=4 unit=user",
)
"""The same for events."""
_COLUMNS = (
    "people fully: of 100 people, of whom every hidden rating asked for is recovered; recovery: of 100 hidden "
    "ratings, by the answers or, where these tell nothing, by guessing; advantage: recovery less that without the "
    "target in the data; in brackets the 95% interval over people; n: how many people. MAE: over held-out ratings "
    "with a prediction; answers: how many of 100 have one. A proved guarantee is about any number of fakes."
)
_COLUMNS_OF_LISTS = (
    "people fully: of 100 people, of whom every listed item is their own, or every hidden item is listed; precision: "
    "of 100 listed items, the target's own; advantage: precision less that without the target in the data; in brackets "
    "the 95% interval over people; n: how many people. NDCG@10: of held-out events; items: how many of 100 are on "
    "somebody's list. A proved guarantee is about any number of fakes."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared, and how."""

    panel: ClassVar[str] = "Comparison"
    compared: list[str] | None = flag(
        "METHOD",
        "A method to compare, with settings, as in 'ppns k=50 beta=7'; may be given several times.",
        shown="six methods, nine for events",
    )
    full: bool = flag(
        None, "Compare many settings of each method; takes hours.", "--full", default=False
    )
    known: int = flag(
        "N",
        "How many ratings of each target (of events: how many items) the attacker knows, 1 or more.",
        default=DEFAULT_KNOWN,
    )
    targets: int = flag(
        "N",
        "How many users to attack, drawn by chance; each takes two fits of a private model.",
        default=FRONTIER_TARGETS,
    )
    fraction: float = flag("X", "Share of all ratings to hold out, between 0 and 1.", default=0.2)
    max_mae: float | None = flag("X", "Recommend no method with a larger error than this.")
    min_ndcg: float | None = flag(
        "X", "Of events: recommend no method with a lower NDCG@10 than this."
    )


@command("Leak against error, method by method.")
def frontier(
    source: Source,
    comparison: Comparison,
    running: Running,
    out: Annotated[
        Path | None,
        out_option(JSON, HTML, FOLDER, of="a folder for table, manifest and chart"),
    ] = None,
) -> None:
    """Compare methods: what each gives away, its error, its guarantee; and recommend one."""
    check_out(out, JSON, HTML, FOLDER)
    if is_page(out):
        running = running.repeatable()  # a page says how it is made
    methods, names, ratings = _methods(source, comparison, running)
    found = _compare(methods, ratings, comparison, running)
    data = Path(source.file).name
    found = replace(found, settings={**found.settings, "data": data})
    best = found.recommended(comparison.max_mae, min_ndcg=comparison.min_ndcg)
    max_loss = comparison.max_mae
    if comparison.min_ndcg is not None:
        max_loss = 1.0 - comparison.min_ndcg
    choice = None if best is None else names[found.points.index(best)]
    stated = [method.guarantee() for method in methods]
    told = found.to_dict()
    points = zip(names, told["points"], strict=True)
    told["points"] = [{"name": name, **point} for name, point in points]

    def show() -> None:
        bound = words_of(found).bound(max_loss)
        _print(found, names, stated, recommendation(found, choice, best, bound))

    def write(path: Path) -> None:
        from goodfence.report.pages import FrontierPage, save_result

        if not is_page(path):
            save_result(found, path)
            return

        line = command_line("frontier", source, comparison, seed=running.seed, out=path)
        FrontierPage(
            found=found,
            guarantees=stated,
            ratings=ratings,
            data=data,
            command=line,
            max_loss=max_loss,
        ).save(path)

    running.tell({**told, "recommended": choice}, show, out, write)


def _methods(
    source: Source, comparison: Comparison, running: Running
) -> tuple[list[Any], list[str], Ratings]:
    """Return what is compared, with names, and the ratings: what cannot be read is told before these are."""
    from goodfence.models.configuration import parsed

    running_as = {"threads": running.threads, "progress": running.progress, "public": EXPERIMENT}
    usual = COMPARED_LISTS if source.kind == "implicit" else COMPARED
    chosen = [parsed(text, **running_as) for text in comparison.compared or usual]
    ratings = source.read(running)
    if comparison.full:
        from goodfence.auditing.frontier import default_list, name_of

        methods = list(default_list(ratings.shape[0], ratings.feedback))
        return methods, [name_of(one) for one in methods], ratings
    return [one.recommender for one in chosen], [one.label for one in chosen], ratings


def _compare(
    methods: list[Any], ratings: Ratings, comparison: Comparison, running: Running
) -> Frontier:
    from goodfence.auditing.frontier import frontier as run
    from goodfence.models.private.base import PrivateRecommender
    from goodfence.privacy.fixed_point import require_declared

    explicit = ratings.feedback == "explicit"
    if explicit and any(isinstance(one, PrivateRecommender) for one in methods):
        require_declared(ratings.scale)  # at once, and not after minutes
    running.say(f"comparing {len(methods)} methods")
    return run(
        ratings,
        methods,
        known=comparison.known,
        targets=comparison.targets,
        fraction=comparison.fraction,
        rng=running.seed,
        threads=running.threads,
        progress=running.progress,
    )


def _print(found: Frontier, names: list[str], guarantees: list[Guarantee], choice: str) -> None:
    """Print what to choose, then what each method gives away, per person first, and how it was measured."""
    print_paragraphs([("Choice", choice), ("Scope", _scope(found))])
    typer.echo()
    rows = [
        [
            name,
            measured(point.fully_recovered),
            measured(point.advantage),
            measured(point.recovery),
            f"{point.n_targets:,}",
            f"{point.quality:.3f}",
            of_100(point.coverage),
            guarantee_short(stated),
        ]
        for name, point, stated in zip(names, found.points, guarantees, strict=True)
    ]
    words = words_of(found)
    quality = ["NDCG@10", "items %"] if words.lists else ["MAE", "answers %"]
    heading = ["method", "people fully %", "advantage %", f"{words.measure} %", "n", *quality]
    print_table([*heading, "guarantee"], rows)
    typer.echo()
    guessing = f"{'has' if words.lists else 'recovers'} {measured(found.guess)}."
    columns = _COLUMNS_OF_LISTS if words.lists else _COLUMNS
    print_paragraphs(
        [("Popularity" if words.lists else "Guessing", guessing), ("Columns", columns)]
    )


def _scope(found: Frontier) -> str:
    known = "some" if found.known is None else str(found.known)
    held, data = words_of(found).held, found.settings["data"]
    if "liked_from" in found.settings:
        data = f"{data} ({liked(found.settings['liked_from'])})"
    return (
        f"{found.date}; {data}; {known} {held} of each person are known. For each method the "
        "strongest of the attackers that apply, chosen on one half of the people attacked, shown on the other. kNN, "
        "nPNS, PNCF and PPNS are goodfence's own: neighbours among all users, by cosine."
    )
