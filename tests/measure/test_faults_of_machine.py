"""A failure that the machine caused is not stored: the next command tries again, and no answer depends on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.builds import steps
from perftrail.builds.build_log import Log
from perftrail.builds.steps import ShellSteps
from perftrail.errors import NoAnswer
from perftrail.measure.failed_invocation import why_failed
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import KILLED_FOR_MEMORY, Built, Failure, Stage
from perftrail.model.plan import subjects
from perftrail.model.process import Command, Ended, Exited, NotStarted, Ran, Signalled
from perftrail.process import launcher as module
from perftrail.process.launcher import Launcher
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import RAN, FakeBuilder, FakeSource, FakeStarter
from tests.find.test_find import find, stepping_at
from tests.measure.fake_session import a_session, a_study, drain
from tests.measure.test_invocation_runner import fails, ready_in

FULL = "ld: final link failed: No space left on device"


@pytest.mark.parametrize(
    ("stage", "message", "effect"),
    [
        ("build", FULL, "stops"),
        ("build", "cp: error writing 'a': Disk quota exceeded", "stops"),
        ("build", "cc1: out of memory allocating 65536 bytes", "stops"),
        ("link", "sh: 1: Cannot fork: Cannot allocate memory", "stops"),
        (
            "checkout",
            "cannot fetch it: fatal: unable to access 'https://x/': Could not resolve host: x",
            "again",
        ),
        ("checkout", "ssh: connect to host x port 22: Connection refused", "again"),
        ("checkout", "npm cannot fetch a@1: getaddrinfo EAI_AGAIN registry.example", "stops"),
        ("checkout", "git cannot list v1: bad object v1", "stored"),
        ("checkout", "wrong checksum for 1.0: its SHA-256 is 0", "stored"),
        ("build", "a.c:1:1: error: unknown type name 'x'", "stored"),
        ("start", "cannot start ./work: cannot allocate memory", "stops"),
        ("crash", f"killed by signal 9 (SIGKILL): {KILLED_FOR_MEMORY}", "stops"),
        ("crash", "exit code 1: dump: No space left on device", "stops"),
        # A revision that leaks or needs a server can fail in these ways.
        ("crash", "exit code 1: malloc: Cannot allocate memory", "stored"),
        ("crash", "exit code 1: open: Too many open files", "stored"),
        ("crash", "exit code 1: connect: Connection refused", "stored"),
        ("fixture", "setup: psql: connection refused", "stored"),
        ("memory", "needed more memory than 1 GiB", "stored"),
    ],
)
def test_words_of_the_machine_differ_from_words_of_the_program(
    stage: Stage, message: str, effect: str
) -> None:
    failure = Failure(stage=stage, message=message)
    assert failure.is_of_machine == (effect == "stops")
    assert failure.may_pass == (effect != "stored")


def test_a_failed_build_is_repeated_by_the_next_command(tmp_path: Path) -> None:
    source, store = FakeSource(1), MemoryStore()
    for error, again in ((FULL, True), ("error: expected ';'", False)):
        builder = FakeBuilder(source, broken={"r0"}, error=error)
        session = a_session(
            a_study(), tmp_path, source=source, starter=fails(0), builder=builder, store=store
        )
        (subject,) = subjects(session.study, source.history())
        _, outcome = drain(session.subject_builder.build(subject))
        assert isinstance(outcome, Failure)
        builder.broken = ()
        later = a_session(a_study(), tmp_path, source=source, starter=fails(0), builder=builder, store=store)
        _, outcome = drain(later.subject_builder.build(subject))
        assert isinstance(outcome, Built) == again
        store = MemoryStore()


def test_a_failed_invocation_is_repeated_by_the_next_command(tmp_path: Path) -> None:
    def full(_: tuple[str, ...]) -> Ended:
        return NotStarted(errno=28, message="stdout: No space left on device", stage="stdout")

    source, store = FakeSource(1), MemoryStore()
    failing = FakeStarter(seconds=lambda _: 1.0, ended=full)
    session = a_session(a_study(), tmp_path, source=source, starter=failing, store=store)
    (tmp_path / "logs").mkdir()
    ready = ready_in(session)
    _, outcome = drain(session.runner.outcome(ready, "sample", 0))
    assert "no space left on device" in outcome.failure.message  # type: ignore[union-attr] # it failed
    assert not any(store.outcomes([ready.runnable.key], session.machine.id).values())


def test_a_search_stops_and_the_next_one_finds_the_culprit(tmp_path: Path) -> None:
    source, store = FakeSource(30), MemoryStore()
    builder = FakeBuilder(source, broken={"r29"}, error=FULL)
    session = a_session(
        a_study(), tmp_path, source=source, starter=stepping_at(14), builder=builder, store=store
    )
    with pytest.raises(NoAnswer, match=r"r29.*: build: ld: .*No space left on device\. This machine caused"):
        find(session)
    builder.broken = ()
    _, answer = find(
        a_session(a_study(), tmp_path, source=source, starter=stepping_at(14), builder=builder, store=store)
    )
    assert answer.as_json()["changes"][0]["revisions"] == ["r14"]
    assert not answer.unusable


def test_a_search_passes_over_a_host_that_was_not_reached_and_the_next_one_tries_again(
    tmp_path: Path,
) -> None:
    source, store = FakeSource(30), MemoryStore()
    builder = FakeBuilder(source, broken={"r13"}, error="curl: (6) Could not resolve host: gone.example")
    starter = stepping_at(14)
    _, answer = find(
        a_session(a_study(), tmp_path, source=source, starter=starter, builder=builder, store=store)
    )
    assert answer.as_json()["changes"][0]["revisions"] == ["r13", "r14"]
    builder.broken = ()
    session = a_session(a_study(), tmp_path, source=source, starter=starter, builder=builder, store=store)
    _, outcome = drain(session.subject_builder.build(subjects(session.study, source.history())[13]))
    assert isinstance(outcome, Built)


def test_a_process_that_the_kernel_kills_for_memory_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    killed = replace(RAN, ended=Signalled(signal=9), memory_kills=1)
    command = Command(arguments=("work",), environment={}, directory="/")
    failure = why_failed(
        killed, Benchmark(command="work"), tmp_path / "log", command=command, build=str(tmp_path)
    )
    assert failure is not None
    assert failure.is_of_machine

    class Make:
        output = "c++: fatal error: Killed signal terminated program cc1plus\n"

        def run(self, command: Command) -> Ran:
            assert command.stdout is not None
            Path(command.stdout).write_text(self.output)
            return replace(RAN, ended=Exited(code=2), memory_kills=1)

    log = Log(path=tmp_path / "build.log")
    log.begin()
    lines = ShellSteps(lines=("make",), directory=tmp_path, environment={}, timeout_seconds=9.0)
    make = Make()
    message = lines.run(make, log)
    assert message.splitlines()[-1] == KILLED_FOR_MEMORY
    assert Failure(stage="build", message=message).is_of_machine
    make.output = "a.c:1:1: error: unknown type name 'x'\n"  # and another program is killed
    assert KILLED_FOR_MEMORY not in lines.run(make, log)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_disk_without_space_for_the_words_of_the_program_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    log = Log(path=tmp_path / "build.log")
    log.begin()
    monkeypatch.setattr(steps, "_is_full", lambda directory: is_full and directory == tmp_path)
    make = ShellSteps(lines=("make",), directory=tmp_path, environment={}, timeout_seconds=9.0)
    message = make.run(FakeStarter(seconds=lambda _: 1.0, ended=lambda _: Exited(code=2)), log)
    assert Failure(stage="build", message=message).is_of_machine == is_full


def test_the_launcher_counts_what_the_kernel_kills_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = tmp_path / "vmstat"
    counts.write_text("nr_free_pages 5\noom_kill 4\n")
    monkeypatch.setattr(module, "KERNEL_COUNTS", counts)
    line = f"printf 'nr_free_pages 5\\noom_kill 6\\n' > {counts}"
    with Launcher() as launcher:
        ran = launcher.run(Command(arguments=("/bin/sh", "-c", line), environment={}, directory="/"))
        assert ran.memory_kills == 2
        counts.unlink()
        ran = launcher.run(Command(arguments=("/bin/true",), environment={}, directory="/"))
        assert ran.memory_kills == 0
