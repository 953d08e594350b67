"""What is really deployed: lists behind a service's own shape, asked by accounts that are opened and closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goodfence as gf
from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.deployed import Deployed, ServiceMapping, found_at
from goodfence.adapters.http import Endpoint
from goodfence.attack.report import ListAttackReport
from goodfence.errors import BlackBoxProblem, FileProblem, GoodfenceError, SettingError
from tests.support.list_recommenders import make_events
from tests.support.recommender_service import Service
from tests.support.recommender_service import serving as serving_box
from tests.support.running import run, run_json
from tests.support.shop_service import MAPPING, Shop, serving, write_mapping

EVENTS = make_events(3)
ATTACK = gf.ListAttack(known=3, n=4, fakes=4)


class Refitted(gf.NeighbourCF):
    """Another class, of which an attack knows nothing but how to fit and ask it."""


def figures(report: ListAttackReport) -> Any:
    return report.table().drop_columns(["target_chosen", "target_alone"])


def test_a_shop_is_attacked_through_its_own_shape(tmp_path: Path) -> None:
    """The same lists as from inside, though nothing but accounts were opened and closed."""
    shop = Shop()
    with serving(shop) as url:
        deployed = Deployed(url, write_mapping(tmp_path))
        far = ATTACK.run(EVENTS, deployed, targets=3, rng=5)
        opened = sum(method == "POST" and "retrain" not in path for method, path in shop.asked)
        assert shop.clicks
        deployed.close()
    assert not shop.clicks
    near = ATTACK.run(EVENTS, Refitted(gf.KNN(k=4), progress=False), targets=3, rng=5)
    assert near.advantage > 0
    assert figures(far).equals(figures(near))
    assert opened < 3 * EVENTS.shape[0]  # people stay; only targets and fakes come and go


def test_ids_are_told_apart_by_their_text(tmp_path: Path) -> None:
    with serving(Shop()) as url:
        deployed = Deployed(url, write_mapping(tmp_path)).fit(EVENTS)
        listed = deployed.recommend(EVENTS.users[0], 5)
    assert 0 < len(listed) <= 5
    assert set(listed) <= set(EVENTS.items.tolist())


def test_the_protocol_serves_lists() -> None:
    service = Service(gf.NeighbourCF(gf.KNN(k=4), progress=False))
    near = ATTACK.run(EVENTS, Refitted(gf.KNN(k=4), progress=False), targets=3, rng=5)
    with serving_box(service) as url:
        far = ATTACK.run(EVENTS, BlackBox(url, asks="lists"), targets=3, rng=5)
        folded = ATTACK.run(EVENTS, BlackBox(url, asks="profile_lists"), targets=3, rng=5)
    assert figures(far).equals(figures(near))
    assert folded.n_targets == 3
    assert {path for path, _, _ in service.asked} == {"/fit", "/recommend"}
    assert service.asked[0][1]["feedback"] == "implicit"


@pytest.mark.parametrize("body", [b"{}", b'{"items": 3}', b'{"items": [1.5]}', b"["])
def test_what_is_no_list_is_one_clear_error(body: bytes) -> None:
    service = Service(gf.NeighbourCF(gf.KNN(k=4), progress=False), body=body)
    with serving_box(service) as url, pytest.raises(BlackBoxProblem, match="must answer /recommend"):
        ATTACK.run(EVENTS, BlackBox(url, asks="lists"), targets=1, rng=5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[open]", "[opens]", "must have the table open or open_all"),
        ("settle = 0", "settle = 0\nother = 3", "'other' is none of these"),
        ("settle = 0", "settle = -1", "settle must be at least 0"),
        ('method = "GET"', 'method = "LOOK"', "method must be one of GET"),
        ('path = "/v1/retrain"', 'path = "v1/retrain"', "path must be text that begins with /"),
        ('path = "/v1/retrain"', 'path = "/v1/retrain"\nverb = 1', "learn must be a table of path"),
        ("settle = 0", "settle = ", "must be TOML"),
        ('items = "shelf', 'items = 3 # "shelf', "items must be text such as"),
    ],
)
def test_a_mapping_that_says_nonsense_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = write_mapping(tmp_path, MAPPING.replace(old, new, 1))
    with pytest.raises((FileProblem, SettingError, GoodfenceError), match=words):
        ServiceMapping.read(path)


def test_without_a_way_to_close_only_one_world_can_be_made(tmp_path: Path) -> None:
    text = MAPPING[: MAPPING.index("[close]")] + MAPPING[MAPPING.index("[learn]") :]
    with serving(Shop()) as url, pytest.raises(SettingError, match="must have a table close"):
        ATTACK.run(EVENTS, Deployed(url, write_mapping(tmp_path, text)), targets=1, rng=5)


@pytest.mark.parametrize("path", ["shelf.seed", "shelf.entries", "shelf.nothing", ""])
def test_a_list_that_is_not_where_it_should_be_is_told(tmp_path: Path, path: str) -> None:
    text = MAPPING.replace("shelf.entries.*.sku", path)
    with serving(Shop()) as url:
        deployed = Deployed(url, write_mapping(tmp_path, text)).fit(EVENTS)
        with pytest.raises(BlackBoxProblem, match="must have item ids at") as caught:
            deployed.recommend(EVENTS.users[0], 3)
    assert "user " not in str(caught.value)


def test_ratings_are_refused(tmp_path: Path) -> None:
    deployed = Deployed(Endpoint(url="http://127.0.0.1:9"), write_mapping(tmp_path))
    with pytest.raises(SettingError, match="must have a table predict"):
        deployed.fit(gf.load("movietweetings"))


@pytest.mark.parametrize(
    ("answer", "path", "found"),
    [
        ({"a": {"b": [1, 2]}}, "a.b", [1, 2]),
        ({"a": [{"b": "x"}, {"b": "y"}]}, "a.*.b", ["x", "y"]),
        (["x"], "", ["x"]),
        ({"a": []}, "a.*.b", []),
    ],
)
def test_where_the_list_is(answer: Any, path: str, found: list[Any]) -> None:
    assert found_at(answer, path) == found


def _clicks(folder: Path) -> Path:
    cells = EVENTS.csr.tocoo()
    lines = zip(EVENTS.users[cells.row], EVENTS.items[cells.col], strict=True)
    path = folder / "clicks.csv"
    path.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in lines))
    return path


def test_the_command_audits_a_shop_and_leaves_no_account(tmp_path: Path) -> None:
    shop = Shop()
    with serving(shop) as url:
        told = run_json(
            *("audit", _clicks(tmp_path), "--feedback", "implicit", "--url", url),
            *("--mapping", write_mapping(tmp_path), "--attack", "list known=3 fakes=4 n=4"),
            *("--targets", 2, "--seed", 7, "--quiet"),
        )
    assert told["recommender"]["label"] == f"the service at {url}"
    assert "precision" in told["estimates"]
    assert not shop.clicks


def test_the_command_audits_a_saved_model(tmp_path: Path) -> None:
    gf.NeighbourCF(gf.KNN(k=4), progress=False).fit(EVENTS).save(tmp_path / "model.gf")
    given = ("--feedback", "implicit", "--known", 3, "--targets", 6, "--seed", 7, "--quiet")
    told = run_json("audit", _clicks(tmp_path), *given, "--model", tmp_path / "model.gf")
    assert told["recommender"]["label"] == "kNN k=4"
    assert told["fakes"] in (1, 4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--mapping", "shop.toml"), "url is required with mapping"),
        (("--url", "http://127.0.0.1:9", "--method", "knn k=5"), "url must stand alone"),
    ],
)
def test_what_is_deployed_stands_alone(tmp_path: Path, given: tuple[Any, ...], words: str) -> None:
    code, _, stderr = run("audit", _clicks(tmp_path), "--feedback", "implicit", *given)
    assert code == 2
    assert words in " ".join(stderr.split())
