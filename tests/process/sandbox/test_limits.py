"""Limits of programs in a sandbox, with real programs in real sandboxes."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from perftrail.file_tree import remove_tree
from perftrail.model.process import Exited, OutOfMemory, Signalled, TimedOut
from perftrail.model.sandbox import Sandbox
from perftrail.process.launcher import Launcher
from tests.process.launcher.traces import eventually
from tests.process.sandbox.sandboxes import Inside, needs_sandbox, opened

pytestmark = needs_sandbox

MEBIBYTE = 1 << 20
FORKS = "python3 -c 'import os, time\nfor _ in range(200): os.fork() or time.sleep(20)'"


@pytest.fixture
def listener() -> socket.socket:
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(5)
    return server


def connect(server: socket.socket) -> str:
    return (
        f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {server.getsockname()[1]}), 3)'"
    )


def test_no_connection_leaves_it_and_the_refusal_is_reported(inside: Inside, listener: socket.socket) -> None:
    with listener:
        ran = inside.run(connect(listener))
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert ran.ended == Exited(code=1)
    assert ran.refused == ('the network (sandbox.network = "none")',)


def test_a_study_that_states_a_reason_has_the_network(tmp_path: Path, listener: socket.socket) -> None:
    sandbox = Sandbox(network="build", why="the test's own server")
    with listener, opened(tmp_path, sandbox) as inside:
        assert inside.run(connect(listener)).ended == Exited(code=0), inside.output


def test_a_run_has_no_network_when_only_the_build_has(tmp_path: Path, listener: socket.socket) -> None:
    sandbox = Sandbox(network="build", why="the test's own server")
    with listener, opened(tmp_path, sandbox, phase="run") as inside:
        assert inside.run(connect(listener)).ended == Exited(code=1)


def test_a_daemon_ends_with_what_started_it(inside: Inside) -> None:
    mark = f"{os.getpid()}.5"
    ran = inside.run(f"(setsid sleep 3{mark} </dev/null >/dev/null 2>&1 &) ; sleep 0.1")
    assert ran.ended == Exited(code=0)
    assert ran.orphans.killed == 1
    assert not alive(f"sleep 3{mark}")


def test_a_file_that_is_too_large_ends_its_writer(tmp_path: Path) -> None:
    with opened(tmp_path, Sandbox(disk_bytes=8 * MEBIBYTE)) as inside:
        ran = inside.run("exec dd if=/dev/zero of=big bs=1M count=100 status=none")
        assert (inside.own / "big").stat().st_size == 8 * MEBIBYTE
    assert ran.ended == Signalled(signal=25)
    assert ran.refused == ("more than 8MiB on disk (sandbox.disk)",)


def test_many_files_that_are_too_much_together_end_their_writer(tmp_path: Path) -> None:
    with opened(tmp_path, Sandbox(disk_bytes=32 * MEBIBYTE)) as inside:
        ran = inside.run("i=0; while :; do i=$((i+1)); head -c 4M /dev/zero > f$((i%99)); done")
    assert ran.ended == Signalled(signal=9)
    assert ran.refused[0] == "more than 32MiB on disk (sandbox.disk)"
    assert ran.wall_seconds < 10


def test_deleted_files_count_as_long_as_they_are_open(tmp_path: Path) -> None:
    with opened(tmp_path, Sandbox(disk_bytes=32 * MEBIBYTE)) as inside:
        ran = inside.run(
            'for n in 3 4 5 6 7 8 9; do eval "exec $n>f"; rm f; head -c 16M /dev/zero >&$n; done; sleep 20'
        )
    assert ran.ended == Signalled(signal=9)
    assert ran.refused[0] == "more than 32MiB on disk (sandbox.disk)"
    assert ran.wall_seconds < 10


SEND_FILES = """
import os, socket, time
one, other = socket.socketpair()
for number in range(8):
    file = os.open('f', os.O_RDWR | os.O_CREAT)
    os.unlink('f')
    os.write(file, bytes(16 << 20))
    socket.send_fds(one, [b'x'], [file])
    os.close(file)
