"""Which files a build uses, observed with the real strace on real builds."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perftrail.builds import artefact, named_files, observing
from perftrail.builds.build_log import Log
from perftrail.builds.observing import (
    OPENING_CALLS,
    Scope,
    observer,
    observing_words,
    read_opened,
    read_trace,
)
from perftrail.builds.steps import ShellSteps
from perftrail.model.reads import BuildReads
from perftrail.process.launcher import Launcher
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
        ("cat /proc/self/cwd/ChangeLog", "/proc/self/cwd"),
    ],
)
def test_what_strace_cannot_see_makes_an_observation_incomplete(tree: Path, script: str, why: str) -> None:
    reads = observe(tree, script)
    assert why in reads.incomplete
    assert reads.unread(["docs/a.txt"]) == frozenset()


OWN_SERVERS = """
import os, socket
unix = socket.socket(socket.AF_UNIX)
unix.bind("own")
unix.listen()
local = socket.create_server(("127.0.0.1", 0))
every = socket.create_server(("", 0))
if os.fork() == 0:
    os.stat("own")
    socket.socket(socket.AF_UNIX).connect("own")
    socket.create_connection(local.getsockname())
    socket.create_connection(("127.0.0.1", every.getsockname()[1]))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""


def test_a_build_may_ask_servers_that_it_started(tree: Path) -> None:
    tree.with_name("servers.py").write_text(OWN_SERVERS)
    assert observe(tree, "python3 ../servers.py").incomplete == ""


def test_a_build_that_asks_a_server_that_it_did_not_start_is_incomplete(tree: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        assert (
            f"another process at 127.0.0.1 port {port}" in observe(tree, f'python3 -c "{script}"').incomplete
        )


IPV4 = '{{sa_family=AF_INET, sin_port=htons({1}), sin_addr=inet_addr("{0}")}}'
IPV6 = (
    '{{sa_family=AF_INET6, sin6_port=htons({1}), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "{0}", &sin6_addr), '
    "sin6_scope_id=0}}"
)
LISTENS_AT_1 = f"""\
1 bind(3<socket:[5]>, {IPV4.format("0.0.0.0", 0)}, 16) = 0
1 listen(3<socket:[5]>, 5) = 0
1 getsockname(3<socket:[5]>, {IPV4.format("0.0.0.0", 1)}, [16]) = 0
"""


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (f"connect(4<socket:[7]>, {IPV6.format('::ffff:127.0.0.1', 1)}, 28) = 0", ""),
        (f"connect(4<socket:[7]>, {IPV6.format('::ffff:127.0.0.1', 2)}, 28) = 0", "127.0.0.1 port 2"),
        (f"connect(4<socket:[7]>, {IPV6.format('::1', 2)}, 28) = -1 EINPROGRESS (now)", "::1 port 2"),
        (f"connect(4<socket:[7]>, {IPV4.format('0.0.0.0', 2)}, 16) = 0", "0.0.0.0 port 2"),
        (f"connect(4<socket:[7]>, {IPV4.format('192.0.2.1', 1)}, 16) = 0", "192.0.2.1 port 1"),
        (f"connect(4<socket:[7]>, {IPV4.format('127.0.0.1', 2)}, 16) = -1 ECONNREFUSED (refused)", ""),
        (f'sendto(4<socket:[7]>, "a", 1, 0, {IPV4.format("127.0.0.1", 2)}, 16) = 1', "127.0.0.1 port 2"),
        (f"sendmsg(4<socket:[7]>, {{msg_name={IPV4.format('127.0.0.1', 2)}, msg_iov=[]}}, 0) = 1", "127.0.0.1 port 2"),
        ('sendto(4<socket:[7]>, "a", 1, MSG_NOSIGNAL, NULL, 0) = 1', ""),
        ('connect(4<socket:[7]>, {sa_family=AF_UNIX, sun_path=@"daemon"}, 9) = 0', "@daemon"),
        ('connect(4<socket:[7]>, {sa_family=AF_UNIX, sun_path="/run/daemon"}, 9) = 0', "/run/daemon"),
        ('connect(4<socket:[7]>, {sa_family=AF_UNIX, sun_path="/run/systemd/userdb/io.names"}, 9) = 0', ""),
        ("sendto(4<socket:[7]>, [], 20, 0, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 20", ""),
    ],
)  # fmt: skip
def test_whom_a_build_asks_is_read_from_every_kind_of_call(tmp_path: Path, call: str, asked: str) -> None:
    trace = tmp_path / "trace"
    trace.write_text(f"{LISTENS_AT_1}2 {call}\n")
    incomplete = read_trace(trace, tree=tmp_path, directory=tmp_path).incomplete
    assert f"another process at {asked}," in incomplete if asked else incomplete == ""
    assert ("pin what it downloads" in incomplete) == asked.startswith("192")


def test_observing_does_not_wait_for_daemons(tree: Path) -> None:
    assert STRACE is not None
    trace = tree.with_name("trace")
    steps = ShellSteps(
        lines=["sleep 300 & cat sub/b.txt"],
        directory=tree,
        environment={"PATH": os.environ["PATH"]},
        timeout_seconds=20.0,
        prefix=observing_words(STRACE, trace),
    )
    with Launcher() as starter:
        assert steps.run(starter, Log(path=tree.with_name("log"))) == ""
    reads = read_trace(trace, tree=tree, directory=tree)
    assert reads.incomplete == ""
    assert "sub/b.txt" in reads.opened


