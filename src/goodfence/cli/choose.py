"""`goodfence choose`: what error a private model can be expected to have at a size, before any budget is spent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from goodfence.cli.command import argument, command, flag, parse_scale
from goodfence.cli.options import Output
from goodfence.cli.output import print_paragraphs, print_table
from goodfence.errors import SettingError, require

if TYPE_CHECKING:
    from goodfence.data.scale import Scale
    from goodfence.models.private.expected import Expected, Size

_COLUMNS = (
    "the mean absolute error to expect; by how much that of PrivateCF is above the unprotected one; whether it is "
    "nearer to that than to everybody's own mean, and 5% below it."
)
_RULE = "fitted to parts of a public data set; how much more error there is was within"
_LEVEL = (
    "The errors themselves are those of films on this scale, and may be a quarter off elsewhere; --mae sets "
    "them right. "
)
_UNITS = {"rating": "one rating", "user": "one user"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """How large the data are."""

    panel: ClassVar[str] = "Size"
    file: str | None = argument(
        "[FILE]",
        "Where numbers are not given they are counted in this file: a path, or a name of `goodfence data list`.",
        default=None,
    )
    users: int | None = flag("N", "How many users there are, 1 or more.", shown="as in FILE")
    items: int | None = flag("N", "How many items there are, 1 or more.", shown="as in FILE")
    ratings: int | None = flag("N", "How many ratings there are, 1 or more.", shown="as in FILE")
    scale: str | None = flag(
        "LOW HIGH [STEP]", "Which ratings can be given.", shown="as declared of FILE, or 1 5"
    )
    mae: float | None = flag(
        "X",
        "The error of an unprotected recommender on such ratings, above 0, where it is known.",
        shown="that of films, on this scale",
    )
    delta: float | None = flag(
        "X",
        "Of the guarantee, between 0 and 1.",
        shown="a tenth of one over the number of users, at most 1e-5",
    )

    def sized(self, output: Output) -> tuple[Size, Scale, list[str]]:
        """Return size and scale, and which of the numbers were counted in the file."""
        from goodfence.data.scale import Scale
        from goodfence.models.private.expected import Size

        given = {"users": self.users, "items": self.items, "ratings": self.ratings}
        missing = [name for name, number in given.items() if number is None]
        scale = parse_scale(self.scale)
        declared = None if scale is None else Scale(scale[0], scale[1])
        if missing and self.file is None:
            raise SettingError(f"{missing[0]} must be given where there is no FILE to count in")
        if self.file is not None and (missing or declared is None):
            from goodfence.data.load import load
            from goodfence.privacy.fixed_point import require_declared

            output.say(f"counting in {self.file}")
            with output.noting():
                read = load(self.file, scale=scale)
            counted = {"users": read.shape[0], "items": read.shape[1], "ratings": read.n_ratings}
            given |= {name: counted[name] for name in missing}
            require_declared(read.scale)
            declared = read.scale
        numbers = {name: number for name, number in given.items() if number is not None}
        return Size(**numbers), declared or Scale(1, 5), missing


@command("What error to expect at your size, before any budget is spent.")
def choose(declared: Declared, output: Output) -> None:
    """Say what error each private model can be expected to have at a size, from a rule fitted to public data."""
    size, scale, counted = declared.sized(output)
    from goodfence.models.private.expected import (
        OFF_BY,
        OWN_MEAN,
        expected_errors,
        expected_unprotected,
    )

    share = expected_unprotected(size)
    length = scale.highest - scale.lowest
    if declared.mae is not None:
        require(declared.mae > 0, "mae", "above 0", declared.mae)
        length = (
            declared.mae / share
        )  # in stars, how long a scale would be on which the rule is right
    unprotected, own_mean = share * length, OWN_MEAN * length
    found = expected_errors(size, declared.delta)
    told = {
        "size": {**asdict(size), "counted": counted},
        "scale": [scale.lowest, scale.highest],
        "unprotected": unprotected,
        "own_mean": own_mean,
        "off_by": OFF_BY,
        "expected": [{**asdict(one), "error": one.error * length} for one in found],
        "answer": answer(found),
    }

    def show() -> None:
        without = f"an unprotected neighbourhood MAE {unprotected:.2f}, everybody's own mean"
        print_paragraphs(
            [
                ("Answer", answer(found)),
                ("Size", _size(size, counted, declared.file)),
                ("Without", f"{without} {own_mean:.2f}."),
            ]
        )
        typer.echo()
        print_table(
            ["protected", "epsilon", "PrivateCF", "PrivateMeans", "more error %", "useful"],
            _rows(found, length, unprotected),
        )
        typer.echo()
        rule = f"{_RULE} {100 * OFF_BY:.0f} points of what was measured on six others."
        level = _LEVEL if declared.mae is None else ""
        print_paragraphs([("Columns", _COLUMNS), ("Rule", f"{rule} {level}No rating was used.")])

    output.tell(told, show)


def _size(size: Size, counted: list[str], file: str | None) -> str:
    said = f"{size.users:,} users, {size.items:,} items, {size.ratings:,} ratings"
    if not counted or file is None:
        return f"{said}, as declared."
    which = "these were" if len(counted) == 3 else f"{' and '.join(counted)} were"
    return f"{said}; {which} counted in {Path(file).name}, and are no private numbers only if you say so."


def _rows(found: list[Expected], length: float, unprotected: float) -> list[list[str]]:
    rows = []
    for (unit, epsilon), group in groupby(found, key=lambda one: (one.unit, one.epsilon)):
        errors = {one.model: one for one in group}
        best = errors["PrivateCF"]
        more = best.error * length / unprotected - 1
        shown = [f"{errors[name].error * length:.2f}" for name in ("PrivateCF", "PrivateMeans")]
        useful = "yes" if best.useful else "no"
        rows.append([_UNITS[unit], f"{epsilon:g}", *shown, f"{100 * more:.0f}", useful])
    return rows


def answer(found: list[Expected]) -> str:
    """Return in plain words what can be had: the least epsilon with a useful error, for each unit."""
    told = []
    for unit, words in _UNITS.items():
        epsilons = [one.epsilon for one in found if one.unit == unit and one.useful]
        if epsilons:
            told.append(f"{words.capitalize()} can be protected at epsilon {min(epsilons):g}.")
        else:
            told.append(
                f"There are too few ratings of each item to protect {words} at a useful error: "
                "everybody's own mean is about as good."
            )
    return " ".join(told)
