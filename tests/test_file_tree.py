"""Removing foreign files never follows their links."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from perftrail import file_tree
from perftrail.file_tree import (
    MOST_DEPTH,
    NewTree,
    TreeTooDeep,
    create_directory,
    empty_directory,
    entries_below,
    exclusive_lock,
    open_to_read,
    real_path,
    remove_tree,
    write_file,
)
from tests.needs import needs
from tests.starting import REPOSITORY


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir(mode=0o750)
    (path / "kept").touch()
    return path


def test_links_are_removed_and_what_they_lead_to_stays_as_it_is(tmp_path: Path, outside: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "link").symlink_to(outside)
    (tree / "link").symlink_to(outside / "kept")
    (tree / "deep").chmod(0o000)
    remove_tree(tree)
    assert not tree.exists()
    assert (outside / "kept").exists()
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_link_in_the_place_of_a_tree_is_removed_alone(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "tree").symlink_to(outside)
    remove_tree(tmp_path / "tree")
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").exists()
    remove_tree(tmp_path / "tree")


def make_deep(root: Path, levels: int) -> None:
    """Make a tree whose paths are longer than any system call accepts."""
    root.mkdir()
    current = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 100, dir_fd=current)
        os.close(os.open("file", os.O_CREAT, dir_fd=current))
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = below
    os.close(current)


def test_trees_of_any_depth_are_removed(tmp_path: Path) -> None:
    make_deep(tmp_path / "tree", 5000)
    remove_tree(tmp_path / "tree")
    assert not list(tmp_path.iterdir())


def test_trees_are_walked_beyond_the_longest_path_and_refused_beyond_any_use(
    tmp_path: Path, outside: Path
) -> None:
    make_deep(tmp_path / "tree", MOST_DEPTH - 1)
    (tmp_path / "tree" / "link").symlink_to(outside)
    found = list(entries_below(tmp_path / "tree"))
    assert len(found) == 2 * (MOST_DEPTH - 1) + 1
    assert max(len(entry.path) for entry in found) > 4096
    assert [entry.path for entry in found if not entry.is_directory and entry.name == "link"] == ["link"]
    (tmp_path / "link").symlink_to("tree")
    assert len(list(entries_below(tmp_path / "link"))) == len(found)
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    make_deep(tmp_path / "deeper", MOST_DEPTH + 2)
    with pytest.raises(TreeTooDeep, match="more than 500 levels"):
        list(entries_below(tmp_path / "deeper"))
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    for name in ("tree", "deeper"):
        remove_tree(tmp_path / name)


def test_a_directory_is_emptied_but_for_what_must_stay(tmp_path: Path, outside: Path) -> None:
    room = tmp_path / "room"
    for name in ("a/b/kept", "a/b/gone", "a/c"):
        (room / name).mkdir(parents=True)
    (room / "link").symlink_to(outside)
    empty_directory(room, keep=[room / "a" / "b" / "kept"])
    assert sorted(str(path.relative_to(room)) for path in room.rglob("*")) == ["a", "a/b", "a/b/kept"]
    assert (outside / "kept").exists()


def test_a_new_tree_never_follows_a_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "tree").mkdir()
    tree = NewTree(tmp_path / "tree")
    tree.link(["link"], "../outside")
    tree.link(["dangling"], "../planted")
    with tree.file(["sub", "deep", "file"], program=True) as file:
        file.write(b"content")
    tree.hard_link(["sub", "other"], ["sub", "deep", "file"])
    refused = (NotADirectoryError, FileExistsError)
    for name in (["link", "planted"], ["dangling"], ["sub", "deep", "file"]):
        with pytest.raises(refused), tree.file(name, program=False):
            pass
    for name in (["link", "planted"], ["dangling", "planted"]):
        with pytest.raises(refused):
            tree.link(name, "x")
        with pytest.raises(refused):
            tree.directory(name)
        with pytest.raises(refused):
            tree.hard_link(name, ["sub", "deep", "file"])
    with pytest.raises(refused):
        tree.hard_link(["stolen"], ["link", "kept"])
    with pytest.raises(refused):
        tree.remove(["link", "kept"])
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "tree"]
    assert (tmp_path / "tree" / "sub" / "other").read_bytes() == b"content"
    assert (tmp_path / "tree" / "sub" / "deep" / "file").stat().st_mode & 0o777 == 0o755


PUBLISH = """
import sys
import tempfile
from pathlib import Path
from perftrail.file_tree import publish
publish(*map(Path, sys.argv[1:]))
"""


@needs("strace")
def test_content_is_on_the_disk_before_it_has_its_name_and_the_name_before_the_end(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").write_text("content")
    trace = tmp_path / "trace"
    subprocess.run(
        [
            *("strace", "-f", "-e", "trace=syncfs,fsync,rename,renameat,renameat2", "-o", str(trace)),
            *(sys.executable, "-c", PUBLISH, str(tmp_path / "new"), str(tmp_path / "named")),
        ],
        check=True,
    )
    calls = re.findall(r"^\d+ +(syncfs|fsync|rename)\w*\(", trace.read_text(), re.MULTILINE)
    assert calls == ["syncfs", "rename", "fsync"]
    assert (tmp_path / "named" / "file").read_text() == "content"


def test_old_temporary_directories_of_killed_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {
        "left": f"perftrail-tmp-{dead.pid}-a",
        "new": f"perftrail-tmp-{dead.pid}-b",
        "alive": f"perftrail-tmp-{os.getpid()}-c",
        "other": "perftrail-tmp-x-d",
    }
    for name in names.values():
        (tmp_path / name / "deep").mkdir(parents=True)
    (tmp_path / f"perftrail-tmp-{dead.pid}-link").symlink_to(tmp_path / names["other"])
    for name in ("left", "alive", "other"):
        os.utime(tmp_path / names[name], (0, 0))
    file_tree._remove_abandoned.cache_clear()
    with file_tree.temporary_directory() as directory:
        assert directory.is_dir()
        found = {path.name for path in tmp_path.iterdir()} - {directory.name}
    assert found == {names["new"], names["alive"], names["other"], f"perftrail-tmp-{dead.pid}-link"}
    assert not directory.exists()


def test_files_are_written_over_files_but_not_through_links(tmp_path: Path, outside: Path) -> None:
    write_file(tmp_path / "file", "more than that\n")
    write_file(tmp_path / "file", "text\n")
    write_file(tmp_path / "file", b"bytes\n", append=True)
    assert (tmp_path / "file").read_text() == "text\nbytes\n"
    for target in (outside / "kept", outside / "new"):
        link = tmp_path / f"link to {target.name}"
        link.symlink_to(target)
        with pytest.raises(OSError, match="It is a symbolic link"):
            write_file(link, "text")
        with pytest.raises(OSError, match="Too many levels of symbolic links"), exclusive_lock(link):
            pass
    (tmp_path / "directory").symlink_to(outside)
    with pytest.raises(OSError, match="It is a symbolic link"):
        create_directory(tmp_path / "directory")
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_bytes() == b""


def test_a_pipe_without_its_other_end_is_refused_at_once_and_devices_that_a_shell_passes_are_read(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="It is not a regular file"):
        open_to_read(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device or address"):
        write_file(tmp_path / "pipe", "text")
    with pytest.raises(IsADirectoryError):
        open_to_read(tmp_path)
    write_file(Path("/dev/null"), "text")
    reading, writing = os.pipe()
    os.write(writing, b"from a shell")
    os.close(writing)
    try:
        with open_to_read(Path(f"/dev/fd/{reading}")) as file:
            assert file.read() == b"from a shell"
    finally:
        os.close(reading)


def test_a_loop_of_links_has_a_path(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to(tmp_path)
    assert real_path(tmp_path / "link" / "loop") == tmp_path / "loop"


def test_no_module_fails_for_a_loop_of_links() -> None:
    """`Path.resolve` raises `RuntimeError` for one; only the reader of archives expects that."""
    found = [
        path.name for path in (REPOSITORY / "src").rglob("*.py") if ".resolve()" in path.read_text("utf-8")
    ]
    assert found == ["unpacking.py"]
