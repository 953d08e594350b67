"""Ratings by name: where they are looked for, what is checked, what is said."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import goodfence as gf
from goodfence.data import catalogue
from goodfence.data.catalogue import DATASETS, Archive, Dataset, TitleFile, cache_folder, find_dataset, named_folder
from goodfence.data.frame import ReadOptions
from goodfence.data.load import load_dataset
from goodfence.errors import (
    DataError,
    DownloadProblem,
    DuplicateProblem,
    FileProblem,
    GoodfenceWarning,
    SettingError,
    UnknownDataset,
)
from tests.support.web import Manners, served

DATA = b"1\t10\t5\t880\n1\t20\t3\t881\n2\t10\t4\t882\n"
TITLES = "10|Caf\xe9 (1995)|x\n20|Other|y\n30|Not rated|z\n".encode("latin-1")


def tiny(base: str = "http://127.0.0.1:9", content: bytes = b"zip") -> Dataset:
    """Return the entry of ml-100k as if it had three ratings."""
    original = DATASETS["ml-100k"]
    assert original.archive is not None
    checksum = hashlib.sha256(content).hexdigest()
    return replace(
        original,
        shape=(2, 2),
        n_ratings=3,
        sha256=hashlib.sha256(DATA).hexdigest(),
        archive=replace(original.archive, url=f"{base}/ml-100k.zip", sha256=checksum, n_bytes=len(content)),
    )


def archive_like_the_original(path: Path) -> bytes:
    listing = DATASETS["ml-100k"].archive
    assert isinstance(listing, Archive)
    special = {"u.data": DATA, "u.item": TITLES}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-100k/", b"")
        for name in (*listing.others, *listing.wanted):
            archive.writestr(f"ml-100k/{name}", special.get(name, b"something"))
    return path.read_bytes()


def put(folder: Path, data: bytes = DATA) -> Path:
    folder.mkdir(parents=True)
    (folder / "u.data").write_bytes(data)
    (folder / "u.item").write_bytes(TITLES)
    return folder


def test_the_bundled_ratings_need_nothing() -> None:
    ratings = gf.load("movietweetings")
    assert ratings.shape == (1_238, 1_191)
    assert ratings.n_ratings == 45_027
    assert ratings.scale == gf.Scale(0, 10)
    assert ratings.scale.declared
    assert len(ratings.titles) == 1_191
    assert ratings.title("0068646") == "The Godfather (1972)"


def test_an_archive_is_downloaded_unpacked_and_read(tmp_path: Path) -> None:
    content = archive_like_the_original(tmp_path / "made.zip")
    manners = Manners(content)
    with served(manners) as base:
        dataset = tiny(base, content)
        folder = find_dataset(dataset, named=tmp_path, cache=tmp_path / "cache")
        ratings = load_dataset(dataset, folder)
        assert find_dataset(dataset, named=tmp_path, cache=tmp_path / "cache") == folder
    assert folder == tmp_path / "cache" / "ml-100k"
    assert len(manners.asked) == 1
    assert ratings.n_ratings == 3
    assert ratings.titles == {10: "Café (1995)", 20: "Other"}
    assert sorted(path.name for path in folder.iterdir()) == ["README", "u.data", "u.item"]


def test_an_archive_put_there_by_hand_is_enough(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    content = archive_like_the_original(cache / "ml-100k.zip")
    folder = find_dataset(tiny(content=content), named=tmp_path, cache=cache, timeout=0.1)
    assert (folder / "u.data").read_bytes() == DATA


def test_an_archive_with_more_in_it_is_refused(tmp_path: Path) -> None:
    archive_like_the_original(tmp_path / "made.zip")
    with zipfile.ZipFile(tmp_path / "made.zip", "a") as archive:
        archive.writestr("../../.bashrc", b"evil")
    content = (tmp_path / "made.zip").read_bytes()
    with served(Manners(content)) as base, pytest.raises(FileProblem, match="nothing but the files of the data set"):
        find_dataset(tiny(base, content), named=tmp_path, cache=tmp_path / "cache")
    assert not (tmp_path / "cache" / "ml-100k").exists()


def test_the_named_folder_comes_before_the_cache(tmp_path: Path) -> None:
    named, cache = tmp_path / "named", tmp_path / "cache"
    in_cache = put(cache / "ml-100k")
    named.mkdir()
    assert find_dataset(tiny(), named=named, cache=cache) == in_cache
    in_named = put(named / "ml-100k")
    assert find_dataset(tiny(), named=named, cache=cache) == in_named


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "ml-100k")
    monkeypatch.setenv("GOODFENCE_DATA", str(tmp_path))
    assert find_dataset(tiny()) == folder
    monkeypatch.setenv("GOODFENCE_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileProblem, match="GOODFENCE_DATA must name a folder"):
        find_dataset(tiny())
    assert gf.load("movietweetings").n_ratings == 45_027, "bundled ratings need no folder"


def test_no_network_says_which_file_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DownloadProblem) as caught:
        find_dataset(tiny(), named=tmp_path, cache=tmp_path / "cache", timeout=0.5)
    assert f"get ml-100k.zip elsewhere and put it into {tmp_path / 'cache'}" in str(caught.value)


@pytest.mark.parametrize("name", ["douban-movie", "netflix-tenth", "goodbooks"])
def test_what_cannot_be_fetched_says_which_file_to_put_where(tmp_path: Path, name: str) -> None:
    with pytest.raises(DownloadProblem) as caught:
        find_dataset(DATASETS[name], named=tmp_path, cache=tmp_path / "cache")
    assert f"put ratings.parquet into {tmp_path / name}" in str(caught.value)


def test_a_changed_file_is_not_the_data_set(tmp_path: Path) -> None:
    folder = put(tmp_path / "ml-100k", DATA.replace(b"\t5\t", b"\t1\t"))
    with pytest.raises(FileProblem, match="checksum differs"):
        load_dataset(tiny(), folder)


def test_a_data_set_of_another_size_is_not_the_one(tmp_path: Path) -> None:
    folder = put(tmp_path / "ml-100k")
    with pytest.raises(FileProblem, match=r"must be ml-100k with 2 users, 2 items and 4 ratings"):
        load_dataset(replace(tiny(), n_ratings=4), folder)
    with pytest.raises(FileProblem, match=r"must hold u\.data"):
        load_dataset(tiny(), tmp_path)


def test_the_second_form_of_a_file_is_taken_where_the_first_is_not(tmp_path: Path) -> None:
    dataset = replace(tiny(), files=("ratings.dat", "ratings.csv"))
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,10,5\n1,20,3\n2,10,4\n")
    assert load_dataset(dataset, tmp_path).n_ratings == 3
    (tmp_path / "ratings.dat").write_text("1::10::2::9\n1::20::3::9\n2::10::4::9\n")
    dataset = replace(dataset, sha256=None)
    assert load_dataset(dataset, tmp_path).csr[0, 0] == 2


def test_declared_duplicates_are_resolved_with_a_warning(tmp_path: Path) -> None:
    lines = "user,item,rating\n1,10,5\n1,20,3\n2,10,4\n1,10,1\n"
    dataset = replace(tiny(), files=("ratings.csv",), sha256=None, duplicates="last")
    (tmp_path / "ratings.csv").write_text(lines)
    with pytest.warns(GoodfenceWarning, match="1 rating"):
        ratings = load_dataset(dataset, tmp_path)
    assert ratings.csr[0, 0] == 1
    with pytest.warns(GoodfenceWarning):
        assert load_dataset(dataset, tmp_path, ReadOptions(duplicates="first")).csr[0, 0] == 5
    with pytest.raises(DuplicateProblem):
        load_dataset(dataset, tmp_path, ReadOptions(duplicates="error"))


def test_no_titles_are_no_error_and_broken_ones_are(tmp_path: Path) -> None:
    folder = put(tmp_path / "ml-100k")
    (folder / "u.item").write_bytes(b"10\n")
    with pytest.raises(FileProblem, match="an id and a title in each line"):
        load_dataset(tiny(), folder)
    (folder / "u.item").unlink()
    assert load_dataset(tiny(), folder).titles == {}


@pytest.mark.parametrize(
    ("name", "meant"), [("ml100k", "ml-100k"), ("ML-1M", "ml-1m"), ("movietweeting", "movietweetings")]
)
def test_a_mistyped_name_is_told_the_right_one(name: str, meant: str) -> None:
    with pytest.raises(UnknownDataset, match=f"did you mean '{meant}'"):
        gf.load(name)


def test_a_name_like_no_other_is_told_them_all() -> None:
    with pytest.raises(UnknownDataset, match=r"one of movietweetings.*goodbooks, got 'qqq'$"):
        gf.load("qqq")


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5_000])
def test_what_cannot_be_a_name_at_all_is_refused(name: str) -> None:
    with pytest.raises(DataError):
        gf.load(name)


def test_a_path_is_read_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.csv").write_text("user,item,rating\nann,x,2\nbob,x,4\n")
    ratings = gf.load(tmp_path / "mine.csv", scale=(1, 5))
    assert ratings.users.tolist() == ["ann", "bob"]
    assert gf.load(str(tmp_path / "mine.csv"), user="user").n_ratings == 2
    monkeypatch.chdir(tmp_path)
    assert gf.load("mine.csv").n_ratings == 2
    with pytest.raises(DataError, match=r"other\.csv"):
        gf.load("other.csv")


def test_a_name_comes_before_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "movietweetings").write_text("user,item,rating\nann,x,2\n")
    monkeypatch.chdir(tmp_path)
    assert gf.load("movietweetings").n_ratings == 45_027


@pytest.mark.parametrize("setting", ["user", "item", "rating"])
def test_a_named_data_set_states_its_own_columns(setting: str) -> None:
    with pytest.raises(SettingError, match=f"{setting} must be left out"):
        gf.load("movietweetings", read=ReadOptions(**{setting: "x"}))  # type: ignore[arg-type] # by name
    with pytest.raises(SettingError, match="scale must be left out"):
        gf.load("movietweetings", scale=(0, 10))


def test_the_cache_is_where_the_platform_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ann"))
    assert cache_folder({}, "linux") == Path("/home/ann/.cache/goodfence")
    assert cache_folder({"XDG_CACHE_HOME": "/c"}, "linux") == Path("/c/goodfence")
    assert cache_folder({"XDG_CACHE_HOME": "not/absolute"}, "linux") == cache_folder({}, "linux")
    assert cache_folder({}, "darwin") == Path("/home/ann/Library/Caches/goodfence")
    assert cache_folder({}, "win32") == Path("/home/ann/AppData/Local/goodfence/Cache")
    assert cache_folder({"LOCALAPPDATA": "/l"}, "win32") == Path("/l/goodfence/Cache")


def test_no_variable_names_no_folder() -> None:
    assert named_folder({}) is None
    assert named_folder({"GOODFENCE_DATA": ""}) is None


def test_every_entry_is_complete() -> None:
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.scale.declared
        assert dataset.licence
        assert dataset.source
        if dataset.archive is not None:
            assert dataset.archive.wanted[-1] == dataset.files[0], "the ratings are unpacked last"


def test_a_list_of_items_is_taken_with_a_name_and_with_a_file(tmp_path: Path) -> None:
    films = gf.load("movietweetings")
    listed = ["0000000 not a film", *films.items[::-1]]
    laid = gf.load("movietweetings", items=listed)
    assert laid.items.tolist() == listed
    assert laid.n_ratings == films.n_ratings
    assert laid.title("0068646") == "The Godfather (1972)"
    assert (laid.csr.toarray()[:, :0:-1] == films.csr.toarray()).all()
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n7,a,4\n8,c,1\n", encoding="utf-8")
    assert gf.load(path, scale=(1, 5), items=list("abc")).shape == (2, 3)
    with pytest.raises(DataError, match="every item that was rated"):
        gf.load(path, scale=(1, 5), items=list("ab"))


def test_titles_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    known = TitleFile(name="u.item", separator="|", encoding="latin-1")
    assert known.read(tmp_path, [10, 20]) == {}
    (tmp_path / "u.item").write_bytes(TITLES)
    assert known.read(tmp_path, [10, 40]) == {10: "Caf\xe9 (1995)"}


@pytest.mark.parametrize(
    ("name", "scale", "duplicates", "fetched", "bundled"),
    [
        ("movietweetings", (0, 10, 1), "error", False, True),
        ("movietweetings-full", (0, 10, 1), "error", False, False),
        ("ml-100k", (1, 5, 1), "error", True, False),
        ("ml-1m", (1, 5, 1), "error", True, False),
        ("douban-movie", (1, 5, 1), "error", False, False),
        ("netflix-tenth", (1, 5, 1), "error", False, False),
        ("goodbooks", (1, 5, 1), "last", False, False),  # its first edition has 2,278 pairs twice
    ],
)
def test_the_catalogue_states_what_the_publishers_do(
    name: str, scale: tuple[float, ...], duplicates: str, fetched: bool, bundled: bool
) -> None:
    entry = DATASETS[name]
    assert (entry.scale.lowest, entry.scale.highest, entry.scale.step) == scale
    assert entry.scale.declared
    assert entry.duplicates == duplicates
    assert (entry.archive is not None, entry.bundled) == (fetched, bundled)


def test_a_server_counts_as_gone_after_the_time_that_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = archive_like_the_original(tmp_path / "made.zip")
    waited = []

    def fetched(archive: Archive, folder: Path, *, timeout: float = 30.0) -> Path:
        waited.append(timeout)
        return tmp_path / "made.zip"

    monkeypatch.setattr(catalogue, "download", fetched)
    dataset = tiny("http://nowhere", content)
    find_dataset(dataset, named=tmp_path, cache=tmp_path / "cache", timeout=3.5)
    assert waited == [3.5]
