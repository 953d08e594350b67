"""What fuzzing found worth keeping is read or refused, and the fuzzer finds a fault where there is one."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.support import fuzzing


@pytest.mark.parametrize("ending", sorted({fuzzing.ending_of(p) for p in fuzzing.SEEDS.iterdir()}))
def test_every_seed_is_read_or_refused(ending: str, tmp_path: Path) -> None:
    seeds = [path for path in fuzzing.SEEDS.iterdir() if fuzzing.ending_of(path) == ending]
    for path in sorted(seeds):
        tried = Path(shutil.copy(path, tmp_path / f"a{ending}"))
        assert (path.name, fuzzing.judged(tried)) in [(path.name, one) for one in fuzzing.GOOD]


def test_the_fuzzer_keeps_what_leads_to_new_lines(tmp_path: Path) -> None:
    corpus, found = tmp_path / "corpus", tmp_path / "found"
    corpus.mkdir()
    found.mkdir()
    fuzzing.write(corpus, ".csv", b"user,item,rating\n1,2,3\n2,2,4\n")
    fuzzer = fuzzing.Fuzzer(corpus, found, random.Random(1))
    fuzzer.run(0.0)  # the seeds only
    before = len(fuzzer.lines.seen)
    for _ in range(40):
        fuzzer.once(tmp_path)
    assert len(fuzzer.lines.seen) > before
    assert len(list(corpus.iterdir())) == 1 + fuzzer.n_kept > 1
    assert [path.name for path in found.iterdir()] == ["current"]


def test_a_raw_error_is_reported(tmp_path: Path) -> None:
    """A seed of a model is a zip; what is none is a raw error of the fuzzer's own, and so is any other."""
    path = tmp_path / "a.model"
    path.write_bytes(b"no zip")
    told = fuzzing.judged(path)
    assert told == "raw BadZipFile"
    fuzzing.report(tmp_path, told, ".model", b"no zip")
    assert [one.read_bytes() for one in (tmp_path / "raw-BadZipFile").iterdir()] == [b"no zip"]
