"""The attacker of `attack` and `audit`: his options, his run, and his report as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from goodfence.attack.attack import Attack
    from goodfence.attack.report import AttackReport
    from goodfence.auditing.report import AuditReport
    from goodfence.cli.options import Running
    from goodfence.cli.recipes import Recipe
    from goodfence.data.ratings import Ratings

_PANEL = "Attacker"
STRATEGIES = ("knn", "cover", "adaptive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacker:
    """Who attacks, with the names of the attacks' Python arguments."""

    known: Annotated[
        int,
        typer.Option(help="How many of a person's ratings he knows.", rich_help_panel=_PANEL),
    ] = 8
    choose: Annotated[
        str,
        typer.Option(
            metavar="random|rarest|most_popular", help="Which ones.", rich_help_panel=_PANEL
        ),
    ] = "random"
    fakes: Annotated[
        int | None,
        typer.Option(
            help="How many accounts he opens; k if not given, 50 where there is no k.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    strategy: Annotated[
        str,
        typer.Option(
            metavar="knn|cover|adaptive",
            help="As published, with as many accounts as are looked at, or with accounts that rate too.",
            rich_help_panel=_PANEL,
        ),
    ] = "knn"
    ask: Annotated[
        str | None,
        typer.Option(
            metavar="one|all", help="One account asks, or all do.", rich_help_panel=_PANEL
        ),
    ] = None
    combine: Annotated[
        str | None,
        typer.Option(
            metavar="mode|mean", help="How he combines the answers.", rich_help_panel=_PANEL
        ),
    ] = None
    rounds: Annotated[
        int | None,
        typer.Option(help="How often he asks, each time after a refit.", rich_help_panel=_PANEL),
    ] = None

    def attack(self, recipe: Recipe) -> Attack:
        """Return the attack that the options describe, on this recommender."""
        from goodfence.attack.adaptive import AdaptiveAttack
        from goodfence.attack.knn_attack import CoverAttack, KNNAttack

        kinds: dict[str, Any] = dict(
            zip(STRATEGIES, (KNNAttack, CoverAttack, AdaptiveAttack), strict=True)
        )
        if self.strategy not in kinds:
            near = did_you_mean(self.strategy, kinds)
            raise SettingError(
                f"strategy must be one of {', '.join(kinds)}, got {self.strategy!r}{near}"
            )
        given = {key: value for key, value in asdict(self).items() if value is not None}
        strategy = given.pop("strategy")
        if recipe.n_fakes is not None:
            given.setdefault("fakes", recipe.n_fakes)
        for key in ("ask", "combine", "rounds"):
            if strategy == "adaptive" and key in given:
                raise SettingError(f"{key} must be left out with strategy='adaptive'")
        attack: Attack = kinds[strategy](**given)
        return attack


def run_attack(
    recipe: Recipe,
    ratings: Ratings,
    attack: Attack,
    *,
    targets: int,
    seed: int | None,
    running: Running,
) -> AttackReport:
    """Run the attack on a recommender; private models are fitted with fresh noise, whatever the seed."""
    from goodfence.auditing.audit import leak

    return leak(
        ratings,
        recipe.recommender,
        attack=attack,
        targets=targets,
        rng=seed,
        threads=running.threads,
        progress=running.progress,
    )


def as_json(report: AttackReport, recipe: Recipe) -> dict[str, Any]:
    """Return everything that the report says, without ids, as JSON knows it."""
    from goodfence import __version__
    from goodfence.attack.saving import ratings_checksum

    n_users, n_items = report.ratings.shape
    estimates = {**report.estimates, "read_whole": report.read_whole}
    return {
        "goodfence": __version__,
        "recommender": {"label": recipe.label, **recipe.settings},
        "attack": report.settings["settings"],
        "seed": report.settings["seed"],
        "data": {
            "users": n_users,
            "items": n_items,
            "ratings": report.ratings.n_ratings,
            "scale": str(report.ratings.scale),
            "checksum": ratings_checksum(report.ratings),
        },
        "fakes": report.n_fakes,
        "targets": report.n_targets,
        "left_out": report.n_left_out,
        "hidden": report.n_hidden,
        "estimates": {name: one._asdict() for name, one in estimates.items()},
        "guarantee": asdict(recipe.promised),
    }


def audit_as_json(report: AuditReport, recipe: Recipe) -> dict[str, Any]:
    """Return what an audit says: the attack, and what became of the promise."""
    told = report.to_dict()
    parts = ("verdict", "summary", "exhibit", "bound", "claimed_mu", "moved", "pair")
    return {**as_json(report.leakage, recipe), "promise": {part: told[part] for part in parts}}
