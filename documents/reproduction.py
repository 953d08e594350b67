"""REPRODUCTION.md and its charts: prose from a template, every number from the run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

import vl_convert

import goodfence as gf
from documents.comparisons import BETA, DATA_SETS, Extras, Size, gather
from documents.tables import ROOT
from goodfence.data.files import atomic_write
from goodfence.errors import DataError, GoodfenceWarning
from goodfence.papers.reproduction.claims import Claim
from goodfence.papers.reproduction.definition import LARGEST_RS, PRIVATE, Sources
from goodfence.papers.reproduction.figures import N_SEEDS, N_TARGETS, Figure, Reproduction

REPORT = ROOT / "REPRODUCTION.md"
TEMPLATE = Path(__file__).with_name("reproduction_template.md")
CHARTS = Path("docs") / "reproduction"
"""Where the charts go, beside the report."""
POINTS = ROOT / "out" / "reproduction"
"""Where finished points are kept: a run that was stopped goes on there."""
SEED = 7
WRITTEN_FOR = {
    **dict.fromkeys(("1", "3", "4", "6", "8", "9a", "10", "11", "13", "14a"), "holds"),
    **dict.fromkeys(("2", "5", "7", "9b", "12", "14b", "15", "16"), "fails"),
}
"""The verdicts that the prose of the template speaks of."""
_SERIES = ("kNN", "nPNS", "PNCF", "PPNS")


def write_report(path: Path = REPORT, *, keep: Path = POINTS) -> None:
    """Run the whole evaluation and write its report, with the charts in `docs/reproduction` beside it."""
    sources = require_data()  # before the long run, not after it
    found = gf.papers.reproduce_all(rng=SEED, keep=keep)
    extras = gather(sources, Size(N_SEEDS, N_TARGETS, SEED, keep))
    for figure in found.figures:
        folder = path.parent / CHARTS / figure.definition.id
        for name, spec in (("paper", figure.paper_spec()), ("chart", figure.chart_spec())):
            with atomic_write(folder / f"{name}.png") as file:
                file.write(vl_convert.svg_to_png(vl_convert.vegalite_to_svg(spec), scale=1.0))
    with atomic_write(path) as file:
        file.write(report_text(found, extras).encode())


def require_data() -> Sources:
    """Return the sources of the report, or say which data set it speaks of and does not have."""
    sources = Sources()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)
        missing = [name for name in DATA_SETS if sources.ratings(name) is None]
    if missing:
        raise DataError(f"the report needs every data set it speaks of; missing: {missing[0]}")
    return sources


def report_text(found: Reproduction, extras: Extras) -> str:
    """Return the report as markdown."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(
        **_run(found), **_short(found), **_shares(extras), **_interpretations(extras), **_told(found)
    )


def _run(found: Reproduction) -> dict[str, object]:
    main = next(one for one in found.figures if one.definition.id == "attack-beta")
    differ = [one.label for one in found.claims if WRITTEN_FOR[one.label] != one.verdict]
    note = f"**The verdicts on claims {differ} are not those that the prose was written for.** "
    sets = {one.definition.data: one.manifest["ratings"][:16] for one in found.figures}
    told = "; ".join(f"`{name}` {checksum}" for name, checksum in sets.items())
    return {
        "version": gf.__version__,
        "seed": found.manifest["seed"],
        "n_seeds": len(main.manifest["seeds"]),
        "n_targets": main.manifest["targets"],
        "data_note": (note if differ else "") + f"Ratings (sha256 begins): {told}.",
        "main": f"`{main.definition.data}`",
    }


def _short(found: Reproduction) -> dict[str, object]:
    verdicts = [claim.verdict for claim in found.claims]
    others = [each for each in dict.fromkeys(verdicts) if each != "holds"]
    told = ", ".join(f"{verdicts.count(each)} {_plural(each, verdicts.count(each))}" for each in others)
    free = [
        abs(one.value)
        for claim in found.claims
        if claim.number == 2
        for one in claim.comparisons
        if not one.what.startswith("attack")
    ]
    return {
        "n_holds": verdicts.count("holds"),
        "n_verdicts": len(verdicts),
        "n_claims": max(one.number for one in found.claims),
        "n_others": told or "none fails",
        "beta_moves": f"{max(free):.4f}",
        "verdicts": _table(
            ("", "the paper says", "verdict", "what was found"),
            ((one.label, one.text, f"**{one.verdict}**", one.sentence + _sample(one)) for one in found.claims),
        ),
        "figures": "\n\n".join(map(_figure, found.figures)),
        "comparisons": _comparisons(found.claims),
    }


def _shares(extras: Extras) -> dict[str, object]:
    default = extras.interpretations[0]
    return {
        "ppns_recovery": f"{default.attacked('recovery', 'PPNS'):.0%}",
        "knn_recovery": f"{default.attacked('recovery', 'kNN'):.0%}",
        "ppns_advantage": f"{default.attacked('advantage', 'PPNS'):.0%}",
        "knn_advantage": f"{default.attacked('advantage', 'kNN'):.0%}",
        "npns_advantage": f"{default.attacked('advantage', 'nPNS'):.0%}",
        "ppns_all": f"{extras.all_asking['PPNS']:.0%}",
        "knn_all": f"{extras.all_asking['kNN']:.0%}",
        "beta_free": int(default.beta),
        **extras.facts,
    }


