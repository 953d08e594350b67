"""Attribute inference: classes that only the target's own ratings tell, classes that nothing tells, and a real file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import goodfence as gf
from goodfence.attack.attributes import AttributeAttack, AttributeReport, cross_fitted
from goodfence.data.catalogue import DATASETS, find_dataset
from goodfence.data.load import read_labels
from goodfence.errors import ColumnProblem, DataError, SettingError
from goodfence.report.serialize import plain
from goodfence.rng import Streams
from tests.support.attack_worlds import OwnMean
from tests.support.contracts import FALSE_ALARM
from tests.support.running import run, run_json

N_USERS, N_NOISE, N_TELLING = 90, 40, 6


def classed(seed: int = 1) -> tuple[gf.Ratings, dict[Any, Any]]:
    """Return ratings of rare items by chance, and of six popular items that are 5 in one class and 1 in the other."""
    generator = np.random.default_rng(seed)
    classes = np.arange(N_USERS) % 3 == 0
    noise = generator.integers(1, 6, size=(N_USERS, N_NOISE)) * (generator.random((N_USERS, N_NOISE)) < 0.5)
    telling = np.repeat(np.where(classes, 5, 1)[:, np.newaxis], N_TELLING, axis=1)
    cells = sparse.csr_array(np.hstack([noise, telling]).astype(np.float64))
    ratings = gf.Ratings(cells, range(N_USERS), range(N_NOISE + N_TELLING), scale=(1, 5))
    return ratings, {user: "yes" if one else "no" for user, one in enumerate(classes)}


def found_by(model: Any, **settings: Any) -> AttributeReport:
    ratings, labels = classed()
    attack = AttributeAttack(known=12, choose="rarest", items=N_TELLING, labels=labels, **settings)
    found: AttributeReport = attack.run(ratings, model, targets=N_USERS, rng=3)
    return found


def test_a_neighbourhood_tells_the_class_of_the_target() -> None:
    """The target is the only real neighbour: the answers are the target's own ratings; without, a stranger's."""
    found = found_by(gf.KNN(k=3)).estimates
    assert min(found["accuracy"].value, found["balanced_accuracy"].value) > 0.9
    assert found["majority"].value == pytest.approx(2 / 3)
    assert found["accuracy_without"].value < 0.8
    assert found["advantage"].low > 0.1
    assert found["balanced_advantage"].low > 0.2


def test_who_ignores_others_tells_no_class() -> None:
    """The worlds are the same, so the predictions are."""
    found = found_by(OwnMean(), fakes=2).estimates
    assert found["advantage"].value == found["balanced_advantage"].value == 0
    assert found["accuracy"] == found["accuracy_without"]


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
def test_features_that_tell_nothing_are_no_better_than_chance(n_classes: int) -> None:
    """Of 80 users in two worlds of noise the interval of the advantage holds 0 in 94 runs of 100 at least."""
    generator, n, n_runs, held, right = np.random.default_rng(2), 80, 250, 0, 0
    for number in range(n_runs):
        classes = generator.permutation(np.arange(n) % n_classes)
        worlds = []
        for _ in range(2):
            features = np.where(generator.random((n, 8)) < 0.2, np.nan, generator.normal(size=(n, 8)))
            scores, priors = cross_fitted(features, classes, Streams(number))
            worlds.append([rule.argmax(axis=1) == classes for rule in (scores, scores / priors)])
        found = AttributeReport(attack="", classes=classes, right=np.array(worlds), majority=worlds[0][0]).estimates
        held += sum(found[name].low <= 0 <= found[name].high for name in ("advantage", "balanced_advantage"))
        right += int(worlds[0][0].sum())
    assert stats.binomtest(held, 2 * n_runs, 0.94, alternative="less").pvalue > FALSE_ALARM
    above = stats.binomtest(right, n * n_runs, 1 / n_classes, alternative="greater").pvalue
    assert above > FALSE_ALARM  # a user's own class is in no training data


def test_cross_fitting_finds_what_is_there() -> None:
    generator = np.random.default_rng(3)
    classes = np.arange(120) % 3
    features = np.eye(3)[classes] + 0.3 * generator.normal(size=(120, 3))
    scores, priors = cross_fitted(features, classes, Streams(3))
    assert np.mean(scores.argmax(axis=1) == classes) > 0.9
    np.testing.assert_allclose(priors.sum(axis=1), 1)


def test_a_report_holds_no_id_and_no_class() -> None:
    found = found_by(gf.KNN(k=3))
    told = json.loads(json.dumps(plain(found.to_dict())))
    assert told["settings"] == {"name": "AttributeAttack", "known": 12, "fakes": None, "items": 6, "choose": "rarest"}
    assert "yes" not in repr(found) + json.dumps(told)
    assert "labels" not in repr(found)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({}, "labels must hold a class of every target"),
        (dict.fromkeys(range(N_USERS), "one"), "labels must have 2 to 12 classes, or numbers; the targets have 1"),
        ({user: f"c{user}" for user in range(N_USERS)}, "the targets have 90"),
    ],
)
def test_labels_that_are_refused(labels: dict[Any, Any], says: str) -> None:
    ratings, _ = classed()
    with pytest.raises(DataError, match=says):
        AttributeAttack(known=4, labels=labels).run(ratings, gf.KNN(k=3), targets=N_USERS, rng=3)


def test_many_numbers_are_grouped() -> None:
    ratings, _ = classed()
    ages: dict[Any, Any] = {user: 10 + user for user in range(N_USERS)}
    found = AttributeAttack(known=4, labels=ages).run(ratings, gf.KNN(k=3), targets=N_USERS, rng=3)
    assert np.bincount(found.classes).tolist() == [23, 22, 22, 23]


def test_events_are_refused() -> None:
    ratings, labels = classed()
    with pytest.raises(SettingError, match="AttributeAttack must be given ratings"):
        AttributeAttack(known=2, labels=labels).run(ratings.likes(4), gf.KNN(k=3), rng=3)


def test_the_command_is_what_python_finds(tmp_path: Path) -> None:
    ratings, labels = classed()
    cells = ratings.csr.tocoo()
    rows = zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True)
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "".join(f"{u},{i},{r:g}\n" for u, i, r in rows))
    (tmp_path / "users.csv").write_text("user,member\n" + "".join(f"{u},{one}\n" for u, one in labels.items()))
    assert read_labels(str(tmp_path / "users.csv"), "member") == labels
    line = f"attribute file={tmp_path / 'users.csv'} column=member known=12 items=6 choose=rarest"
    given = (tmp_path / "r.csv", "--scale", 1, 5, "--method", "knn k=3", "--targets", "all", "--seed", 3, "--quiet")
    told = run_json("audit", *given, "--attack", line)
    assert told["estimates"] == plain(found_by(gf.KNN(k=3)).to_dict()["estimates"])
    _, stdout, _ = run("audit", *given, "--attack", line)
    assert "with the target's data" in stdout
    assert "12 ratings of each known, 6 items asked for" in stdout
    for attack, says in (
        ("attribute", "the attack attribute needs file=FILE column=NAME"),
        (f"attribute file={tmp_path / 'users.csv'} column=gender", "user= and column= must name columns of the file"),
        (f"attribute file={tmp_path / 'none.csv'} column=gender", "none.csv"),
        ("attribute file=x.csv column=y labels=z", "has no setting 'labels'"),
    ):
        code, _, stderr = run("audit", *given, "--attack", attack)
        assert code in (2, 3)
        assert says in stderr.splitlines()[-1]


def test_a_user_of_two_classes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    path.write_text("user,gender\n1,a\n1,b\n2,a\n")
    with pytest.raises(DataError, match="a user must have one class, at least one has several"):
        read_labels(str(path), "gender")
    with pytest.raises(ColumnProblem, match="user= and column="):
        read_labels(str(path), "age")


@pytest.mark.real("ml-100k")
def test_real_data_do_not_leak_a_class_of_chance() -> None:
    ratings = gf.load("ml-100k")
    labels: dict[Any, Any] = {user: int(user) % 4 for user in ratings.users.tolist()}
    found = AttributeAttack(known=8, labels=labels).run(ratings, gf.KNN(k=50), targets=300, rng=7).estimates
    assert found["advantage"].low < 0 < found["advantage"].high


@pytest.mark.real("ml-100k")
def test_real_data_leak_the_age_of_users() -> None:
    """In four groups; all 943 users gave an advantage of 0.066 (0.014 to 0.117)."""
    ages = read_labels(str(find_dataset(DATASETS["ml-100k"]) / "u.user"), "2", "1")
    found = AttributeAttack(known=8, labels=ages).run(gf.load("ml-100k"), gf.KNN(k=50), targets=943, rng=7).estimates
    assert found["advantage"].low > 0
