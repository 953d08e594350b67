"""`--risk` writes a table of each user's risk for its owner alone, and prints nothing of it."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import goodfence as gf
from tests.support.attack_worlds import OwnMean, tied_ratings
from tests.support.running import run

COLUMNS = ["user", "hidden", "recovery", "recovery_without", "advantage", "fully_recovered", "risk_decile"]


def test_the_table_is_that_of_python(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "users.parquet"
    given = (small, "--scale", 1, 5, "--method", "knn k=5", "--attack", "knn known=8", "--targets", "all", "--seed", 7)
    code, stdout, stderr = run("audit", *given, "--risk", out)
    assert code == 0
    assert "holds ids and risks of 40 of 40 users. These are personal data" in stderr
    found = parquet.read_table(out)
    report = gf.KNNAttack(known=8).run(gf.load(small, scale=(1, 5)), gf.KNN(k=5), targets=40, rng=7)
    assert found.column_names == COLUMNS
    assert found.equals(report.risk())
    assert sorted(found["user"].to_pylist()) == list(range(1000, 1040))
    assert not any(str(user) in stdout for user in range(1000, 1040))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    out.chmod(0o644)  # an older file that others can read
    assert run("audit", *given, "--risk", out, "--quiet")[2] == ""
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_the_risk_of_lists(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "users.parquet"
    given = (small, "--likes", 3, "--method", "knn k=5", "--attack", "list", "--targets", 10, "--quiet")
    assert run("audit", *given, "--risk", out)[0] == 0
    assert parquet.read_table(out).column_names[2:5] == ["precision", "precision_without", "advantage"]


def test_deciles_by_hand() -> None:
    """The deciles rise with the advantage; where all are alike, nobody stands out."""
    report = gf.KNNAttack(known=3).run(tied_ratings(3, n_users=40), gf.KNN(k=3), targets=40, rng=1)
    table = report.risk()
    order = np.argsort(table["advantage"].to_numpy())
    deciles = table["risk_decile"].to_numpy()
    assert (np.diff(deciles[order]) >= 0).all()
    assert 1 <= deciles.min() <= deciles.max() <= 10
    same = gf.KNNAttack(known=3, fakes=2).run(tied_ratings(3), OwnMean(), targets=20, rng=1).risk()
    assert set(same["risk_decile"].to_pylist()) == {6}  # the mean rank of 20 is 10.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--risk", "users.csv"), "risk must end in .parquet, got .csv"),
        (("--risk", "nowhere/users.parquet"), "the folder of risk does not exist"),
        (("--risk", "users.parquet", "--attack", "membership"), "risk must be left out with --attack membership"),
    ],
)
def test_refused_before_anything_is_attacked(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, stdout, stderr = run("audit", small, *arguments)
    assert code in (2, 3)
    assert stdout == ""
    assert says in stderr.splitlines()[-1]
    assert not Path("users.parquet").exists()
