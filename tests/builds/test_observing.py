"""Which files a build uses, observed with the real strace on real builds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perftrail.builds.observing import observer, observing_words, read_trace
from perftrail.model.reads import BuildReads
from tests.needs import needs

STRACE = observer()
PYTHON = f"{sys.executable} -IS"
"""A Python that starts quickly: no script of a version manager, and no packages."""

pytestmark = needs("strace")


def observe(tree: Path, script: str) -> BuildReads:
    """Run a shell script in a tree and return what it used."""
    assert STRACE is not None
    trace = tree.with_name("trace")
    done = subprocess.run(
        [*observing_words(STRACE, trace), "/bin/sh", "-eu", "-c", script.replace("python3", PYTHON)],
        cwd=tree,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return read_trace(trace, tree=tree, directory=tree)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "main.c": '#include "used.h"\nint main(void) { return USED; }\n',
        "include/used.h": "#define USED 0\n",
        "include/unused.h": "#define UNUSED 0\n",
        "Makefile": "main: main.c\n\tgcc -Iother -Iinclude -o main main.c\n",
        "ChangeLog": "1\n",
        "docs/a.txt": "a\n",
        "sub/b.txt": "b\n",
        'odd "name\n\\é': "odd\n",
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def test_a_compiler_reads_sources_and_headers_and_nothing_else(tree: Path) -> None:
    reads = observe(tree, "make")
    assert reads.incomplete == ""
    assert {"main.c", "include/used.h", "Makefile"} <= reads.opened
    files = ["main.c", "include/used.h", "include/unused.h", "Makefile", "ChangeLog", "docs/a.txt"]
    assert reads.unread(files) == {"include/unused.h", "ChangeLog", "docs/a.txt"}
    # A new header in a directory that is searched first would be used instead.
    assert {"used.h", "other"} & reads.looked_up


def test_existence_names_and_content_are_distinguished(tree: Path) -> None:
    reads = observe(tree, "test -f ChangeLog; ls docs > list; cat sub/b.txt > /dev/null; test ! -e missing")
    assert reads.incomplete == ""
    assert "sub/b.txt" in reads.opened
    assert {"ChangeLog", "missing"} <= reads.looked_up
    assert "docs" in reads.listed
    assert not {"ChangeLog", "docs/a.txt", "docs"} & reads.opened


@pytest.mark.parametrize(
    "script",
    [
        "cd sub && cat b.txt",
        "(cd sub; python3 -c 'open(\"b.txt\").read()')",
        "mv sub moved && cat moved/b.txt",
        "ln -s sub link && cat link/b.txt",
        "ln -s $PWD/sub/b.txt ../outside && cat ../outside; rm ../outside",
        "cp -r sub copy",
        "tar cf ../archive.tar sub",
        'python3 -c \'import os; os.chdir("sub"); os.fork() or open("b.txt").read()\'',
        'python3 -c \'import os; os.chdir("sub"); os.fork() or os.rename("b.txt", "c.txt")\'',
        "cat docs/../sub/./b.txt",
        "chmod +x sub/b.txt; echo 'echo 1' > sub/b.txt; sh sub/b.txt",
    ],
)
def test_every_way_to_read_a_file_is_seen(tree: Path, script: str) -> None:
    assert observe(tree, script).unread(["sub/b.txt", "docs/a.txt"]) == {"docs/a.txt"}


def test_a_program_that_would_use_io_uring_reads_with_plain_calls(tree: Path) -> None:
    asks = "import ctypes; assert ctypes.CDLL(None).syscall(425, 8, 0) == -1; open('sub/b.txt').read()"
    reads = observe(tree, f'python3 -c "{asks}"')
    assert reads.incomplete == ""
    assert "sub/b.txt" in reads.opened


def test_names_are_read_as_they_are(tree: Path) -> None:
    name = 'odd "name\n\\é'
    assert name in observe(tree, "cat odd*").opened


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("git init -q . && git config user.name x", "git's data"),
        (
            'python3 -c \'import socket; s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(); '
            'socket.socket(socket.AF_UNIX).connect("s")\'',
            "another process",
        ),
        (
            'python3 -c \'import socket; s = socket.create_server(("127.0.0.1", 0)); '
            "socket.create_connection(s.getsockname())'",
            "another process",
        ),
        ("cat /proc/self/cwd/ChangeLog", "/proc/self/cwd"),
    ],
)
def test_what_strace_cannot_see_makes_an_observation_incomplete(tree: Path, script: str, why: str) -> None:
    reads = observe(tree, script)
    assert why in reads.incomplete
    assert reads.unread(["docs/a.txt"]) == frozenset()


def test_an_empty_trace_is_incomplete(tmp_path: Path) -> None:
    (tmp_path / "trace").touch()
    assert read_trace(tmp_path / "trace", tree=tmp_path, directory=tmp_path).incomplete