def test_an_empty_trace_is_incomplete(tmp_path: Path) -> None:
    (tmp_path / "trace").touch()
    assert read_trace(tmp_path / "trace", tree=tmp_path, directory=tmp_path).incomplete


@pytest.fixture
def outside(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory outside of the study, with a script that starts another one and opens files."""
    monkeypatch.setattr(named_files, "temporary_directories", tuple)
    directory = tree.with_name("outside")
    directory.mkdir()
    (directory / "interpreter").symlink_to("/bin/sh")
    (directory / "script").write_text(f"#!{directory}/interpreter\n{directory}/started $1\n")
    (directory / "started").write_text('#!/bin/sh\ncat "$1"\n')
    for name in ("script", "started"):
        (directory / name).chmod(0o755)
    return directory


def opened(tree: Path, script: str, *ignored: Path) -> BuildReads:
    """Run a shell script in a tree, which is a study, and return the files that it opens."""
    assert STRACE is not None
    trace, since = tree.with_name("trace"), time.time_ns()
    words = observing_words(STRACE, trace, calls=OPENING_CALLS)
    subprocess.run([*words, "/bin/sh", "-eu", "-c", script], cwd=tree, capture_output=True, check=True)
    scope = Scope(study=tree, ignored=ignored, since_ns=since)
    return read_opened(trace, directory=tree, scope=scope, traced="the benchmark")


def test_programs_of_scripts_their_interpreters_and_libraries_are_opened_files(
    tree: Path, outside: Path
) -> None:
    (outside / "data").write_text("1")
    time.sleep(0.05)  # a file that is younger than the observation is a result
    reads = opened(tree, f"{outside}/script {outside}/data; cat sub/b.txt")
    assert reads.incomplete == ""
    names = set(reads.outside)
    assert {str(outside / name) for name in ("script", "started", "interpreter", "data")} <= names
    assert "sub/b.txt" in names  # below the study: by its relative name
    assert any("/libc.so" in name or "/ld-musl" in name for name in names)
    assert opened(tree, f"cat {outside}/data", outside).outside.keys().isdisjoint({str(outside / "data")})


def test_a_file_that_was_not_found_is_an_input_without_content(tree: Path, outside: Path) -> None:
    """A header, a library or settings in an earlier directory would be found instead."""
    (tree / "main.c").write_text('#include "used.h"\nint main(void) { return USED; }\n')
    compile_ = f"gcc -I{outside} -Iinclude -fsyntax-only main.c"
    written = f"cat {outside}/created || echo 1 > {outside}/created; cat {outside}/.cache/a || true"
    found = opened(tree, f"{compile_}; {written}").outside
    names = {name for name in found if name.startswith(str(outside))} - {str(outside / "stdc-predef.h")}
    assert {name: found[name] for name in names} == {str(outside / "used.h"): artefact.MISSING}
    assert found["used.h"] == artefact.MISSING
    assert artefact.content_of_opened(outside / "used.h") == artefact.MISSING


def test_results_state_of_the_machine_and_caches_are_no_inputs(tree: Path, outside: Path) -> None:
    for name in (".git/HEAD", ".cache/index"):
        (outside / name).parent.mkdir()
        (outside / name).write_text("1")
    time.sleep(0.05)
    files = f"{outside}/.git/HEAD {outside}/.cache/index /etc/passwd /proc/self/status"
    found = opened(tree, f"cat {files}; echo 1 > {outside}/result; cat {outside}/result").outside
    assert not [name for name in found if name.startswith(("/etc/", "/proc/", str(outside)))]


def test_a_module_counts_instead_of_its_bytecode(tree: Path, outside: Path) -> None:
    (outside / "fast.py").write_text("VALUE = 1\n")
    run = f"PYTHONPATH={outside} {sys.executable} -S -c 'import fast'"
    subprocess.run(["/bin/sh", "-c", f"PYTHONDONTWRITEBYTECODE= {run}"], check=True)
    assert list((outside / "__pycache__").iterdir())
    time.sleep(0.05)
    names = [name for name in opened(tree, run).outside if name.startswith(str(outside))]
    assert names == [str(outside / "fast.py")]


def test_the_number_of_opened_files_is_limited(
    tree: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outside.is_dir()
    monkeypatch.setattr(observing, "MOST_FILES", 1)
    reads = opened(tree, "cat sub/b.txt docs/a.txt")
    assert (len(reads.outside), reads.incomplete) == (1, "the benchmark opens more than 1 file")


def test_of_a_large_file_size_and_date_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefact, "LARGEST_COMPARED_BYTES", 2)
    file = tmp_path / "large"
    file.write_text("123")
    os.utime(file, (1, 1))
    before = artefact.content_of_opened(file)
    os.utime(file, (2, 2))
    assert (before, artefact.content_of_opened(file) != before) == ("3 bytes of 1000000000", True)
