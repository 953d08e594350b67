"""The claims that figures judge, under every interpretation of the paper, on both axes: what depends on which."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import goodfence as gf
from benchmarks.results import write_table
from goodfence.neighbours.candidate_lists import Axis
from goodfence.papers.reproduction.claims import Claim, Counted, claims_of_figures
from goodfence.papers.reproduction.definition import DEFAULT, Interpretation, definition
from goodfence.papers.reproduction.list_claims import fakes_to_cover, largest_alpha, partition_one, second_half_is_zero
from goodfence.papers.reproduction.runs import Experiment, Sums

DATA, SEED, N_SEEDS, N_TARGETS = "ml-100k", 7, 2, 100
KEEP = Path("out") / "interpretations"
INTERPRETATIONS = {
    "default": DEFAULT,
    "RS largest": Interpretation(scope="target"),
    "RS not clamped": Interpretation(clamp=False),
    "[PRED] printed": Interpretation(over="neighbours"),
    "cosine co-rated": Interpretation(similarity="cosine_corated"),
    "co-rated, [PRED] printed": Interpretation(similarity="cosine_corated", over="neighbours"),
    "users with > 64": Interpretation(more_than=64),
    "rarest known": Interpretation(choose="rarest"),
    "PNCF one noise": Interpretation(noise=False),
}
FREE: dict[str, Axis] = {"item-movielens": "item", "user-movielens": "user"}
ATTACKED = ("attack-beta", "attack-k", "attack-epsilon", "attack-m")


def verdicts(name: str, keep: Path) -> dict[str, str]:
    """Return the verdict of each statement under one interpretation."""
    interpretation, ratings = INTERPRETATIONS[name], gf.load(DATA)
    figures = {}
    for figure in (*FREE, *ATTACKED):
        fitted = definition(figure, quick=True).fitted(ratings)
        experiment = Experiment(
            definition=fitted,
            ratings=ratings,
            n_seeds=N_SEEDS,
            n_targets=N_TARGETS,
            rng=SEED,
            interpretation=interpretation,
            keep=keep,
        )
        sums = Sums.of([point[:3] for point in experiment.points()])
        figures[figure] = Counted(fitted, sums, ratings.scale)
    found = dict(_stated(figures))
    seed = [SEED, 0]
    settings = {figure: (ratings, axis) for figure, axis in FREE.items()}
    for claim in (
        partition_one(ratings, seed, N_TARGETS, interpretation),
        second_half_is_zero(settings, seed, N_TARGETS, interpretation),
        fakes_to_cover(ratings, seed, N_TARGETS, interpretation),
        largest_alpha(settings, ratings, seed, N_TARGETS, interpretation),
    ):
        found[claim.label] = claim.verdict
    return found


def _stated(figures: dict[str, Counted]) -> Iterator[tuple[str, str]]:
    """Hand out each statement with its verdict; claims about several settings once for each of them."""
    for figure, axis in FREE.items():
        for claim in claims_of_figures({figure: figures[figure]}):
            yield f"{claim.label}, {axis}-based", claim.verdict
    attacked = {name: figures[name] for name in ATTACKED}
    for claim in claims_of_figures(attacked):
        yield _name(claim), claim.verdict


def _name(claim: Claim) -> str:
    return f"{claim.label}, attacked" if claim.number in (2, 3) else claim.label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*INTERPRETATIONS], help="compute one, write no table")
    parser.add_argument("--keep", type=Path, default=KEEP, help="where finished points are kept")
    asked = parser.parse_args()
    if asked.only:
        print(verdicts(asked.only, asked.keep))
        return
    found = {name: verdicts(name, asked.keep) for name in INTERPRETATIONS}
    rows = []
    for statement, usual in found["default"].items():
        told = [each[statement] for each in found.values()]
        other = [name for name in found if found[name][statement] != usual]
        rows.append([statement, *told, "; ".join(other) or "nothing"])
    write_table(
        "interpretations",
        "The claims under every interpretation",
        ["claim", *found, "depends on"],
        rows,
        data=DATA,
        seeds=f"{N_SEEDS} x {N_TARGETS} targets a point",
        points="those of a quick run",
    )


if __name__ == "__main__":
    main()
