"""`goodfence compare OLD NEW`: two audits beside each other, from the JSON that `goodfence audit` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from goodfence.cli.command import argument, command
from goodfence.cli.options import Output
from goodfence.cli.output import print_json, print_paragraphs, print_table
from goodfence.errors import FileProblem

_LARGEST = 16 * 2**20
_FIRST = ("advantage", "recovery", "exact", "fully_recovered", "guess")
_ABOUT = ("recommender", "attack", "data", "guarantee", "seed", "fakes", "targets", "hidden")
_NOT_SHOWN = ("checksum", "digest", "reason", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audits:
    """Which two audits."""

    panel: ClassVar[str] = "Audits"
    old: Path = argument("OLD", "What `goodfence audit -o old.json` wrote.")
    new: Path = argument("NEW", "What a later audit wrote.")


@command("Two audits beside each other: what changed.")
def compare(pair: Audits, output: Output) -> None:
    """Compare two audits: their figures with intervals, and the settings in which they differ."""
    old, new = read_audit(pair.old), read_audit(pair.new)
    figures = list(compared(old, new))
    settings = list(different(old, new))
    if output.json:
        listed = [{"setting": name, "old": a, "new": b} for name, a, b in settings]
        print_json({"figures": figures, "settings": listed})
        return
    rows = [
        [one["figure"], *(_shown(one[name]) for name in ("old", "new")), one["verdict"]]
        for one in figures
    ]
    print_table(["", pair.old.name, pair.new.name, ""], rows)
    texts = [f"{name}: {_text(a)} -> {_text(b)}" for name, a, b in settings] or ["none"]
    print_paragraphs([("Settings" if at == 0 else "", text) for at, text in enumerate(texts)])


def read_audit(path: Path) -> dict[str, Any]:
    """Return the JSON of an audit, or say that it is none."""
    from goodfence.data.files import find_file

    file = find_file(path, _LARGEST)
    try:
        found = json.loads(file.path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError):
        found = None
    estimates = found.get("estimates") if isinstance(found, dict) else None
    if not isinstance(estimates, dict) or not any(map(_is_estimate, estimates.values())):
        raise FileProblem(
            f"{file.name!r} must be the JSON of an audit, as `goodfence audit -o name.json` writes it"
        )
    audit: dict[str, Any] = found
    return audit


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each figure that both audits have, the leading ones first."""
    before, after = old["estimates"], new["estimates"]
    names = [name for name in before if name in after]
    for name in sorted(names, key=lambda one: _FIRST.index(one) if one in _FIRST else len(_FIRST)):
        a, b = before[name], after[name]
        if _is_estimate(a) and _is_estimate(b):
            yield {"figure": name.replace("_", " "), "old": a, "new": b, "verdict": _verdict(a, b)}


def _verdict(old: Mapping[str, float], new: Mapping[str, float]) -> str:
    """Return whether the intervals are apart: only then is a change more than the choice of targets explains."""
    if old["value"] == new["value"]:
        return "the same"
    moved = "higher" if new["value"] > old["value"] else "lower"
    apart = old["high"] < new["low"] or new["high"] < old["low"]
    return moved if apart else f"{moved}, within the intervals"


def different(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and both values of each setting in which the audits differ."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _leaves(audit: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for part in _ABOUT:
        value = audit.get(part)
        inner = value if isinstance(value, dict) else {"": value}
        for name, leaf in inner.items():
            if name not in _NOT_SHOWN and isinstance(leaf, str | int | float | None):
                yield f"{part} {name}".strip(), leaf


def _is_estimate(value: Any) -> bool:
    parts = (
        [value.get(name) for name in ("value", "low", "high")]
        if isinstance(value, dict)
        else [None]
    )
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in parts)


def _shown(estimate: Mapping[str, float]) -> str:
    return f"{estimate['value']:.3f} ({estimate['low']:.3f} to {estimate['high']:.3f})"


def _text(value: Any) -> str:
    return "not given" if value is None else str(value)
