"""`goodfence frontier FILE`: what each recommender leaks, and what it costs in accuracy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.attack import DEFAULT_KNOWN, FRONTIER_TARGETS
from goodfence.cli.command import command, flag, panel
from goodfence.cli.options import Method, Running, Source, command_line
from goodfence.cli.output import FOLDER, HTML, JSON, check_out, is_page, out_option, print_paragraphs, print_table
from goodfence.report import wording

if TYPE_CHECKING:
    from goodfence.auditing.frontier import Frontier
    from goodfence.privacy.guarantee import Guarantee
    from goodfence.report.pages import FrontierPage

_COLUMNS = (
    "fully recovered: users whose hidden ratings were all recovered. recovery: share of hidden ratings recovered from "
    "the answers, or by guessing where these say nothing. advantage: recovery minus recovery without the target's "
    "data. MAE: over held-out ratings with a prediction; answers: share that have one."
)
_COLUMNS_OF_LISTS = (
    "fully recovered: users for whom every listed item is right, or every hidden item is listed. precision: share of "
    "listed items that are the target's. advantage: precision minus precision without the target's data. NDCG@10: of "
    "held-out events; items: share of the catalogue on any list."
)
_BOTH = (
    "Brackets: 95% interval over users; n: users attacked. A proved guarantee holds no matter how many fake accounts "
    "are used."
)


@panel("Comparison")
class FrontierOptions:
    """Which recommenders are compared, and how."""

    method: list[str] | None = flag(
        "'NAME KEY=VALUE ...'",
        "A recommender, as in 'ppns k=50 beta=7'; may be repeated.",
        shown="six, nine for events",
    )
    full: bool = flag(None, "Compare many settings; takes hours.", "--full", default=False)
    known: int = flag("N", "Ratings of each target that the attacker knows.", default=DEFAULT_KNOWN)
    targets: int = flag("N", "Users to attack, each in two fits of a private model.", default=FRONTIER_TARGETS)
    max_mae: float | None = flag("X", "Choose no recommender with a larger error.")
    min_ndcg: float | None = flag("X", "Choose no recommender with a lower NDCG@10 (events).")


@command("Compare recommenders: leak, accuracy and guarantee.")
def frontier_command(
    source: Source,
    comparison: FrontierOptions,
    running: Running,
    out: Annotated[Path | None, out_option(JSON, HTML, FOLDER, of="a folder with table, manifest and chart")] = None,
) -> None:
    """Compare recommenders by leak, accuracy and guarantee, and choose one."""
    check_out(out, JSON, HTML, FOLDER)
    if is_page(out):
        running = running.repeatable()  # the page shows the command that repeats it
    from goodfence.models.method import default_methods, default_recommenders

    lines = comparison.method or default_methods("usual", source.kind)
    chosen = [Method(method=line).configured(running) for line in lines]
    ratings = source.load(running)
    from goodfence.auditing.frontier import frontier, name_of
    from goodfence.models.private.base import PrivateRecommender
    from goodfence.privacy.fixed_point import require_declared

    methods: list[Any] = [one.recommender for one in chosen]
    names = [one.label for one in chosen]
    if comparison.full:
        methods = default_recommenders("full", ratings.shape[0], ratings.feedback)
        names = [name_of(one) for one in methods]
    private = any(isinstance(one, PrivateRecommender) for one in methods)
    if private and ratings.feedback == "explicit":
        require_declared(ratings.scale)  # at once, and not after minutes
    running.say(f"comparing {len(methods)} recommenders")
    how: dict[str, Any] = {"known": comparison.known, "targets": comparison.targets}
    found = frontier(ratings, methods, **how, **running.how)
    data, least = Path(source.file).name, comparison.min_ndcg
    found = replace(found, settings={**found.settings, "data": data})
    best = found.recommended(comparison.max_mae, min_ndcg=least)
    max_loss = comparison.max_mae if least is None else 1.0 - least
    choice = None if best is None else names[found.points.index(best)]
    stated = [method.guarantee() for method in methods]
    told = found.to_dict()
    points = zip(names, told["points"], strict=True)
    told["points"] = [{"name": name, **point} for name, point in points]

    def show() -> None:
        _print(found, names, stated, wording.recommendation(found, choice, best, max_loss))

    def page() -> FrontierPage:
        from goodfence.report.pages import FrontierPage

        line = command_line("frontier", source, comparison, seed=running.seed, out=out)
        about: dict[str, Any] = {"ratings": ratings, "data": data, "command": line}
        return FrontierPage(found=found, guarantees=stated, max_loss=max_loss, **about)

    running.tell({**told, "recommended": choice}, show, out, page, found)


def _print(found: Frontier, names: list[str], guarantees: list[Guarantee], choice: str) -> None:
    """Print the choice, the table and what its columns mean."""
    print_paragraphs([("Choice", choice), ("Scope", _scope(found))])
    typer.echo()
    rows = [
        [
            name,
            wording.measured(point.fully_recovered),
            wording.measured(point.advantage),
            wording.measured(point.recovery),
            f"{point.n_targets:,}",
            f"{point.quality:.3f}",
            wording.of_100(point.coverage),
            wording.guarantee_short(stated),
        ]
        for name, point, stated in zip(names, found.points, guarantees, strict=True)
    ]
    words = wording.words_of(found)
    quality = ["NDCG@10", "items %"] if words.lists else ["MAE", "answers %"]
    heading = ["method", "fully recovered %", "advantage %", f"{words.measure} %", "n", *quality]
    print_table([*heading, "guarantee"], rows)
    typer.echo()
    guess = wording.measured(found.guess)
    first = ("Popularity", f"has {guess}.") if words.lists else ("Guessing", f"recovers {guess}.")
    columns = f"{_COLUMNS_OF_LISTS if words.lists else _COLUMNS} {_BOTH}"
    print_paragraphs([first, ("Columns", columns)])


def _scope(found: Frontier) -> str:
    known = "some" if found.known is None else str(found.known)
    held, data = wording.words_of(found).held, found.settings["data"]
    if "liked_from" in found.settings:
        data = f"{data} ({wording.liked(found.settings['liked_from'])})"
    return (
        f"{found.date}; {data}; the attacker knows {known} {held} of each user. Results are for the strongest "
        "attacker, selected on one half of the attacked users and evaluated on the other. kNN, nPNS, PNCF and PPNS "
        "are goodfence's own: neighbours among all users, by cosine similarity."
    )
