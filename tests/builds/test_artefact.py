"""The properties of an artefact that determine its name."""

from __future__ import annotations

import os
import struct
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from perftrail.builds import artefact
from perftrail.builds.artefact import content_of, content_of_input, outermost, without_debug_information


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


def test_times_and_files_of_git_do_not_count(tree: Path) -> None:
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
def test_debug_information_of_an_object_does_not_count(tmp_path: Path, kind: list[str]) -> None:
    one = compiled(tmp_path / "one", PROGRAM, *kind)
    moved = compiled(tmp_path / "another-directory", f"/* a comment */\n\n{PROGRAM}", *kind)
    other = compiled(tmp_path / "other", PROGRAM.replace("= 1", "= 2"), *kind)
    assert one != moved
    assert without_debug_information(one) == without_debug_information(moved)
    assert without_debug_information(one) != without_debug_information(other)


def test_data_appended_to_a_program_counts(tmp_path: Path) -> None:
    program = compiled(tmp_path / "one", PROGRAM, "-g")
    assert without_debug_information(program + b"PK data") != without_debug_information(program + b"PK other")


@pytest.mark.parametrize("cut", [5, 17, 60, 100, 800])
@pytest.mark.parametrize("magic", [b"\x7fELF\x02\x01", b"\x7fELF\x01\x02", b"!<arch>\n"])
def test_invalid_objects_count_byte_by_byte(magic: bytes, cut: int) -> None:
    nonsense = (magic + bytes(range(256)) * 4)[:cut]
    assert without_debug_information(nonsense) == nonsense


def object_with_names(name: bytes, sections: int) -> bytes:
    """An object file whose sections all share one name."""
    texts = b"\0" + name + b"\0"
    table = 64 + len(texts)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, sections + 1, 0)
    first = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(texts), 0, 0, 1, 0)
    return header + texts + first + struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64, 0, 0, 0, 1, 0) * sections


@pytest.mark.parametrize(("name", "sections"), [(b"n" * 1_000_000, 300), (b"n" * 4000, 60_000)])
def test_a_hostile_object_costs_little_more_than_its_size(name: bytes, sections: int) -> None:
    content = object_with_names(name, sections)
    tracemalloc.start()
    try:
        assert without_debug_information(content) == content
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60e6
    assert without_debug_information(object_with_names(b".text", 3)) != object_with_names(b".text", 3)


def test_a_large_file_is_hashed_in_overlapping_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_bytes(b"x" * 70 + b"thekey" + b"y" * 60)
    whole = content_of(tmp_path, None, keys=["thekey"])
    monkeypatch.setattr(artefact, "LARGEST_PARSED_BYTES", 10)
    monkeypatch.setattr(artefact, "_PIECE_BYTES", 8)
    assert content_of(tmp_path, None, keys=["thekey"]) == whole
    assert whole.names_build
    assert not content_of(tmp_path, None, keys=["nokey"]).names_build


@pytest.mark.parametrize("wide", [False, True])
def test_an_object_whose_section_table_is_out_of_reach_counts_as_it_is(wide: bool) -> None:
    header = bytearray(64)
    header[:6] = b"\x7fELF" + bytes([2 if wide else 1, 1])
    struct.pack_into("<Q" if wide else "<I", header, 40 if wide else 32, (1 << (64 if wide else 32)) - 1)
    struct.pack_into("<HHH", header, 58 if wide else 46, 64, 3, 0)
    assert without_debug_information(bytes(header)) == header
    assert artefact.loader_texts(bytes(header)) == header


@pytest.mark.parametrize("settled_ns", [2_000_000_000, -1_000_000_000_000])
def test_another_content_with_the_size_and_date_of_before_is_another_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled_ns: int
) -> None:
    """Also for a file that changed long ago."""
    monkeypatch.setattr(artefact, "_SETTLED_NS", settled_ns)
    file, directory = tmp_path / "inputs" / "file", tmp_path / "inputs"
    directory.mkdir()
    file.write_text("1")
    before = content_of_input(file), content_of_input(directory)
    date = file.stat().st_mtime_ns
    (tmp_path / "new").write_text("2")
    (tmp_path / "new").replace(file)
    os.utime(file, ns=(date, date))
    after = content_of_input(file), content_of_input(directory)
    assert not set(before) & set(after)
    assert content_of_input(tmp_path / "missing") == "missing"


def test_a_directory_includes_the_paths_below_it_except_links_and_excluded_files(tree: Path) -> None:
    (tree / "unix" / "link").symlink_to("../doc")
    (tree / "unix" / ".git").mkdir()
    names = (
        "unix",
        "unix/sub",
        "unix/sub/libtcl9.a",
        "unix/missing",
        "doc/x.txt",
        "unix/link/x.txt",
        "unix/.git",
    )
    assert outermost([str(tree / name) for name in names]) == [
        str(tree / name) for name in ("unix", "doc/x.txt", "unix/link/x.txt", "unix/.git")
    ]


def test_an_input_that_did_not_change_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefact, "_SETTLED_NS", -1_000_000_000_000)
    (tmp_path / "file").write_text("1")
    misses = artefact._content_in_state.cache_info().misses
    assert content_of_input(tmp_path / "file") == content_of_input(tmp_path / "file")
    assert artefact._content_in_state.cache_info().misses == misses + 1
