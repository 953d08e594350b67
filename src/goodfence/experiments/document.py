"""The report of a reproduction: prose from a template, every number from the run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

import goodfence
from goodfence.data.whole import written_whole
from goodfence.errors import DataError, GoodfenceWarning
from goodfence.experiments.charts import save_chart
from goodfence.experiments.claims.verdict import Claim
from goodfence.experiments.definition import PRIVATE
from goodfence.experiments.extras import DATA_SETS, Extras, gather
from goodfence.experiments.figure import Figure, Reproduction
from goodfence.experiments.hold_out import BETA
from goodfence.experiments.sources import Sources

CHARTS = Path("docs") / "reproduction"
"""Where the charts go, beside the report."""
_SERIES = ("kNN", "nPNS", "PNCF", "PPNS")


WRITTEN_FOR = {
    **dict.fromkeys((1, 3, 4, 6, 8, 10, 11), "holds"),
    **dict.fromkeys((2, 5, 7, 9, 12, 13, 14), "fails"),
}
"""The verdicts that the prose of the template speaks of."""


def require_data() -> Sources:
    """Return the sources of the report, or say which data set it speaks of and does not have."""
    sources = Sources()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)
        missing = [name for name in DATA_SETS if sources.ratings(name) is None]
    if missing:
        raise DataError(f"the report needs every data set it speaks of; missing: {missing[0]}")
    return sources


def write_report(found: Reproduction, path: Path, *, progress: bool | None = None) -> None:
    """Write the report of a run to `path`, with its charts in `docs/reproduction` beside it.

    Runs what the report adds: other readings, other data sets, held-out ratings.
    """
    by_id = {figure.definition.id: figure for figure in found.figures}
    main = by_id["attack-beta"]
    extras = gather(
        require_data(),
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
        **_run(found), **_short(found), **_shares(extras), **_readings(extras), **_told(found)
    )


def _run(found: Reproduction) -> dict[str, object]:
    main = next(one for one in found.figures if one.definition.id == "attack-beta")
    manifest = found.manifest
    quick = " --quick" if manifest["quick"] else ""
    differ = [one.number for one in found.claims if WRITTEN_FOR[one.number] != one.verdict]
    note = f"**The verdicts on claims {differ} are not those that the prose was written for.** "
    sets = {one.definition.data: one.manifest["ratings"][:16] for one in found.figures}
    told = "; ".join(f"`{name}` {checksum}" for name, checksum in sets.items())
    return {
        "command": f"goodfence reproduce --seed {manifest['seed']}{quick} --report REPRODUCTION.md",
        "version": goodfence.__version__,
        "seed": manifest["seed"],
        "n_seeds": len(main.manifest["seeds"]),
        "n_targets": main.manifest["targets"],
        "data_note": (note if differ else "") + f"Ratings (sha256 begins): {told}.",
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


def _readings(extras: Extras) -> dict[str, object]:
    free = _table(
        ("reading", *_SERIES, "PPNS lowest"),
        (
            (one.name, *(f"{one.error(each).value:.3f}" for each in _SERIES), one.best[0])
            for one in extras.readings
        ),
    )
    attack = _table(
        ("reading", *_SERIES, "PNCF clipped", "PPNS lowest", "kNN leaks", "PPNS leaks"),
        (
            (
                one.name,
                *(f"{one.attacked('mae', each).value:.3f}" for each in _SERIES),
                f"{one.attacked('mae_clipped', 'PNCF').value:.3f}",
                one.best[1],
                f"{one.attacked('advantage', 'kNN').value:.1%}",
                f"{one.attacked('advantage', 'PPNS').value:.1%}",
            )
            for one in extras.readings
        ),
    )
    return {"readings_free": free, "readings_attack": attack, "data_sets": _data_sets(extras)}


def _data_sets(extras: Extras) -> str:
    lines = []
    for name, one in extras.data_sets.items():
        held = extras.held_out[name]
        for series in _SERIES:
            paper = one.error(series), one.free.estimate("coverage", series, one.beta)
            honest = (held.estimate(metric, series, BETA) for metric in ("mae", "coverage"))
            shares = (one.attacked(metric, series) for metric in ("recovery", "advantage"))
            lines.append(
                (
                    f"`{name}`" if series == _SERIES[0] else "",
                    f"**{series}**" if series == "PPNS" else series,
                    "{.value:.3f} ({.value:.1%})".format(*paper),
                    "{.value:.3f} ({.value:.1%})".format(*honest),
                    f"{one.attacked('mae', series).value:.3f}",
                    *(f"{share.value:.1%}" for share in shares),
                    " / ".join(one.best) if series == "PPNS" else "",
                )
            )
    names = ("MAE, paper's protocol (coverage)", "MAE, hold-out (coverage)", "MAE, attacked")
    return _table(
        ("data", "method", *names, "recovered", "leaked (advantage)", "PPNS lowest"), lines
    )


def _told(found: Reproduction) -> dict[str, object]:
    """Return single numbers of claims that the prose names."""
    by_number = {claim.number: claim.numbers for claim in found.claims}
    without, leaks = by_number[1], by_number[9]
    attack = next(one for one in found.figures if one.definition.id == "attack-m")
    most = attack.definition.values[-1]
    told: dict[str, object] = {"most_known": most}
    for name, figure in (("item", "item-movielens"), ("user", "user-movielens")):
        told[f"pncf_{name}"] = f"{without[f'{figure} PNCF mae']:.2f}"
        told[f"pncf_{name}_clipped"] = f"{without[f'{figure} PNCF mae_clipped']:.2f}"
    for series in PRIVATE:
        told[f"{series.lower()}_8"] = f"{leaks[f'{series} m=8: advantage']:.1%}"
        told[f"{series.lower()}_most"] = f"{leaks[f'{series} m={most}: advantage']:.1%}"
    return told


def _figure(figure: Figure) -> str:
    definition = figure.definition
    picture = (CHARTS / definition.id / "chart.png").as_posix()
    parts = [f"### {definition.id}", f"![{definition.title}]({picture})", definition.note]
    return "\n\n".join(part for part in parts if part)


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
            lines = ((name, f"{value:.4g}") for name, value in claim.numbers.items())
            parts.append(_table(("what", "value"), lines))
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
