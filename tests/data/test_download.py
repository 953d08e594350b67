"""Downloads against a real server: good, cut off, refused, never half there."""

from __future__ import annotations

import hashlib
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from goodfence.data.catalogue import DATASETS, Archive, download
from goodfence.errors import DownloadProblem, SettingError
from tests.support.web import Manners, served

CONTENT = bytes(range(256)) * 1024  # 256 KiB, several chunks
NAME = "ratings.zip"


def remote(base: str, content: bytes = CONTENT) -> Archive:
    checksum = hashlib.sha256(content).hexdigest()
    return Archive(url=f"{base}/some/{NAME}", sha256=checksum, n_bytes=len(content))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_good_download_is_the_file_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"
    with served(Manners(CONTENT)) as base:
        path = download(remote(base), folder)
    assert path == folder / NAME
    assert path.read_bytes() == CONTENT
    assert names_in(folder) == [NAME]


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(CONTENT)
    manners = Manners(CONTENT)
    with served(manners) as base:
        assert download(remote(base), tmp_path) == tmp_path / NAME
    assert manners.asked == []


def test_a_wrong_file_put_there_by_hand_is_refused_and_left(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(CONTENT[:-1])
    with served(Manners(CONTENT)) as base, pytest.raises(DownloadProblem, match=r"wrong checksum; remove it"):
        download(remote(base), tmp_path)
    assert names_in(tmp_path) == [NAME]


def test_two_downloads_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    with served(Manners(CONTENT, delay=0.05)) as base, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(download, remote(base), tmp_path) for _ in range(4)]
        assert all(answer.result().read_bytes() == CONTENT for answer in asked)
    assert names_in(tmp_path) == [NAME]


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path) -> None:
    changed = b"x" + CONTENT[1:]
    with served(Manners(changed)) as base, pytest.raises(DownloadProblem, match="wrong checksum and was removed"):
        download(remote(base), tmp_path)
    assert names_in(tmp_path) == []


def test_an_interrupted_download_leaves_nothing_and_starts_again(tmp_path: Path) -> None:
    manners = Manners(CONTENT, stop_after=100_000)
    with served(manners) as base:
        with pytest.raises(DownloadProblem, match=r"interrupted after 100,000 of 262,144 bytes"):
            download(remote(base), tmp_path)
        assert names_in(tmp_path) == []
        manners.stop_after = None
        assert download(remote(base), tmp_path).read_bytes() == CONTENT
    assert names_in(tmp_path) == [NAME]


def test_a_shorter_file_on_the_server_is_no_success(tmp_path: Path) -> None:
    with served(Manners(CONTENT[:4000])) as base, pytest.raises(DownloadProblem, match="interrupted after 4,000"):
        download(remote(base), tmp_path)
    assert names_in(tmp_path) == []


def test_more_than_the_file_has_is_not_written(tmp_path: Path) -> None:
    with served(Manners(CONTENT + b"more" * 100_000)) as base:
        assert download(remote(base), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_an_answer_that_is_no_file_says_what_to_put_where(tmp_path: Path, status: int) -> None:
    with served(Manners(CONTENT, status=status)) as base, pytest.raises(DownloadProblem) as caught:
        download(remote(base), tmp_path)
    assert f"answered {status}" in str(caught.value)
    assert f"put it into {tmp_path}" in str(caught.value)
    assert names_in(tmp_path) == []


def test_no_server_says_what_to_put_where(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(DownloadProblem, match=r"ConnectionRefusedError.*put it into"):
        download(remote(base), tmp_path)
    assert names_in(tmp_path) == []


def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    with served(Manners(CONTENT, delay=0.5)) as base, pytest.raises(DownloadProblem, match=r"TimeoutError"):
        download(remote(base), tmp_path, timeout=0.05)
    assert names_in(tmp_path) == []


def test_an_interrupt_before_the_file_is_in_place_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_descriptor: int) -> None:
        raise KeyboardInterrupt

    with served(Manners(CONTENT)) as base:
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", interrupt)
            with pytest.raises(KeyboardInterrupt):
                download(remote(base), tmp_path)
        assert names_in(tmp_path) == []
        assert download(remote(base), tmp_path).read_bytes() == CONTENT


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadProblem, match="must be a folder that can be written to"):
        download(remote("http://127.0.0.1:9"), tmp_path / "file" / "below")


def test_only_addresses_of_the_web_are_taken() -> None:
    with pytest.raises(SettingError, match="url must be an address of the web"):
        remote("file:///etc")


def test_a_bar_is_shown_to_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(Manners(CONTENT)) as base:
        download(remote(base), tmp_path / "quiet")
        assert capsys.readouterr() == ("", "")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        download(remote(base), tmp_path / "shown")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert NAME in captured.err


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with served(Manners(CONTENT)) as base, pytest.raises(DownloadProblem, match=rf"{NAME} is a folder"):
        download(remote(base), tmp_path)
    assert names_in(tmp_path) == [NAME]


def test_every_archive_of_the_catalogue_has_a_checksum_that_nobody_can_forge() -> None:
    archives = [one.archive for one in DATASETS.values() if one.archive is not None]
    assert archives
    assert all(len(bytes.fromhex(one.sha256)) == 32 for one in archives)
