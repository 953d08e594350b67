"""Hostile and odd files of events, each with its right outcome, made from a seed, as those of ratings are.

Events repeat: each pair has a list of times and weights, from which its cell follows by hand: 1, how many they are, or
the sum of the weights; and its time is the earliest.
"""

from __future__ import annotations

import datetime
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tests.support.odd_files import OddFile, are_integers, made_ids, marked, packed

Row = tuple[str, str, int, int]
"""User, item, seconds since 1970, and weight."""
HEADERS = (
    ("userId", "movieId", "timestamp", "plays"),
    ("user_id", "item_id", "date", "weight"),
    ("Customer", "ASIN", "event_time", "quantity"),
    ("visitorid", "itemid", "ts", "views"),
)
IMPLICIT = {"feedback": "implicit"}


@dataclass(frozen=True, kw_only=True)
class Log:
    """Rows as they happened, and how their ids are read."""

    rows: list[Row]
    whole: tuple[bool, bool]
    """Whether the users are integers, and whether the items are."""

    def pairs(self) -> dict[tuple[Any, Any], list[tuple[int, int]]]:
        """Return the times and weights of each pair."""
        found: dict[tuple[Any, Any], list[tuple[int, int]]] = {}
        for user, item, time, weight in self.rows:
            ids = zip((user, item), self.whole, strict=True)
            key = tuple(int(one) if whole else one for one, whole in ids)
            found.setdefault((key[0], key[1]), []).append((time, weight))
        return found

    def cells(self, rule: str) -> dict[tuple[Any, Any], float]:
        """Return what each pair counts by a rule."""
        counted: dict[str, Callable[[list[tuple[int, int]]], float]] = {
            "once": lambda _: 1.0,
            "count": lambda seen: float(len(seen)),
            "sum": lambda seen: float(sum(weight for _, weight in seen)),
        }
        return {pair: counted[rule](seen) for pair, seen in sorted(self.pairs().items())}

    def times(self) -> dict[tuple[Any, Any], int]:
        """Return when each pair happened first."""
        return {pair: min(time for time, _ in seen) for pair, seen in self.pairs().items()}


def made_up(chance: random.Random, *, text: bool) -> Log:
    """Return a few events, some of them repeated."""
    users = made_ids(chance, chance.randint(1, 7), text, "u")
    items = made_ids(chance, chance.randint(1, 7), text, "i")
    rows = [
        (chance.choice(users), chance.choice(items), chance.randint(10**9, 2 * 10**9), chance.randint(1, 9))
        for _ in range(chance.randint(1, 30))
    ]
    whole = are_integers([row[0] for row in rows]), are_integers([row[1] for row in rows])
    return Log(rows=rows, whole=whole)


def _written(time: int, style: str) -> str:
    when = datetime.datetime.fromtimestamp(time, datetime.UTC)
    return {"seconds": str(time), "T": when.strftime("%Y-%m-%dT%H:%M:%S"), "zone": when.strftime("%Y-%m-%d %H:%M:%SZ")}[
        style
    ]


