"""`goodfence compare OLD NEW`: two audits side by side, from the JSON that `goodfence audit` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from goodfence.cli.command import argument, command, panel
from goodfence.cli.options import Output
from goodfence.cli.output import print_paragraphs, print_table
from goodfence.errors import FileProblem

_COLUMNS = (
    "shares with 95% intervals: 0.25 is 25 of 100; mae and mae gain are in the unit of the ratings. without: the "
    "target is not in the data. exact and raw: from the answers alone; a missing answer recovers nothing."
)
_LARGEST = 16 * 2**20  # how many bytes the JSON of an audit may have
_FIRST = ("advantage", "recovery", "precision", "exact", "fully_recovered", "guess", "popularity")
_ABOUT = ("recommender", "attack", "data", "guarantee", "seed", "fakes", "targets", "hidden")
_NOT_COMPARED = ("checksum", "digest", "reason", "date")


@panel("Audits")
class Audits:
    """Which two audits."""

    old: Path = argument("OLD", "JSON file of `goodfence audit -o old.json`.")
    new: Path = argument("NEW", "JSON file of a later audit.")


@command("Compare two audits.")
def compare_command(pair: Audits, output: Output) -> None:
    """Compare two audits: their figures with intervals, and the settings in which they differ."""
    old, new = _read_audit(pair.old), _read_audit(pair.new)
    figures, settings = list(_compared(old, new)), list(_different(old, new))

    def show() -> None:
        rows = [[one["figure"], _shown(one["old"]), _shown(one["new"]), one["verdict"]] for one in figures]
        print_table(["", pair.old.name, pair.new.name, ""], rows)
        shown = [(name, *("not given" if x is None else x for x in both)) for name, *both in settings]
        texts = ["{}: {} -> {}".format(*one) for one in shown] or ["none"]
        changed = [("" if at else "Settings", text) for at, text in enumerate(texts)]
        print_paragraphs([("Columns", _COLUMNS), *changed])

    listed = [{"setting": name, "old": a, "new": b} for name, a, b in settings]
    output.tell({"figures": figures, "settings": listed}, show)


def _shown(estimate: dict[str, float]) -> str:
    return "{value:.3f} ({low:.3f} to {high:.3f})".format(**estimate)


def _read_audit(path: Path) -> dict[str, Any]:
    """Return the JSON of an audit, or say that it is none."""
    from goodfence.data.files import find_file

    file = find_file(path, _LARGEST, "be the JSON of an audit")
    try:
        found = json.loads(file.path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError):
        found = None
    estimates = found.get("estimates") if isinstance(found, dict) else None
    if not isinstance(estimates, dict) or not any(map(_is_estimate, estimates.values())):
        raise FileProblem(f"{file.name!r} must be the JSON of an audit, as `goodfence audit -o name.json` writes it")
    audit: dict[str, Any] = found
    return audit


def _compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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


def _different(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
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
            if name not in _NOT_COMPARED and isinstance(leaf, str | int | float | None):
                yield f"{part} {name}".strip(), leaf


def _is_estimate(value: Any) -> bool:
    parts = value if isinstance(value, dict) else {}
    return all(type(parts.get(name)) in (int, float) for name in ("value", "low", "high"))
