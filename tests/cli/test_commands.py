"""Every command on bundled or small ratings: what it prints, what it writes, how it exits."""

from __future__ import annotations

import json
import math
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import goodfence as gf
from goodfence.cli.doctor import LIBRARIES
from tests.support.running import no_constant, run, run_json

FILMS = "movietweetings"
DEMO = import_module("goodfence.cli.demo")  # the name in the package is the command
AUDIT = import_module("goodfence.auditing.audit")
SOME = ("--targets", "40", "--seed", "7", "--quiet")


@pytest.mark.slow
def test_demo_shows_the_leak_and_what_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DEMO, "_REFITTED", 2)
    code, stdout, stderr = run("demo")
    assert code == 0
    assert "1,238 users x 1,191 films, 45,027 ratings" in stdout
    told = " ".join(stdout.split())
    assert "Verdict kNN k=50 leaks. " in told
    assert "an attacker who knows 8 ratings of a user and opens 50 accounts" in told
    assert [line for line in stdout.splitlines() if line.startswith("  PrivateMeans eps=1")]
    assert len(stdout.splitlines()) < 40
    assert max(map(len, stdout.splitlines())) <= 110
    assert stderr.splitlines()[0] == "reading the film ratings that come with goodfence"


@pytest.mark.slow
def test_demo_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DEMO, "_REFITTED", 2)
    result = run_json("demo", "--quiet")
    assert (result["n_ratings"], result["scale"]) == (45_027, "integers 0-10")
    assert len(result["most_rated"]) == 5
    common, _, private = result["tried"]
    assert (common["targets"], common["choosing"]) == (200, 200)
    assert private["guarantee"]["status"] == "proved"
    report = gf.audit(gf.load(FILMS), gf.KNN(k=50), targets=200, trials=0, rng=7).leakage
    assert common["estimates"]["recovery"] == report.estimates["recovery"]._asdict()


def test_a_fitted_model_recommends_what_python_does(tmp_path: Path) -> None:
    model = tmp_path / "model.gf"
    arguments = ("--method", "ppns k=30 beta=3", "--seed", "7")
    code, stdout, stderr = run("fit", FILMS, *arguments, "-o", model)
    assert (code, stderr.splitlines()[0]) == (0, f"reading {FILMS}")
    assert "PPNS k=30 beta=3 eps=1" in stdout
    assert "refuted" in stdout
    films = gf.load(FILMS)
    same = gf.NeighbourCF(gf.PPNS(k=30, beta=3), rng=7).fit(films).recommend(21, n=4)
    told = run_json("recommend", model, 21, "-n", 4)["items"]
    assert [one["item"] for one in told] == same.items.tolist()
    assert [one["score"] for one in told] == same.scores.tolist()
    code, stdout, stderr = run("recommend", model, 21, "-n", 4)
    assert (code, stderr) == (0, f"reading {model.name}\n")
    assert len(stdout.splitlines()) == 5
    assert told[0]["title"] in stdout.splitlines()[1]


