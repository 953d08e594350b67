"""How many times as fast as its peers goodfence is today, beside the ratios that were last recorded.

Exits with 1 where a ratio fell by more than a third. A peer that cannot be had is left out and named.

    ./scripts/bench all --quick             # small data, two rounds: about ten minutes
    ./scripts/bench all                     # all sizes
    ./scripts/bench all --quick --record    # and keep today's ratios
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

from benchmarks import attack, candidates, predict, recommend_speed, serve
from benchmarks.results import FOLDER, write_table
from goodfence.data.files import atomic_write

KEPT = FOLDER / "all.json"
"""The recorded ratios, by what was compared."""
FALLEN = 2 / 3
FAST_PEERS = ["goodfence", "similaripy", "sparse-dot-topn"]
QUICK_LISTS = tuple((data, axis) for data in ("ml-100k", "ml-1m") for axis in ("user", "item"))
ALL_LISTS = (
    *QUICK_LISTS,
    *((data, axis) for data in ("goodbooks", "douban-movie", "netflix-tenth") for axis in ("user", "item")),
)
Ratios = dict[str, float]
HEAD = ["what", "beside", "recorded", "today", "change", "verdict"]


def lists(quick: bool) -> Ratios:
    """Compare candidate lists with the fastest peer."""
    found = {}
    for data, axis in QUICK_LISTS if quick else ALL_LISTS:
        best = candidates.compare((data, axis, 350), FAST_PEERS, 2 if quick else 3, 2)
        ours = float(best.pop("goodfence")["seconds"])
        if best:
            fastest = min(float(each["seconds"]) for each in best.values())
            found[f"candidate lists, {data} by {axis}s, n=350 | the fastest peer"] = fastest / ours
    return found


def predictions(quick: bool) -> Ratios:
    """Compare predictions with the peers'."""
    found = {}
    for data in ("ml-100k",) if quick else ("ml-100k", "ml-1m"):
        for line in predict.compare(data, "user", 50, 1, 1):
            if line[3] in ("lenskit", "surprise"):
                found[f"predictions among raters, {data} by users | {line[3]}"] = float(line[8].rstrip("x"))
    return found


def everybody(quick: bool) -> Ratios:
    """Compare lists for everybody with implicit's."""
    data = "ml-1m" if quick else "netflix-tenth"
    lines = recommend_speed.measure(data, 2 if quick else 5, 2, "PrivateTopN")
    return {f"{line[1]}: lists, {data} | implicit": float(line[3].rstrip("x")) for line in lines if line[6]}


def attacks(quick: bool) -> Ratios:
    """Compare attacks with the obvious path: refit for every target."""
    return {
        f"attacks on {line[1]}, {line[0]} | refits": float(line[7].rstrip("x").replace(",", ""))
        for line in attack.measure("ml-100k", *((200, 3) if quick else attack.TARGETS["ml-100k"]))
    }


def service(quick: bool) -> Ratios:
    """Compare recommendations a second with those of FastAPI and implicit."""
    if not (shutil.which("wrk") and find_spec("implicit")):
        print("wrk or implicit is missing: the service is left out", file=sys.stderr)
        return {}
    rows = [row for row in serve.load(0.3 if quick else 1.0) if row[0].startswith("times FastAPI with implicit")]
    words = ("folding in", "stored factors")
    return {
        f"recommendations of the service, ml-1m | FastAPI with implicit, {word}": float(row[1].split()[0])
        for word, row in zip(words, rows, strict=True)
    }


PARTS: dict[str, Callable[[bool], Ratios]] = {
    "lists": lists,
    "predictions": predictions,
    "everybody": everybody,
    "attacks": attacks,
    "service": service,
}


def lines_of(today: Ratios, recorded: Ratios) -> list[list[str]]:
    """Return a line for each ratio that was measured or recorded."""
    lines = []
    for name in {**recorded, **today}:
        what, _, beside = name.partition(" | ")
        before, now = recorded.get(name), today.get(name)
        change = f"{100 * (now / before - 1):+.0f}%" if before and now else ""
        verdict = "" if not (before and now) else "fell" if now < FALLEN * before else "holds"
        shown = [f"{each:.1f}x" if each else "not measured" for each in (before, now)]
        lines.append([what, beside, *shown, change, verdict])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless named")
    parser.add_argument("--quick", action="store_true", help="small data and few rounds")
    parser.add_argument("--record", action="store_true", help="keep today's ratios")
    options = parser.parse_args()
    kept: dict[str, Ratios] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    size, today, began = "quick" if options.quick else "full", Ratios(), time.monotonic()
    for part in options.parts or PARTS:
        today |= PARTS[part](options.quick)
        print(f"{part}: {time.monotonic() - began:.0f} s so far", file=sys.stderr)
    recorded = kept.get(size, {})
    lines = lines_of(today, recorded)
    if options.record:
        with atomic_write(KEPT) as file:
            file.write(json.dumps({**kept, size: {**recorded, **today}}, indent=1, sort_keys=True).encode() + b"\n")
    write_table(
        f"all_{size}", "Speed beside peers", HEAD, lines, command="all", seconds=f"{time.monotonic() - began:.0f}"
    )
    sys.exit(any(line[-1] == "fell" for line in lines))


if __name__ == "__main__":
    main()
