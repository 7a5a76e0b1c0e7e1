"""perftrail-recorder around real build lines: their ends stay the same, and each successful link is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from perftrail.builds.links.record import Link, RawRecord
from perftrail.installed_programs import recorder_path
from tests.needs import needs

ONE = "int one(int n) { return n * 3; }\n"
MAIN = "int one(int);\nint main(void) { return one(2) - 6; }\n"


@dataclass
class Recorded:
    """A directory with two sources, and the recorder's directory."""

    directory: Path

    @property
    def raw(self) -> RawRecord:
        return RawRecord(self.directory / "record")

    def run(self, line: str, **more: str) -> subprocess.CompletedProcess[str]:
        self.raw.begin()
        return subprocess.run(
            [str(recorder_path()), str(self.raw.directory), "/bin/sh", "-eu", "-c", line],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.directory,
            env={**os.environ, **more},
            timeout=60,
        )

    def links(self) -> list[Link]:
        return [each.link for each in self.raw.links()]

    def contents(self, link: Link) -> list[bytes]:
        return [(self.raw.directory / each).read_bytes() for each in link.own_files]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    (tmp_path / "one.c").write_text(ONE)
    (tmp_path / "main.c").write_text(MAIN)
    return Recorded(tmp_path)


def test_a_link_is_kept_with_its_temporary_objects(recorded: Recorded) -> None:
    done = recorded.run("cc main.c one.c -o program && ./program")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (link,) = recorded.links()
    assert link.output == str(recorded.directory / "program")
    assert link.directory == str(recorded.directory)
    objects = [each for each in link.files if each.stored]
    assert len(objects) == 2
    assert not any(Path(each.name).exists() for each in objects)
    assert all(content.startswith(b"\x7fELF") for content in recorded.contents(link))
    assert any(each.startswith("PATH=") for each in link.environment)


def test_words_of_response_files_and_members_of_thin_archives_are_kept(recorded: Recorded) -> None:
    done = recorded.run(
        "cc -c main.c one.c; mkdir lib; mv one.o lib; (cd lib; ar rcT libone.a one.o)\n"
        "echo '-o \"program\" main.o' > words; echo '-Llib -lone' >> words; cc @words"
    )
    assert done.returncode == 0, done.stderr
    (link,) = recorded.links()
    assert {"main.o", "lib/libone.a", "lib/one.o"} <= {each.name for each in link.files}


def test_what_a_build_changes_after_the_link_stays_as_it_was_linked(recorded: Recorded) -> None:
    recorded.run(
        "cc -c main.c one.c; ar rc lib.a one.o; cc main.o lib.a -o program; echo > lib.a; rm main.o; strip program"
    )
    (link,) = recorded.links()
    assert {each.name for each in link.files if each.stored} == {"main.o", "lib.a"}
    assert all(
        len(content) == kept.size
        for content, kept in zip(
            recorded.contents(link), [each for each in link.files if each.stored], strict=True
        )
    )


def test_failed_partial_and_trial_links_are_not_kept(recorded: Recorded) -> None:
    recorded.run(
        "cc -c main.c one.c; ld -r main.o one.o -o both.o; cc main.c one.c -o conftest; cc main.c -o bad || true"
    )
    assert recorded.links() == []


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_the_exit_code_is_that_of_the_command(recorded: Recorded, code: int) -> None:
    assert recorded.run(f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ends_the_command_ends_the_recorder(recorded: Recorded, number: signal.Signals) -> None:
    assert recorded.run(f"kill -{int(number)} $$").returncode == -number


def test_signals_reach_the_processes_of_the_build(recorded: Recorded) -> None:
    line = "trap 'echo caught; exit 7' USR1; kill -USR1 $$; sleep 9"
    done = recorded.run(line)
    assert (done.returncode, done.stdout) == (7, "caught\n")


def test_a_stopped_process_continues(recorded: Recorded) -> None:
    done = recorded.run("sh -c 'kill -STOP $$; echo went on' & p=$!; sleep 0.3; kill -CONT $p; wait $p")
    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_the_recorder_does_not_wait_for_processes_that_the_build_leaves_behind(recorded: Recorded) -> None:
    began = time.monotonic()
    done = recorded.run("(sleep 20; true) >/dev/null 2>&1 & echo $! > left; exit 4")
    left = int((recorded.directory / "left").read_text())
    assert done.returncode == 4
    assert time.monotonic() - began < 15
    os.kill(left, signal.SIGKILL)  # it lives, and can be killed: it is no longer traced


@needs("strace")
def test_a_build_that_traces_its_own_processes_works(recorded: Recorded) -> None:
    done = recorded.run("cc main.c one.c -o program; strace -f -o trace ./program; test -s trace")
    assert done.returncode == 0, done.stderr
    assert len(recorded.links()) == 1


def test_a_program_that_cannot_be_traced_is_run_untraced_where_another_program_traces(
    recorded: Recorded,
) -> None:
    inner = f"mkdir -p inner/files; {recorder_path()} $PWD/inner sh -c 'cc main.c one.c -o program; exit 5'"
    done = recorded.run(inner)
    assert done.returncode == 5
    assert (recorded.directory / "inner" / "refused").read_text().strip()
    assert len(recorded.links()) == 1


def test_many_threads_and_processes_are_followed(recorded: Recorded) -> None:
    lines = "; ".join(
        f"(cc -DN={n} main.c one.c -o program{n} && ./program{n}) & " for n in range(8)
    ).replace("& ;", "&")
    done = recorded.run(f"{lines} wait")
    assert done.returncode == 0, done.stderr
    assert len(recorded.links()) == 8
