from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import goodfence as gf
from goodfence.errors import ModelFileError
from goodfence.models.neighbour_cf import NeighbourCF

RATINGS = gf.synthetic(users=60, items=40, ratings=900, rng=2)
MODELS = [
    gf.NeighbourCF(gf.KNN(k=4), axis="item", over="neighbours", fallback="item_mean", rng=None),
    gf.NeighbourCF(gf.NPNS(k=4, within=3), similarity="pearson", rng=[1, 2]),
    gf.NeighbourCF(gf.PNCF(k=4, epsilon=0.1, reading="truncated"), rng=3),
    gf.NeighbourCF(
        gf.PPNS(
            k=4,
            beta=3,
            epsilon=1e-3,
            allocation=(2, 1, 1),
            sensitivity=gf.Sensitivity(scope="pair"),
        ),
        rng=11,
    ),
]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    gf.NeighbourCF(gf.PPNS(k=4, beta=3), rng=1).fit(RATINGS).save(tmp_path / "model.gf")
    return tmp_path / "model.gf"


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m.mechanism).__name__)
def test_settings_and_answers_survive_exactly(model: NeighbourCF, tmp_path: Path) -> None:
    model.fit(RATINGS).save(tmp_path / "model.gf")
    loaded = gf.load_model(tmp_path / "model.gf")
    assert isinstance(loaded, NeighbourCF)
    for name in (
        "mechanism",
        "axis",
        "similarity",
        "over",
        "fallback",
        "rng",
        "threads",
        "progress",
    ):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.ratings_.scale == RATINGS.scale
    users, items = np.repeat(RATINGS.users, 40), np.tile(RATINGS.items, 60)
    assert np.array_equal(loaded.predict(users, items), model.predict(users, items), equal_nan=True)
    profile = {RATINGS.items[0]: 4.0, RATINGS.items[3]: 2.0}
    expected = model.answer(profile, RATINGS.items)
    assert np.array_equal(loaded.answer(profile, RATINGS.items), expected, equal_nan=True)


def test_text_ids_and_titles_survive(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table(
        {"user": ["Zoë", "a b", "007", "é"], "item": ["x", "x", "y", "y"], "rating": [1, 2, 3, 4]}
    )
    ratings = gf.Ratings.from_frame(table, scale=(1, 5))
    gf.NeighbourCF(gf.KNN(k=1)).fit(ratings).save(tmp_path / "model.gf")
    loaded = gf.load_model(tmp_path / "model.gf")
    assert isinstance(loaded, NeighbourCF)
    assert loaded.ratings_.users.tolist() == ratings.users.tolist()


def test_a_class_loads_its_own_kind_only(saved: Path) -> None:
    assert gf.NeighbourCF.load(saved).mechanism == gf.PPNS(k=4, beta=3)
    with pytest.raises(ModelFileError, match="is a NeighbourCF, not a PrivateMeans"):
        gf.PrivateMeans.load(saved)


def test_nothing_is_pickled(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == ["arrays.npz", "manifest.json"]
    with np.load(saved / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_saving_over_a_model_replaces_it_and_leaves_nothing_else(saved: Path) -> None:
    gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["model.gf"]
    loaded = gf.load_model(saved)
    assert isinstance(loaded, NeighbourCF)
    assert loaded.mechanism == gf.KNN(k=2)


def test_a_folder_that_is_no_model_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(ModelFileError, match="not a saved model"):
        gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"


def change(saved: Path, **changes: object) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    for path, value in changes.items():
        where = manifest
        *parents, last = path.split("__")
        for parent in parents:
            where = where[parent]
        where[last] = value
    (saved / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 99}, "newer format"),
        ({"format": "1"}, "newer format"),
        ({"kind": "Oracle"}, "kind"),
        ({"arrays__file": "../arrays.npz"}, "outside"),
        ({"arrays__file": "/etc/passwd"}, "outside"),
        ({"arrays__file": "..\\arrays.npz"}, "outside"),
        ({"arrays__file": "other.npz"}, "missing"),
        ({"arrays__shapes": {}}, "shapes"),
        ({"arrays": 3}, "lacks a part"),
        ({"settings__mechanism": {"mechanism": "Magic", "k": 3}}, "mechanism"),
        ({"settings__mechanism": {"mechanism": "KNN", "k": 0}}, "mechanism"),
        ({"settings__mechanism": {"mechanism": "KNN", "k": 3}}, "shape"),
        ({"settings__over": "everything"}, "not sound"),
        ({"settings__surprise": 1}, "not sound"),
        ({"settings__ratings": {"shape": [3, 3]}}, "not sound"),
    ],
)
def test_a_changed_manifest_is_refused(
    saved: Path, changes: dict[str, object], message: str
) -> None:
    change(saved, **changes)
    with pytest.raises(ModelFileError, match=message):
        gf.load_model(saved)


def test_a_truncated_file_is_refused(saved: Path) -> None:
    whole = (saved / "arrays.npz").read_bytes()
    (saved / "arrays.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match="truncated"):
        gf.load_model(saved)
    (saved / "manifest.json").write_text('{"format": 1,')
    with pytest.raises(ModelFileError, match="cannot be read"):
        gf.load_model(saved)
    (saved / "manifest.json").unlink()
    with pytest.raises(ModelFileError, match=r"manifest\.json"):
        gf.load_model(saved)
    with pytest.raises(ModelFileError, match="no saved model"):
        gf.load_model(saved / "nowhere")


def test_neighbours_out_of_range_are_refused(saved: Path) -> None:
    import hashlib

    with np.load(saved / "arrays.npz") as stored:
        arrays = dict(stored)
    arrays["neighbours"] = arrays["neighbours"] + 1000
    np.savez(saved / "arrays.npz", **arrays)
    digest = hashlib.sha256((saved / "arrays.npz").read_bytes()).hexdigest()
    change(saved, arrays__sha256=digest)
    with pytest.raises(ModelFileError, match="row numbers"):
        gf.load_model(saved)
