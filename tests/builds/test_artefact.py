"""What an artefact's name depends on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.builds.artefact import content_of, without_debug_information


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    libraries = ("unix/libtcl8.a", "unix/libtcl8.so", "unix/sub/libtcl9.a")
    for name in (*libraries, "doc/x.txt", ".hidden/y", "a[1].txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    return tree


@pytest.mark.parametrize(
    ("globs", "files"),
    [
        (["unix/libtcl*.a"], 1),
        (["unix/libtcl?.*"], 2),
        (["**/*.a"], 2),
        (["unix"], 3),
        (["./unix/"], 3),
        (["unix/**"], 3),
        (["*"], 5),
        (["**"], 6),
        ([".hidden/*"], 1),
        (["unix/libtcl[!0-7].a", "doc/*"], 2),
        (["a[[]1].txt"], 1),
        (["unix/*.dll"], 0),
        (["nix/libtcl8.a"], 0),
        (["../tree/doc/*"], 0),
    ],
)
def test_globs_choose_files(tree: Path, globs: list[str], files: int) -> None:
    assert content_of(tree, globs, keys=()).files == files


def test_names_contents_and_the_executable_bit_count(tree: Path) -> None:
    seen = {content_of(tree, None, keys=()).digest}
    (tree / "doc" / "x.txt").write_text("other")
    seen.add(content_of(tree, None, keys=()).digest)
    (tree / "doc" / "x.txt").chmod(0o755)
    seen.add(content_of(tree, None, keys=()).digest)
    (tree / "doc" / "x.txt").rename(tree / "doc" / "z.txt")
    seen.add(content_of(tree, None, keys=()).digest)
    assert len(seen) == 4


def test_times_and_what_ties_a_tree_to_its_mirror_do_not_count(tree: Path) -> None:
    before = content_of(tree, ["**"], keys=()).digest
    (tree / ".git").write_text("gitdir: elsewhere")
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "x.pyc").write_bytes(b"dated")
    (tree / "doc" / "x.txt").touch()
    assert content_of(tree, ["**"], keys=()).digest == before


def test_links_count_by_their_targets_and_are_never_followed(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("one")
    (tree / "out").symlink_to(outside)
    (tree / "file").symlink_to(outside / "secret")
    before = content_of(tree, ["**"], keys=())
    (outside / "secret").write_text("two")
    assert content_of(tree, ["**"], keys=()) == before
    assert before.files == 8
    (tree / "file").unlink()
    (tree / "file").symlink_to(outside)
    assert content_of(tree, ["**"], keys=()).digest != before.digest


PROGRAM = "int shown = 1; int main(void) { return shown; }"


def compiled(directory: Path, text: str, *options: str) -> bytes:
    directory.mkdir()
    (directory / "a.c").write_text(text)
    subprocess.run(["cc", *options, "-o", "a", "a.c"], cwd=directory, check=True)
    if "-c" in options:
        subprocess.run(["ar", "cr", "a.a", "a"], cwd=directory, check=True)
        return (directory / "a.a").read_bytes()
    return (directory / "a").read_bytes()


@pytest.mark.parametrize(
    "kind", [["-g"], ["-g", "-c"], ["-g3", "-O2", "-fPIC", "-shared"], ["-gz", "-g", "-c"]]
)
def test_only_what_matters_when_it_runs_is_left_of_an_object(tmp_path: Path, kind: list[str]) -> None:
    one = compiled(tmp_path / "one", PROGRAM, *kind)
    moved = compiled(tmp_path / "another-directory", f"/* a comment */\n\n{PROGRAM}", *kind)
    other = compiled(tmp_path / "other", PROGRAM.replace("= 1", "= 2"), *kind)
    assert one != moved
    assert without_debug_information(one) == without_debug_information(moved)
    assert without_debug_information(one) != without_debug_information(other)


def test_what_is_appended_to_a_program_counts(tmp_path: Path) -> None:
    program = compiled(tmp_path / "one", PROGRAM, "-g")
    assert without_debug_information(program + b"PK data") != without_debug_information(program + b"PK other")


@pytest.mark.parametrize("cut", [5, 17, 60, 100, 800])
@pytest.mark.parametrize("magic", [b"\x7fELF\x02\x01", b"\x7fELF\x01\x02", b"!<arch>\n"])
def test_objects_that_make_no_sense_are_taken_as_they_are(magic: bytes, cut: int) -> None:
    nonsense = (magic + bytes(range(256)) * 4)[:cut]
    assert without_debug_information(nonsense) == nonsense
