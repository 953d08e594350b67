"""`goodfence paper reproduce`: results on stdout, exit code 0 also for failed claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from goodfence.cli import app

FIGURE = ["paper", "reproduce", "attack-m", "--quick", "--data", "movietweetings"]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    result = CliRunner().invoke(app, [*FIGURE, "--out", str(folder)])
    assert result.exit_code == 0, result.stderr
    assert " 5  fails" in result.stdout
    assert " 8  holds" in result.stdout
    verdicts = result.stdout.split("Tables, charts")[0]
    assert max(map(len, verdicts.splitlines())) <= 100
    return folder


@pytest.mark.slow
def test_a_failed_claim_is_a_result_and_everything_is_written(out: Path) -> None:
    names = {path.name for path in (out / "attack-m").iterdir()}
    assert names == {
        *("table.parquet", "table.csv", "summary.parquet", "summary.csv"),
        *("chart.png", "chart.svg", "chart.html", "claims.json", "manifest.json"),
        *("paper.png", "paper.svg", "paper.html"),
    }
    assert len(list((out / "points").glob("*.parquet"))) == 10


def test_json_is_one_object_and_a_second_run_takes_the_points_up(out: Path) -> None:
    result = CliRunner().invoke(app, [*FIGURE, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    labels = [f"{claim['claim']}{claim['part']}" for claim in told["claims"]]
    assert labels == ["5", "8", "9a", "9b"]
    assert told["manifest"]["points_computed"] == 0
    assert told["manifest"]["points"] == 10


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["attack-z"], "did you mean 'attack-"), (["attack-m", "--seed", "-1"], "seed must be an integer of at least 0")],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["paper", "reproduce", *arguments])
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_the_papers_data_the_bundled_ratings_stand_in_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOODFENCE_DATA", str(tmp_path))
    command = ["paper", "reproduce", "user-douban", "--quick", "--out", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["manifest"]["data"] == "movietweetings"
    assert "NOT from Douban film" in told["manifest"]["note"]
    assert any("bundled ratings" in note for note in told["notes"])