def _asked(chance: random.Random, header: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Return by which rule events are counted, and the settings that say so."""
    rule = chance.choice(["once", "count", "sum"])
    settings: dict[str, Any] = dict(IMPLICIT)
    if rule == "sum":
        settings["weight"] = header[3]
    elif rule == "count" or chance.random() < 0.3:
        settings["duplicates"] = rule
    if chance.random() < 0.3:
        settings["time"] = header[2]
    return rule, settings


def _delimited(chance: random.Random) -> OddFile:
    log = made_up(chance, text=chance.random() < 0.5)
    ending, separator = chance.choice(
        [(".csv", ","), (".tsv", "\t"), (".csv", ";"), (".txt", "|"), ("", ","), (".inter", "\t"), (".log", ";")]
    )
    header, style = chance.choice(HEADERS), chance.choice(["seconds", "T", "zone"])
    rule, settings = _asked(chance, header)
    order = chance.sample(range(4), 4)
    rows = [(u, i, _written(t, style), str(w)) for u, i, t, w in log.rows]
    lines = [separator.join(row[at] for at in order) for row in [header, *rows]]
    end = chance.choice(["\n", "\r\n"])
    content = marked(chance, "".join(line + end for line in lines))
    odd = OddFile(
        name=f"a{ending}", content=content, kind="events", cells=log.cells(rule), settings=settings, times=log.times()
    )
    return packed(chance, odd)


def _two(chance: random.Random) -> OddFile:
    """Return two columns, with a header line or, where the ids are numbers, without."""
    named = chance.random() < 0.5
    log = made_up(chance, text=named and chance.random() < 0.5)
    ending, separator = chance.choice([(".csv", ","), (".tsv", "\t"), (".dat", "::"), (".txt", " "), (".txt", "\t")])
    lines = [separator.join(row[:2]) for row in log.rows]
    if named:
        lines.insert(0, separator.join(chance.choice(HEADERS)[:2]))
    rule = chance.choice(["once", "count"])
    content = "".join(f"{line}\n" for line in lines).encode()
    settings = {**IMPLICIT, "duplicates": rule}
    odd = OddFile(
        name=f"a{ending}", content=content, kind="two columns", cells=log.cells(rule), settings=settings, times={}
    )
    return packed(chance, odd)


def _positions(chance: random.Random) -> OddFile:
    log = made_up(chance, text=False)
    rows = [(str(t), i, str(w), u) for u, i, t, w in log.rows]
    content = "".join("\t".join(row) + "\n" for row in rows).encode()
    settings = {**IMPLICIT, "user": "4", "item": "2", "time": "1", "weight": "3"}
    return OddFile(
        name="a.data",
        content=content,
        kind="events by position",
        cells=log.cells("sum"),
        settings=settings,
        times=log.times(),
    )


def _json(chance: random.Random) -> OddFile:
    log = made_up(chance, text=chance.random() < 0.5)
    header, style = chance.choice(HEADERS), chance.choice(["seconds", "T"])
    rule, settings = _asked(chance, header)
    lines = []
    for user, item, time, weight in log.rows:
        ids = (int(one) if whole else one for one, whole in zip((user, item), log.whole, strict=True))
        when = time if style == "seconds" else _written(time, style)
        lines.append(dict(zip(header, (*ids, when, weight), strict=True)) | {"page": ["a", {}]})
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return packed(
        chance,
        OddFile(
            name="a.jsonl",
            content=content,
            kind="events in JSON",
            cells=log.cells(rule),
            settings=settings,
            times=log.times(),
        ),
    )


def _parquet(chance: random.Random) -> OddFile:
    log = made_up(chance, text=chance.random() < 0.5)
    header = chance.choice(HEADERS)
    rule, settings = _asked(chance, header)
    users, items, times, weights = (list(column) for column in zip(*log.rows, strict=True))
    typed = [[int(one) for one in ids] if whole else ids for ids, whole in zip((users, items), log.whole, strict=True)]
    seconds = pa.array(times, pa.timestamp("s"))
    kind = chance.choice(["integer", "seconds", "nanoseconds", "zone", "text"])
    column = {
        "integer": pa.array(times),
        "seconds": seconds,
        "nanoseconds": seconds.cast(pa.timestamp("ns")),
        "zone": seconds.cast(pa.timestamp("us", "UTC")),
        "text": pa.array([_written(time, "T") for time in times]),
    }[kind]
    table = pa.table(dict(zip(header, (*typed, column, weights), strict=True)))
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=chance.choice([1, 5, 1000]))
    return OddFile(
        name="a.parquet",
        content=sink.getvalue(),
        kind="events in parquet",
        cells=log.cells(rule),
        settings=settings,
        times=log.times(),
    )


def _likes(chance: random.Random) -> OddFile:
    """Return ratings, of which some are likes."""
    log = made_up(chance, text=False)
    pairs, least = {pair: seen[0][1] for pair, seen in log.pairs().items()}, chance.randint(1, 9)
    lines = ["user,item,rating", *(f"{u},{i},{grade}" for (u, i), grade in pairs.items())]
    cells = {pair: 1.0 for pair, grade in pairs.items() if grade >= least}
    return OddFile(
        name="a.csv",
        content=("\n".join(lines) + "\n").encode(),
        kind="likes",
        cells=cells or None,  # where nobody gave such a rating it is refused
        settings={"likes": least, **chance.choice([{}, IMPLICIT])},
    )


def _lists(chance: random.Random) -> OddFile:
    """Return a line of items for each user, or one with half a quotation."""
    log = made_up(chance, text=chance.random() < 0.5)
    by_user: dict[str, list[str]] = {}
    for row in log.rows:
        by_user.setdefault(row[0], []).append(row[1])
    separator = chance.choice([",", ";", "\t"])
    lines = [separator.join([user, *items]) for user, items in by_user.items()]
    harmed = chance.random() < 0.3
    lines += [f'"{lines[0]}'] if harmed else []
    settings = {**IMPLICIT, "layout": "lists", "separator": separator, "duplicates": "once"}
    content = chance.choice(["\n", "\n\n", "\r\n"]).join([*lines, ""]).encode()
    cells = None if harmed else log.cells("once")
    return OddFile(name="a.txt", content=content, kind="lists", cells=cells, settings=settings, times={})


LAYOUTS: dict[str, Callable[[random.Random], OddFile]] = {
    "events": _delimited,
    "two columns": _two,
    "events by position": _positions,
    "events in JSON": _json,
    "events in parquet": _parquet,
    "likes": _likes,
    "lists": _lists,
}


@dataclass(kw_only=True)
class Harmed:
    """A csv file of events while it is harmed, one of its rows in particular."""

    chance: random.Random
    header: list[str]
    rows: list[list[str]]
    row: list[str]
    settings: dict[str, Any]

    def rename(self, place: int, *names: str) -> None:
        """Call a column something else, and no longer say what it is."""
        self.header[place] = self.chance.choice(names)
        self.settings.pop({2: "time", 3: "weight"}.get(place, ""), None)

    def undeclare(self) -> None:
        """Leave columns out, and say nothing."""
        self.settings.clear()
        n = self.chance.randint(2, 4)
        for row in [self.header, *self.rows]:
            del row[n:]

    def behead(self) -> None:
        """Leave the header line out, and say of no column what it is."""
        self.settings.clear()
        self.settings.update(IMPLICIT)
        self.header[:] = ["1", "2", "1381250949", "4"]

    def repeat(self) -> None:
        """Let one event happen twice, where that is not allowed."""
        self.settings["duplicates"] = "error"
        self.rows.append(list(self.row))


def _cell(place: int, *values: str) -> Callable[[Harmed], None]:
    def harm(one: Harmed) -> None:
        one.row[place] = one.chance.choice(values)

    return harm


HARMS: dict[str, Callable[[Harmed], None]] = {
    "no user": _cell(0, "", "  ", '""'),
    "no item": _cell(1, ""),
    "no time": _cell(2, "", " "),
    "no such time": _cell(2, "noon", "12:30", "2024-02-30x", "1.5", "nan", "9" * 20, "0x10", "1_000", "٨٨١"),
    "no weight": _cell(3, "", " "),
    "no such weight": _cell(3, "0", "-1", "often", "nan", "inf", "1e999", "0.0", "1e-400", "-0"),
    "ratings": lambda one: one.rename(3, "rating", "stars", "Score", "label", "value"),
    "no user column": lambda one: one.rename(0, "who", ""),
    "no item column": lambda one: one.rename(1, "what", "page"),
    "undeclared": Harmed.undeclare,
    "too few fields": lambda one: one.row.__delitem__(3),
    "too many fields": lambda one: one.row.append("5"),
    "four columns without names": Harmed.behead,
    "twice": Harmed.repeat,
}


def harmed(chance: random.Random) -> OddFile:
    """Return a file of events that must be refused, harmed in a way by chance."""
    log = made_up(chance, text=chance.random() < 0.5)
    rows = [[u, i, str(t), str(w)] for u, i, t, w in log.rows]
    one = Harmed(
        chance=chance,
        header=["user", "item", "seen", "plays"],
        rows=rows,
        row=chance.choice(rows),
        settings={**IMPLICIT, "time": "seen", "weight": "plays"},
    )
    kind = chance.choice(list(HARMS))
    HARMS[kind](one)
    content = "".join(",".join(row) + "\n" for row in [one.header, *one.rows]).encode()
    odd = OddFile(name="a.csv", content=content, kind=f"harmed: {kind}", cells=None, settings=one.settings)
    return packed(chance, odd)


def odd_events(seed: int) -> OddFile:
    """Return the file of a number: right or harmed."""
    chance = random.Random(seed)
    if chance.random() < 0.6:
        return LAYOUTS[chance.choice(list(LAYOUTS))](chance)
    return harmed(chance)
