"""Files that a process has claimed stay until it ends, and are then removed by other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perftrail.file_tree import claimed_directory, claimed_file, remove_left_over

HOLDER = """\
import sys
from pathlib import Path
from perftrail.file_tree import claimed_directory
with claimed_directory("claim-", below=Path(sys.argv[1])) as path:
    (path / "inside").mkdir()
    print(path, flush=True)
    sys.stdin.read()
"""

CLAIMING = """\
import sys
from pathlib import Path
from perftrail.file_tree import claimed_directory, claimed_file
for number in range(400):
    make = claimed_file if number % 2 else claimed_directory
    with make("claim-", below=Path(sys.argv[1])) as path:
        for _ in range(20):
            assert path.exists(), f"{path} was taken from its owner"
"""


def test_what_is_claimed_goes_with_its_context(tmp_path: Path) -> None:
    with (
        claimed_directory("claim-", below=tmp_path) as directory,
        claimed_file("claim-", below=tmp_path) as file,
    ):
        (directory / "inside").touch()
        assert remove_left_over("claim-", below=tmp_path) == ()
        assert {directory, file} == set(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_claimed_is_removed_and_only_then(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        path = Path(holder.stdout.readline().strip())
        assert remove_left_over("claim-", below=tmp_path) == ()
        assert path.is_dir()
        holder.kill()
    assert path.is_dir()
    assert remove_left_over("claim-", below=tmp_path) == (path,)
    assert not path.exists()


def test_files_that_another_process_is_writing_are_not_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", CLAIMING, str(tmp_path)]) as owner:
        while owner.poll() is None:
            remove_left_over("claim-", below=tmp_path)
    assert owner.returncode == 0
    assert not list(tmp_path.iterdir())


def test_links_and_pipes_in_a_shared_directory_are_no_trap(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "claim-link").symlink_to(tmp_path / "kept")
    subprocess.run(["mkfifo", shared / "claim-pipe"], check=True)
    (shared / "another").touch()
    assert remove_left_over("claim-", below=shared) == (shared / "claim-pipe",)
    assert (tmp_path / "kept").is_dir()
    assert sorted(path.name for path in shared.iterdir()) == ["another", "claim-link"]


def test_what_another_user_left_is_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "claim-theirs").mkdir()
    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert remove_left_over("claim-", below=tmp_path) == ()
    assert (tmp_path / "claim-theirs").is_dir()
