"""Odd files, bombs, flipped bits and wrong settings: `./scripts/bench hostile` runs the same corpora at length."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

import goodfence as gf
from goodfence.errors import GoodfenceError
from goodfence.neighbours.candidate_lists import profile_candidates
from goodfence.report.pages import save_result
from tests.conftest import SHARE
from tests.support.bad_settings import callables, cases, tried, values
from tests.support.flipped_bits import outcomes
from tests.support.odd_events import HARMS as EVENT_HARMS
from tests.support.odd_events import LAYOUTS as EVENT_LAYOUTS
from tests.support.odd_events import odd_events
from tests.support.odd_files import HARMS, LAYOUTS, LIMIT, MEASURED, bombs, odd_file, outcome

Share: TypeAlias = Callable[[int], int]
N_FILES, N_FLIPPED, N_PARTS = 3_200, 2_400, 24


def test_odd_files_come_to_what_they_must(tmp_path: Path, share: Share) -> None:
    kinds = set()
    for seed in range(share(N_FILES)):
        odd = odd_file(seed)
        kinds.add(odd.kind.removeprefix("harmed: "))
        assert outcome(odd, tmp_path) == "", (seed, odd.kind)
    assert kinds >= {*LAYOUTS, *HARMS} - {"two ratings"} or len(kinds) > len(HARMS)


def test_odd_events_come_to_what_they_must(tmp_path: Path, share: Share) -> None:
    kinds = set()
    for seed in range(share(N_FILES)):
        odd = odd_events(seed)
        kinds.add(odd.kind.removeprefix("harmed: "))
        assert outcome(odd, tmp_path) == "", (seed, odd.kind)
    assert kinds == {*EVENT_LAYOUTS, *EVENT_HARMS}


def test_wrong_times_are_noticed(tmp_path: Path) -> None:
    """The judge itself: the cells are right, and a time is not."""
    right = next(odd for odd in map(odd_events, range(100)) if odd.kind == "events")
    assert right.times
    right.times = dict.fromkeys(right.times, 0)
    assert outcome(right, tmp_path) == "misread"


def test_a_generator_that_expects_the_wrong_thing_is_noticed(tmp_path: Path) -> None:
    """The judge itself: cells that are not in the file, and a refusal of a file that is right."""
    right = next(odd for odd in map(odd_file, range(100)) if odd.kind == "delimited")
    right.cells = {("nobody", "nothing"): 3.0}
    assert outcome(right, tmp_path) == "misread"
    right.cells = None
    assert outcome(right, tmp_path) == "read, and had to be refused"


@pytest.mark.parametrize(
    "name",
    [
        *("allowed_rows.csv.gz", "newlines.csv.gz", "delta.parquet", "items.txt"),
        *("dates.csv.gz", "timed.parquet", "dated.parquet", "events.csv.gz"),
        *("wide.csv.gz", "wide_rows.csv.gz", "lists_events.csv.gz", "long_lists_events.csv.gz", "rows.zip"),
    ],
)
def test_no_file_takes_more_memory_than_one_and_a_half_times_the_limit(name: str, tmp_path: Path) -> None:
    bomb = next(one for one in bombs() if one.name == name)
    bomb.make(tmp_path / name)
    command = [sys.executable, "-c", MEASURED, str(tmp_path / name), str(LIMIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told, more, seconds = json.loads(done.stdout)
    assert told in ("read", "SizeProblem")
    assert more <= 1.5 * LIMIT / 2**20
    assert seconds < 20


def test_flipped_bits_end_no_process(share: Share) -> None:
    told = dict(outcomes(0, share(N_FLIPPED)))
    assert len(told) == share(N_FLIPPED)
    assert set(told.values()) <= {"read", "refused"}


def test_settings_are_taken_or_refused_in_one_sentence(share: Share) -> None:
    given, each = values(), N_PARTS // share(SHARE)
    wrong = []
    for number, (one, argument, at) in enumerate(cases()):
        if number % each == 0:
            problem = tried(one, argument, given[at])
            wrong += [(one.name, argument, repr(given[at])[:60], problem)] if problem else []
    assert wrong == []
    assert len(callables()) * len(given) * 4 > 10_000


@pytest.mark.parametrize("path", [0, None, b"name", "\0", "n" * 10_000, ["name"]])
def test_what_is_no_path_is_refused_in_one_sentence_wherever_something_is_saved(path: Any) -> None:
    films = gf.synthetic(users=30, items=20, ratings=240, rng=7)
    audited: dict[str, Any] = {"targets": 3, "rng": 7, "progress": False}
    results: list[Any] = [
        gf.NeighbourCF(gf.KNN(k=3), rng=7).fit(films),
        gf.PrivateMeans(epsilon=1.0, items="from ratings", rng=7).fit(films),
        gf.papers.SlopeOne(rng=7).fit(films),
        gf.KNNAttack(known=3).run(films, gf.KNN(k=3), **audited),
        gf.audit(films, gf.KNN(k=3), known=3, trials=0, **audited),
    ]
    for result in results:
        save = type(result).save if hasattr(result, "save") else save_result
        with pytest.raises(GoodfenceError, match=r"must be|could not be"):
            save(result, path)


def test_a_word_that_is_none_of_the_known_and_a_number_that_is_none_are_refused() -> None:
    films = gf.synthetic(users=30, items=20, ratings=240, rng=7)
    asked = (films, gf.KNN(k=3), films.users[0], films.items[0])
    with pytest.raises(gf.SettingError, match="over must be one of raters, neighbours"):
        gf.papers.algorithm_1(*asked, over=cast("Any", "everybody"))
    for number in (float("nan"), float("inf")):
        with pytest.raises(gf.SettingError, match="fallback must be a finite number"):
            gf.papers.NoisyAnswers(fallback=number)


def test_every_public_callable_is_tried() -> None:
    untried = {"DataError", "GoodfenceError", "SettingError"}  # errors
    untried |= {"audit_page", "reproduce", "reproduce_all"}  # which run for minutes
    untried |= {"Ledger"}  # tests/ledger tries it
    public = {name for module in (gf, gf.papers) for name in module.__all__ if callable(getattr(module, name))}
    tried_names = {one.name for one in callables()}
    assert public - untried <= tried_names
    assert "learning_curve" in tried_names  # of goodfence.evaluation
    assert {name for name in tried_names if name[0].isupper()} <= public | {"Scores.of"}


@pytest.mark.parametrize("rating", [99, 3.5, -1, "5", b"3", True, None, [3], 3 + 0j, 10**400])
def test_a_profile_holds_ratings_on_the_scale_and_nothing_else(rating: Any) -> None:
    films = gf.synthetic(users=30, items=20, ratings=240, rng=7)
    profile, asked = {films.items[0]: rating, films.items[1]: 3}, [films.items[2]]
    models: list[Any] = [
        gf.NeighbourCF(gf.KNN(k=3), rng=7),
        gf.PrivateMeans(epsilon=1.0, items="from ratings", rng=7),
        gf.papers.SlopeOne(rng=7),
        gf.papers.NoisyAnswers(gf.NeighbourCF(gf.KNN(k=3)), rng=7),
    ]
    for model in models:
        with pytest.raises(gf.DataError, match="profile"):
            model.fit(films).predict(profile, asked)
    with pytest.raises(gf.DataError, match="profile"):
        profile_candidates(films, profile)