time.sleep(20)
"""


def test_deleted_files_in_a_message_count_as_too_much(tmp_path: Path) -> None:
    with opened(tmp_path, Sandbox(disk_bytes=32 * MEBIBYTE)) as inside:
        ran = inside.run(f'exec python3 -c "{SEND_FILES}"')
    assert ran.ended == Signalled(signal=9)
    assert ran.refused[0] == "more than 32MiB on disk (sandbox.disk)"


def test_a_tree_too_deep_to_measure_counts_as_too_much(tmp_path: Path) -> None:
    deep = f"{'d' * 200}/" * 20
    with opened(tmp_path, Sandbox(disk_bytes=32 * MEBIBYTE)) as inside:
        ran = inside.run(
            f"for number in $(seq 60); do mkdir -p {deep} && cd {deep}; done; head -c 30M /dev/zero > big; "
            "head -c 30M /dev/zero > more; sleep 20"
        )
        assert ran.ended == Signalled(signal=9)
        assert ran.refused[0] == "more than 32MiB on disk (sandbox.disk)"
        began = time.monotonic()
        remove_tree(inside.own)
        assert time.monotonic() - began < 10
        inside.own.mkdir()


def test_a_fork_bomb_gets_no_further_than_its_limit(tmp_path: Path) -> None:
    with opened(tmp_path, Sandbox(processes=50)) as inside:
        ran = inside.run(FORKS)
    assert ran.ended == Exited(code=1)
    assert ran.refused[0] == "more than 50 processes (sandbox.processes)"
    assert ran.orphans.killed < 50


def test_too_much_memory_of_all_processes_ends_the_program(tmp_path: Path) -> None:
    with opened(tmp_path, Sandbox(memory_bytes=64 * MEBIBYTE)) as inside:
        if inside.memory_cgroup is None:
            pytest.skip("no control group for memory may be made here")
        one = "python3 -c 'import time; x = bytearray(30 << 20); time.sleep(5)' & "
        ran = inside.run(one * 3 + "wait", tree_memory="off")
    assert ran.ended == OutOfMemory()
    assert ran.refused == ("more than 64MiB of memory (sandbox.memory)",)


def test_too_much_memory_of_one_process_is_refused_with_or_without_control_groups(tmp_path: Path) -> None:
    with opened(tmp_path, Sandbox(memory_bytes=64 * MEBIBYTE)) as inside:
        ran = inside.run("exec python3 -c 'x = bytearray(200 << 20)'")
    assert ran.ended in {OutOfMemory(), Exited(code=1)}
    assert (ran.ended == OutOfMemory()) == bool(ran.refused)


def test_a_program_that_kills_every_process_ends_itself(inside: Inside) -> None:
    ran = inside.run("kill -9 -1")
    assert ran.ended == Signalled(signal=9)
    assert "its launcher" in ran.refused[0] or "perftrail's launcher" in ran.refused[0]
    assert inside.run("true").ended == Exited(code=0)


def test_a_program_that_stops_its_launcher_is_out_of_time(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perftrail.process.launcher.SECONDS_TO_END", 1.0)
    began = time.monotonic()
    ran = inside.run("kill -STOP $PPID; sleep 60.25", timeout_seconds=1.0)
    assert ran.ended == TimedOut()
    assert time.monotonic() - began < 8
    assert eventually(lambda: not alive("sleep 60.25"))
    assert inside.run("true").ended == Exited(code=0)


def test_metrics_have_the_same_methods_as_outside(inside: Inside) -> None:
    with Launcher() as outside:
        here = outside.start()
    ran = inside.run("python3 -c 'x = bytearray(50 << 20)'")
    assert (ran.tree_memory and ran.tree_memory.method) == (here.memory_cgroup or "sampled")
    assert (ran.tree_cpu and ran.tree_cpu.method) == here.cpu_cgroup
    assert ran.max_rss_bytes > 50 * MEBIBYTE


def test_locks_are_counted_in_a_sandbox(inside: Inside) -> None:
    ran = inside.run(
        "python3 -c 'import threading; threading.Thread(target=print).start()'", lock_counter="preload"
    )
    assert ran.locks is not None, inside.output
    assert ran.locks.threads >= 1


def test_nothing_is_left_of_a_sandbox(tmp_path: Path) -> None:
    with opened(tmp_path) as inside:
        inside.run("echo x > /tmp/x; echo x > /dev/shm/x")
        rooms = inside.study / ".perftrail" / "sandboxes"
        assert len(list(rooms.iterdir())) == 1
    assert list(rooms.iterdir()) == []
    begins = f"perftrail-sandbox-{os.getpid()}-"
    # Not `glob`, which raises when another's group goes while it looks.
    groups = [name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names]
    assert not [name for name in groups if name.startswith(begins)]


def test_a_run_can_be_cancelled_from_another_thread(inside: Inside) -> None:
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.3):  # a cancellation before the start has no effect
            inside.starter._starter.cancel()  # type: ignore[attr-defined]

    thread = threading.Thread(target=cancel)
    thread.start()
    assert inside.run("sleep 200").wall_seconds < 100
    ended.set()
    thread.join()


def alive(words: str) -> bool:
    """Whether a process with these arguments exists."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip() == words:
                return True
        except OSError:
            continue
    return False
