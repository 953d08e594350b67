"""`goodfence alpha FILE`: the paper's two metrics, alpha and beta, of any selection mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from goodfence.cli.command import command, flag
from goodfence.cli.options import Method, Running, Source
from goodfence.cli.output import print_json, print_paragraphs
from goodfence.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """On how many lists, and how."""

    panel: ClassVar[str] = "Metrics"
    targets: int = flag("N", "How many users (item-based: items), drawn by chance.", default=200)
    method: str = flag(
        "exact|manly", "The inclusion probabilities: exact, or Manly's mean.", default="exact"
    )


@command("The paper's two metrics of a mechanism: alpha, accuracy, and beta.")
def alpha(source: Source, method: Method, metrics: Metrics, running: Running) -> None:
    """Compute alpha, the expected sum of the neighbours' similarities, and beta, the partitions that they are from."""
    chosen = method.configured(running, rng=running.seed)
    from goodfence.models.neighbour_cf import NeighbourCF

    model = chosen.recommender
    if not isinstance(model, NeighbourCF):
        raise SettingError("mechanism must be neighbour-based: knn, npns, pncf or ppns")
    ratings = source.read(running)
    from goodfence.papers.protocol import paper_metrics

    how: Any = metrics.method
    found = paper_metrics(
        ratings,
        model.mechanism,
        axis=model.axis,
        targets=metrics.targets,
        similarity=model.similarity,
        method=how,
        rng=running.seed,
    )
    if running.json:
        told = {"label": chosen.label, "settings": chosen.settings, "seed": running.seed}
        print_json({**told, "method": metrics.method, **found._asdict()})
        return
    rows = [
        ("Method", chosen.label),
        ("alpha", f"{found.alpha:.4f} of at most {found.largest:.4f}, the sum over the k nearest"),
        ("beta", f"{found.beta:g} partitions of k candidates"),
        ("Lists", f"{found.n:,}, means over them"),
    ]
    print_paragraphs(rows)
