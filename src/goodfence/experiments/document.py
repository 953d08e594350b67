"""The report of a reproduction: prose from a template, every number from the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

import goodfence
from goodfence.data.whole import written_whole
from goodfence.experiments.charts import save_chart
from goodfence.experiments.claims.verdict import Claim
from goodfence.experiments.definition import BUNDLED
from goodfence.experiments.extras import Extras, gather
from goodfence.experiments.figure import Figure, Reproduction
from goodfence.experiments.hold_out import BETA
from goodfence.experiments.sources import Sources

CHARTS = Path("docs") / "reproduction"
"""Where the charts go, beside the report."""
_SERIES = ("kNN", "nPNS", "PNCF", "PPNS")


def write_report(found: Reproduction, path: Path, *, progress: bool | None = None) -> None:
    """Write the report of a run to `path`, with its charts in `docs/reproduction` beside it.

    Runs what the report adds: other readings, other data sets, held-out ratings.
    """
    by_id = {figure.definition.id: figure for figure in found.figures}
    main = by_id["attack-beta"]
    extras = gather(
        Sources(),
        main.definition.data,
        n_seeds=len(main.manifest["seeds"]),
        n_targets=main.manifest["targets"],
        rng=found.manifest["seed"],
        progress=progress,
    )
    for figure in found.figures:
        save_chart(figure.chart_spec(), path.parent / CHARTS / figure.definition.id, only_png=True)
    with written_whole(path) as file:
        file.write(report_text(found, extras).encode())


def report_text(found: Reproduction, extras: Extras) -> str:
    """Return the report as markdown."""
    source = files("goodfence.experiments") / "report_template.md"
    template = Template(source.read_text(encoding="utf-8"))
    return template.substitute(
        **_run(found), **_short(found), **_shares(extras), **_tables(found, extras)
    )


def _run(found: Reproduction) -> dict[str, object]:
    main = next(one for one in found.figures if one.definition.id == "attack-beta")
    manifest = found.manifest
    quick = " --quick" if manifest["quick"] else ""
    bundled = any(one.definition.data == BUNDLED for one in found.figures)
    note = "**Some figures are drawn from the bundled MovieTweetings, not from the paper's data; each says so.**"
    sets = {one.definition.data: one.manifest["ratings"][:16] for one in found.figures}
    told = "; ".join(f"`{name}` {checksum}" for name, checksum in sets.items())
    return {
        "command": f"goodfence reproduce --seed {manifest['seed']}{quick} --report REPRODUCTION.md",
        "version": goodfence.__version__,
        "seed": manifest["seed"],
        "n_seeds": len(main.manifest["seeds"]),
        "n_targets": main.manifest["targets"],
        "cpu": round(manifest["cpu_seconds"]),
        "data_note": (f"{note} " if bundled else "") + f"Ratings (sha256 begins): {told}.",
        "main": f"`{main.definition.data}`",
    }


def _short(found: Reproduction) -> dict[str, object]:
    verdicts = [claim.verdict for claim in found.claims]
    others = [each for each in dict.fromkeys(verdicts) if each != "holds"]
    told = ", ".join(
        f"{verdicts.count(each)} {_plural(each, verdicts.count(each))}" for each in others
    )
    free = [
        abs(one.value)
        for claim in found.claims
        if claim.number == 2
        for one in claim.comparisons
        if not one.what.startswith("attack")
    ]
    return {
        "n_holds": verdicts.count("holds"),
        "n_claims": len(verdicts),
        "n_others": told or "none fails",
        "beta_moves": f"{max(free):.4f}",
        "verdicts": _table(
            ("", "the paper says", "verdict", "what was found"),
            (
                (str(one.number), one.text, f"**{one.verdict}**", one.sentence + _sample(one))
                for one in found.claims
            ),
        ),
        "figures": "\n\n".join(map(_figure, found.figures)),
        "comparisons": _comparisons(found.claims),
    }


def _shares(extras: Extras) -> dict[str, object]:
    default = extras.readings[0]
    return {
        "ppns_recovery": f"{default.attacked('recovery', 'PPNS').value:.0%}",
        "knn_recovery": f"{default.attacked('recovery', 'kNN').value:.0%}",
        "ppns_advantage": f"{default.attacked('advantage', 'PPNS').value:.0%}",
        "knn_advantage": f"{default.attacked('advantage', 'kNN').value:.0%}",
        "npns_advantage": f"{default.attacked('advantage', 'nPNS').value:.0%}",
        "ppns_all": f"{extras.asking['PPNS'][2]:.0%}",
        "knn_all": f"{extras.asking['kNN'][2]:.0%}",
        "beta_free": int(default.beta),
        **extras.facts,
    }


def _tables(found: Reproduction, extras: Extras) -> dict[str, object]:  # noqa: ARG001 - as its like
    readings = _table(
        (
            "reading",
            *(f"{each} MAE" for each in _SERIES),
            "PPNS lowest",
            *(f"{each} MAE, attacked" for each in _SERIES),
            "PNCF clipped",
            "PPNS lowest, attacked",
            "kNN leaks",
            "PPNS leaks",
        ),
        (
            (
                one.name,
                *(f"{one.error(each).value:.3f}" for each in _SERIES),
                one.best[0],
                *(f"{one.attacked('mae', each).value:.3f}" for each in _SERIES),
                f"{one.attacked('mae_clipped', 'PNCF').value:.3f}",
                one.best[1],
                f"{one.attacked('advantage', 'kNN').value:.1%}",
                f"{one.attacked('advantage', 'PPNS').value:.1%}",
            )
            for one in extras.readings
        ),
    )
    return {"readings": readings, "data_sets": _data_sets(extras)}


def _data_sets(extras: Extras) -> str:
    lines = []
    for name, one in extras.data_sets.items():
        held = extras.held_out[name]
        for series in _SERIES:
            honest = held.estimate("mae", series, BETA).value
            cells = held.estimate("coverage", series, BETA).value
            paper = one.error(series).value
            covered = one.free.estimate("coverage", series, one.beta).value
            leaks = [
                f"{one.attacked(metric, series).value:.1%}" for metric in ("recovery", "advantage")
            ]
            attacked = f"{one.attacked('mae', series).value:.3f}"
            first = f"`{name}`" if series == _SERIES[0] else ""
            method = f"**{series}**" if series == "PPNS" else series
            errors = (f"{paper:.3f} ({covered:.1%})", f"{honest:.3f} ({cells:.1%})")
            lines.append((first, method, *errors, attacked, *leaks))
    return _table(
        (
            "data",
            "method",
            "MAE, paper's protocol (coverage)",
            "MAE, hold-out (coverage)",
            "MAE, attacked",
            "recovered",
            "leaked (advantage)",
        ),
        lines,
    )


def _figure(figure: Figure) -> str:
    definition = figure.definition
    note = f" {definition.note}" if definition.note else ""
    picture = (CHARTS / definition.id / "chart.png").as_posix()
    heading = f"### {definition.id}"
    return f"{heading}\n\n![{definition.title}]({picture})\n\n{definition.caption}{note}"


def _comparisons(claims: Iterable[Claim]) -> str:
    parts = []
    for claim in claims:
        parts.append(f"**Claim {claim.number}.** {claim.rule}")
        if claim.comparisons:
            parts.append(
                _table(
                    ("comparison", "value", "interval", "targets", "outcome"),
                    (
                        (
                            one.what,
                            f"{one.value:+.4f}",
                            f"{one.low:+.4f} to {one.high:+.4f}",
                            f"{one.n:,}",
                            one.outcome,
                        )
                        for one in claim.comparisons
                    ),
                )
            )
        else:
            told = "; ".join(f"{name}: {value:.4g}" for name, value in claim.numbers.items())
            parts.append(f"{told}.")
    return "\n\n".join(parts)


def _sample(claim: Claim) -> str:
    return f" It would take {claim.needed:,} targets." if claim.needed else ""


def _plural(verdict: str, n: int) -> str:
    one, many = {
        "fails": ("fails", "fail"),
        "reversed": ("is reversed", "are reversed"),
        "cannot tell": ("cannot be told", "cannot be told"),
    }[verdict]
    return one if n == 1 else many


def _table(names: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [names, ["---"] * len(names), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