@pytest.mark.parametrize("name", ["private-means", "private-cf"])
def test_a_private_model_keeps_its_guarantee_in_the_file(name: str, tmp_path: Path) -> None:
    model = tmp_path / "model.gf"
    arguments = ("fit", FILMS, "--items", "from-ratings", "--method", f"{name} epsilon=2")
    fit = run_json(*arguments, "-o", model, "-q")
    assert (fit["guarantee"]["status"], fit["guarantee"]["unit"]) == ("proved", "rating")
    assert gf.load_model(model).guarantee().status == "proved"
    seeded = run_json(*arguments, "-o", model, "--seed", 7)
    assert seeded["guarantee"]["status"] == "none"


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_fitting_a_private_model_tells_no_counts(as_json: tuple[str, ...], small: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gf"
    private = ("--method", "private-means epsilon=1")
    arguments = ("--scale", 1, 5, "--items", "from-ratings")
    code, stdout, stderr = run("fit", small, *arguments, *private, "-o", model, *as_json)
    assert code == 0
    fitted: Any = gf.load_model(model)
    ratings = fitted.ratings_
    protected = (ratings.shape[0], ratings.n_ratings)
    assert not set(map(int, re.findall(r"\d+", (stdout + stderr).replace(",", "")))) & {*protected}
    code, stdout, _ = run("fit", small, "--method", "knn k=5", "-o", model)
    assert str(protected[0]) in stdout  # where nothing is promised, it is said


def test_a_folder_that_anybody_may_hold(small: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gf"
    public_items = ("--scale", 1, 5, "--items", "from-ratings", "--without-ratings")
    private = ("--method", "private-means epsilon=1")
    arguments = ("fit", small, *public_items, *private, "-o", model)
    code, stdout, _ = run(*arguments)
    assert code == 0
    assert "safe to publish" in stdout
    public: Any = gf.load_model(model)
    assert public.ratings_.shape[0] == public.ratings_.n_ratings == 0
    assert "seed" in run(*arguments, "--seed", 1)[1]
    code, _, stderr = run("fit", small, "--method", "knn k=5", "-o", model, "--without-ratings")
    assert code == 2
    assert "without_ratings must be left out" in stderr


def test_a_model_larger_than_the_limit_is_refused(small: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gf"
    assert run("fit", small, "--method", "knn k=5", "-o", model)[0] == 0
    code, _, stderr = run("recommend", model, 1003, "--max-bytes", 1000)
    assert code == 3
    assert "--max-bytes" in stderr


def test_people_with_text_ids_are_found(tmp_path: Path, small: Path) -> None:
    text = small.read_text().replace("\n1", "\np1")
    small.write_text(text)
    model = tmp_path / "model.gf"
    assert run("fit", small, "--method", "knn k=5", "-o", model)[0] == 0
    assert run("recommend", model, "p1003")[0] == 0
    code, stdout, stderr = run("recommend", model, "1003")
    assert (code, stdout) == (3, "")
    assert "1003" not in stderr


def test_evaluate_gives_the_scores_of_python() -> None:
    films = gf.load(FILMS)
    train, test = gf.holdout(films, fraction=0.1, rng=3)
    scores = gf.evaluate(gf.NeighbourCF(gf.KNN(k=20), axis="item").fit(train), test)
    arguments = ("--method", "knn k=20 axis=item", "--fraction", 0.1, "--seed", 3)
    told = run_json("evaluate", FILMS, *arguments)
    assert (told["mae"], told["coverage"], told["n"]) == (scores.mae, scores.coverage, scores.n)
    _, stdout, _ = run("evaluate", FILMS, *arguments, "-n", 5)
    assert f"MAE {scores.mae:.4f}" in stdout
    assert "of 5: NDCG " in stdout


def test_nothing_predicted_is_null(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    rows = [f"{user},{2 * user + turn},3" for user in range(6) for turn in range(2)]
    path.write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    scale = ("--scale", 1, 5)  # else ratings that are all alike are taken for clicks
    told = run_json("evaluate", path, "--method", "knn k=2", "--per-user", 1, "--seed", 1, *scale)
    assert (told["mae"], told["coverage"]) == (None, 0.0)


def test_attack_gives_the_report_of_python(tmp_path: Path) -> None:
    films = gf.load(FILMS)
    fence = gf.PPNS(k=30, beta=3)
    report = gf.KNNAttack(known=5, ask="all").run(films, fence, targets=40, rng=7)
    arguments = ("--method", "ppns k=30 beta=3", "--attack", "knn known=5 ask=all")
    told = run_json("audit", FILMS, *arguments, *SOME, "-o", tmp_path / "report")
    assert told["estimates"]["recovery"] == report.estimates["recovery"]._asdict()
    assert told["estimates"]["guess"] == report.estimates["guess"]._asdict()
    assert told["estimates"]["fully_recovered"]["value"] == report.fully_recovered.value
    assert (told["targets"], told["hidden"], told["fakes"]) == (40, report.n_hidden, 30)
    manifest = json.loads((tmp_path / "report" / "manifest.json").read_text())
    assert "ratings" not in manifest
    said = {"users", "items", "ratings", "feedback", "scale", "scale_declared"}
    assert set(told["data"]) == said
    assert told["data"]["users"] == 1200  # about: 1,238


def test_the_finding_has_attacker_guess_and_interval() -> None:
    code, stdout, stderr = run("audit", FILMS, *SOME, "--attack", "knn choose=rarest", "--known", 4)
    assert (code, stderr) == (0, "")
    told = " ".join(stdout.split())
    assert stdout.startswith("  Verdict   kNN k=50 leaks. ")
    assert "an attacker who knows the 4 rarest ratings of a user and opens 50 accounts" in told
    assert "Guessing without an account recovers" in told
    assert told.count("(95%: ") == 7
    assert "40 of about 1,200 users, drawn at random" in told
    assert "Not tried " in told
    assert "safe" not in told


def test_the_verdict_comes_first_then_people_then_ratings_then_who_was_tried() -> None:
    told = run_json("audit", FILMS, *SOME)
    code, stdout, _ = run("audit", FILMS, *SOME)
    assert code == 0
    labels = [line[2:11].strip() for line in stdout.splitlines() if line[2:3].strip()]
    first = ["Verdict", "Scope", "Assumed", "People", "Ratings", "Advantage", "Beside"]
    assert labels[: len(first)] == first
    flat = " ".join(stdout.split())
    assert told["verdict_line"].split(" Attacked: ")[0] in flat.replace(" Scope ", " ")
    assert told["neighbourhood"] in flat
    chosen = [line for line in stdout.splitlines() if line.startswith("  > ")]
    assert len(chosen) == 1
    strongest = next(one for one in told["tried"] if one["strongest"])
    assert strongest["what"] in chosen[0]
    assert f"attackers tried on {told['choosing']:,} users (> strongest)" in flat
    for one in told["not_tried"]:
        assert f"{one['attack']} ({one['reason']})" in flat
    fully = told["estimates"]["fully_recovered"]["value"]
    assert f"{100 * fully:.0f}% (95%: " in flat


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "code"), [("100", 0), ("45", 1), ("0", 1)])
def test_fail_above(limit: str, code: int) -> None:
    few = SOME[:-1]  # not quiet: what is above is told
    done, _, stderr = run("audit", FILMS, *few, "--fail-above", limit)
    assert done == code
    assert ("of the users are fully recovered" in stderr) == (code == 1)
    done, stdout, _ = run("audit", FILMS, *SOME, "--fail-above", limit, "--json")
    assert done == code
    assert json.loads(stdout)["estimates"]["recovery"]["value"] > 0.45


def test_audit_attacks_everybody(tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    options = ("--method", "ppns beta=3", "--attack", "knn")
    code, stdout, stderr = run("audit", FILMS, *options, "-o", out)
    assert (code, stderr.count("\n")) == (0, 2)
    assert "all 1,238 users" in stdout
    assert "refuted (counterexample)" in stdout
    assert "Evidence" in stdout
    written = json.loads(out.read_text(), parse_constant=no_constant)
    assert written["targets"] == 1_238
    assert written["tested"]["verdict"] == "refuted"
    assert written["tested"]["exhibit"]["without"] == 0


def test_audit_attacks_who_has_few_ratings_with_half_of_them() -> None:
    options = ("--known", 25, "--targets", "all", "--attack", "knn")
    _, stdout, _ = run("audit", FILMS, *options, "--seed", 7, "--quiet")
    films = gf.load(FILMS)
    n_few = int((np.diff(films.csr.indptr) <= 25).sum())
    told = " ".join(stdout.split())
    assert f"all {films.shape[0]:,} users; of {n_few:,} with no more than 25 ratings half are known" in told


def test_audit_samples_where_it_is_told_to(small: Path) -> None:
    arguments = ("audit", small, "--method", "knn k=5", "--known", 3, "--seed", 7)
    code, stdout, _ = run(*arguments, "--targets", 3)
    assert code == 0
    assert "3 of about 40 users, drawn at random" in " ".join(stdout.split())
    assert "cannot tell, because only 3 users were judged, and 30 are needed" in " ".join(stdout.split())
    code, stdout, _ = run(*arguments, "--targets", "all")
    assert "all 40 users" in stdout


def test_an_audit_that_cannot_tell_fails_unless_it_is_allowed_to(small: Path) -> None:
    arguments = ("audit", small, "--method", "npns k=5", "--known", 3, "--seed", 7, "--targets", 3)
    assert run(*arguments, "--fail-above", 100)[0] == 1
    assert run(*arguments, "--fail-above", "100 undecided=pass")[0] == 0


def test_a_time_limit_is_named_first(small: Path) -> None:
    code, stdout, _ = run("audit", small, "--method", "knn k=5", "--known", 3, "--seed", 7, "--max-time", 1e-9)
    assert code == 0
    assert stdout.split()[1].startswith("Incomplete")


@pytest.mark.slow
def test_audit_of_a_proved_model_says_whether_it_was_tested(small: Path) -> None:
    arguments = ("audit", small, "--scale", 1, 5, "--method", "private-means epsilon=1")
    few = ("--targets", 2, "--known", 3, "--seed", 7)
    code, stdout, _ = run(*arguments, *few)
    assert code == 0
    assert "proved: one rating, eps=1, any number of fakes" in stdout
    assert "--trials 1000" in stdout
    code, stdout, _ = run(*arguments, *few, "--trials", 30)
    assert code == 0
    assert "not broken" in stdout


def test_a_private_model_wants_the_scale(small: Path, tmp_path: Path) -> None:
    private = ("--method", "private-means epsilon=1", "--items", "from-ratings")
    arguments = ("fit", small, *private, "-o", tmp_path / "m")

    code, _, stderr = run(*arguments)
    assert code in (2, 3)
    assert "scale" in stderr
    assert run(*arguments, "--scale", 1, 5)[0] == 0


def test_a_separator_and_columns_by_name(tmp_path: Path, small: Path) -> None:
    text = small.read_text().replace(",", ";").replace("userId", "who").replace("movieId", "what")
    small.write_text(text)
    named = ("--user", "who", "--item", "what", "--read", "separator=;")
    told = run_json("evaluate", small, "--method", "knn k=5", "--seed", 1, *named)
    assert told["n"] == 240
    code, _, stderr = run("evaluate", small, "--method", "knn k=5", "--user", "whom", *named[2:])
    assert code == 3
    assert "did you mean 'who'" in stderr


def test_data_list_names_every_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOODFENCE_DATA", raising=False)
    listed = run_json("data", "list")["datasets"]
    where = {one["name"]: one["where"] for one in listed}
    assert where["movietweetings"] == "bundled"
    assert (where["ml-100k"], where["netflix-tenth"]) == ("to fetch", "by hand")
    _, stdout, _ = run("data", "list")
    assert all(one["name"] in stdout for one in listed)


def test_data_fetch() -> None:
    told = run_json("data", "fetch", FILMS)
    assert Path(told["folder"]).is_dir()
    assert "MIT" in run("data", "fetch", FILMS)[1]
    code, _, stderr = run("data", "fetch", "movietweeting", "-q")
    assert code == 3
    assert "did you mean 'movietweetings'?" in stderr


@pytest.mark.real("ml-100k")
def test_data_that_is_here_is_found(real_data: Path) -> None:
    where = {one["name"]: one["where"] for one in run_json("data", "list")["datasets"]}
    assert where["ml-100k"] == "here"
    assert run_json("data", "fetch", "ml-100k")["folder"] == str(real_data / "ml-100k")


def test_doctor_tells_versions_threads_and_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOODFENCE_DATA", raising=False)
    told = run_json("doctor")
    assert told["goodfence"] == gf.__version__
    assert set(told["libraries"]) == set(LIBRARIES)
    assert told["threads"]["used"] >= 1
    assert told["data"]["here"] == ["movietweetings"]
    _, stdout, stderr = run("doctor")
    assert stderr == ""
    assert "GOODFENCE_DATA: not set" in stdout


def test_doctor_names_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODFENCE_DATA", str(tmp_path / "nowhere"))
    code, stdout, _ = run("doctor")
    assert code == 0
    assert "Problem" in stdout
    assert run("data", "list")[0] == 3


def test_estimates_that_are_not_known_are_null() -> None:
    arguments = ("--targets", "1", "--method", "knn axis=item k=5", "--attack", "knn fakes=2")
    told = run_json("audit", FILMS, *arguments, "--seed", "7", "-q")
    assert told["estimates"]["target_chosen"]["value"] is None
    assert told["estimates"]["recovery"]["low"] is None
    assert not math.isnan(told["estimates"]["recovery"]["value"])


def test_a_neighbourhood_has_its_settings_on_the_command_line(tmp_path: Path) -> None:
    model = tmp_path / "model.gf"
    method = "knn k=20 axis=item similarity=centred_cosine center=item_mean among=raters shrinkage=2 min_common=2"
    code, stdout, _ = run("fit", FILMS, "--method", f"{method} min_neighbours=3", "-o", model)
    assert code == 0
    assert "center=item_mean among=raters shrinkage=2 min_common=2 min_neighbours=3" in " ".join(stdout.split())
    same = gf.NeighbourCF(
        gf.KNN(k=20),
        axis="item",
        similarity="centred_cosine",
        center="item_mean",
        among="raters",
        shrinkage=2,
        min_common=2,
        min_neighbours=3,
    )
    best = same.fit(gf.load(FILMS)).recommend(21, n=4)
    told = run_json("recommend", model, 21, "-n", 4)["items"]
    assert [one["score"] for one in told] == best.scores.tolist()
    code, _, stderr = run("evaluate", FILMS, "--method", "knn among=raters over=neighbours")
    assert code == 2
    assert "over must be 'raters' with among='raters'" in stderr


def test_only_allowed_items_are_recommended(tmp_path: Path) -> None:
    run("fit", FILMS, "--method", "knn", "--seed", 7, "-o", tmp_path / "model.gf")
    films = gf.load(FILMS)
    allowed = films.items[:40].tolist()
    (tmp_path / "allowed.txt").write_text("".join(f"{item}\n" for item in allowed))
    model = gf.load_model(tmp_path / "model.gf")
    asked = ("recommend", tmp_path / "model.gf", "--allowed", tmp_path / "allowed.txt")
    _, stdout, _ = run(*asked, films.users[3], "-n", 3, "--json")
    alone = model.recommend(films.users[3], 3, allowed=allowed)
    assert [one["item"] for one in json.loads(stdout)["items"]] == alone.items.tolist()
    run(*asked, "--all", "-n", 2, "-o", tmp_path / "lists.parquet")
    table = parquet.read_table(tmp_path / "lists.parquet")
    assert set(table.column("item").to_pylist()) <= set(allowed)


def test_lists_are_evaluated_with_intervals() -> None:
    arguments = ("--method", "knn k=30", "--seed", 7, "-n", 10)
    _, stdout, _ = run("evaluate", FILMS, *arguments, "--json")
    told = json.loads(stdout)
    low, high = told["intervals"]["ndcg"]
    assert low < told["ndcg"] < high
    _, stdout, _ = run("evaluate", FILMS, *arguments)
    assert f"of 10: NDCG {told['ndcg']:.4f}" in stdout
    assert "hit rate" in stdout