def _interpretations(extras: Extras) -> dict[str, object]:
    free = _table(
        ("interpretation", *_SERIES, "PPNS lowest"),
        ((one.name, *(f"{one.error(each):.3f}" for each in _SERIES), one.best[0]) for one in extras.interpretations),
    )
    attack = _table(
        ("interpretation", *_SERIES, "PNCF clipped", "PPNS lowest", "kNN leaks", "PPNS leaks"),
        (
            (
                one.name,
                *(f"{one.attacked('mae', each):.3f}" for each in _SERIES),
                f"{one.attacked('mae_clipped', 'PNCF'):.3f}",
                one.best[1],
                f"{one.attacked('advantage', 'kNN'):.1%}",
                f"{one.attacked('advantage', 'PPNS'):.1%}",
            )
            for one in extras.interpretations
        ),
    )
    return {"interpretations_free": free, "interpretations_attack": attack, "data_sets": _data_sets(extras)}


def _data_sets(extras: Extras) -> str:
    lines = []
    for name, one in extras.data_sets.items():
        held = extras.held_out[name]
        for series in _SERIES:
            paper, honest = (
                [sums.value(metric, series, beta) for metric in ("mae", "coverage")]
                for sums, beta in ((one.free, one.beta), (held, BETA))
            )
            shares = (one.attacked(metric, series) for metric in ("recovery", "advantage"))
            lines.append(
                (
                    f"`{name}`" if series == _SERIES[0] else "",
                    f"**{series}**" if series == "PPNS" else series,
                    "{:.3f} ({:.1%})".format(*paper),
                    "{:.3f} ({:.1%})".format(*honest),
                    f"{one.attacked('mae', series):.3f}",
                    *(f"{share:.1%}" for share in shares),
                    " / ".join(one.best) if series == "PPNS" else "",
                )
            )
    names = ("MAE, paper's protocol (coverage)", "MAE, hold-out (coverage)", "MAE, attacked")
    return _table(("data", "method", *names, "recovered", "leaked (advantage)", "PPNS lowest"), lines)


def _told(found: Reproduction) -> dict[str, object]:
    """Return single numbers of claims that the prose names."""
    numbers = {claim.label: claim.numbers for claim in found.claims}
    without, leaks, alphas = numbers["1"], numbers["9b"], numbers["15"]
    [larger_epsilon] = [
        one.value for claim in found.claims if claim.label == "7" for one in claim.comparisons if one.what == "PPNS"
    ]
    attack = next(one for one in found.figures if one.definition.id == "attack-m")
    most = attack.definition.values[-1]
    lists = "lists of fakes: "
    told: dict[str, object] = {
        "most_known": most,
        "ppns_epsilon": f"{larger_epsilon:+.3f}",
        "alpha_ppns": f"{alphas[f'{lists}alpha of PPNS']:.1f}",
        "alpha_pncf": f"{alphas[f'{lists}alpha of PNCF']:.1f}",
        "alpha_share": f"{alphas[f'{lists}share on which PNCF has more']:.0%}",
    }
    for name in ("item-movielens", "user-movielens", "user-douban"):
        short = "douban" if name == "user-douban" else name.partition("-")[0]
        told[f"pncf_{short}"] = f"{without[f'{name} PNCF mae']:.2f}"
        told[f"pncf_{short}_largest"] = f"{without[f'{name} {LARGEST_RS} mae']:.2f}"
        told[f"pncf_{short}_clipped"] = f"{without[f'{name} {LARGEST_RS} mae_clipped']:.2f}"
    attacked = numbers["4"]
    told["pncf_attack"] = f"{attacked['attack-beta PNCF mae']:.2f}"
    told["pncf_attack_largest"] = f"{attacked[f'attack-beta {LARGEST_RS} mae']:.2f}"
    for series in PRIVATE:
        told[f"{series.lower()}_8"] = f"{leaks[f'{series} m=8: advantage']:.1%}"
        told[f"{series.lower()}_most"] = f"{leaks[f'{series} m={most}: advantage']:.1%}"
    return told


def _figure(figure: Figure) -> str:
    definition = figure.definition
    folder = CHARTS / definition.id
    neutral, ours = ((folder / f"{name}.png").as_posix() for name in ("paper", "chart"))
    parts = [
        f"### {definition.id}",
        f"![{definition.title}]({neutral})",
        f"![{definition.title}, with intervals]({ours})",
        definition.note,
    ]
    return "\n\n".join(part for part in parts if part)


def _comparisons(claims: Iterable[Claim]) -> str:
    parts = []
    for claim in claims:
        parts.append(f"**Claim {claim.label}.** {claim.rule}")
        if claim.comparisons:
            parts.append(
                _table(
                    ("comparison", "value", "interval", "targets", "outcome"),
                    (
                        (
                            one.what,
                            f"{one.value:+.4f}",
                            f"{one.low:+.4f} to {one.high:+.4f}",
                            f"{one.targets:,}",
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
