"""Output of a program is stored up to a limit, so it cannot fill the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftrail.model.process import Exited

if TYPE_CHECKING:
    from perftrail.process.launcher import Launcher
    from tests.process.launcher.traces import Trial

MIB = 1 << 20


@pytest.mark.parametrize("mebibytes", [16, pytest.param(1024, marks=pytest.mark.long)])
@pytest.mark.parametrize("descriptor", [1, 2])
def test_output_beyond_the_cap_is_cut_and_the_program_runs_on(
    launcher: Launcher, trial: Trial, descriptor: int, mebibytes: int
) -> None:
    files = [trial.directory / "out", trial.directory / "err"]
    command = trial.command(
        "print_bytes",
        mebibytes * MIB,
        descriptor,
        stdout=str(files[0]),
        stderr=str(files[1]),
        output_cap_bytes=MIB,
    )
    ran = launcher.run(command)
    assert ran.ended == Exited(code=0)
    assert (ran.stdout_truncated, ran.stderr_truncated) == (descriptor == 1, descriptor == 2)
    assert [file.stat().st_size for file in files] == [MIB * (descriptor == 1), MIB * (descriptor == 2)]
    assert files[descriptor - 1].stat().st_blocks * 512 <= 2 * MIB


@pytest.mark.parametrize(("descriptor", "stream"), [(1, "stdout"), (2, "stderr")])
def test_one_stream_is_cut_while_the_program_runs_though_the_other_is_not_kept(
    launcher: Launcher, trial: Trial, descriptor: int, stream: str
) -> None:
    kept = trial.directory / "kept"
    until_cut = f"until [ $(wc -c < {kept}) -le {MIB} ]; do sleep 0.01; done"
    script = f"{trial.targets}/print_bytes {2 * MIB} {descriptor}; {until_cut}"
    environment = {"PATH": "/usr/bin:/bin"}
    streams = {stream: str(kept)}
    ran = launcher.run(
        trial.shell(script, environment=environment, output_cap_bytes=MIB, timeout_seconds=60, **streams)
    )
    assert ran.ended == Exited(code=0)
    assert (ran.stdout_truncated, ran.stderr_truncated) == (descriptor == 1, descriptor == 2)
    assert kept.stat().st_size == MIB


def test_output_at_the_cap_is_whole(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "out"
    ran = launcher.run(trial.command("print_bytes", MIB, 1, stdout=str(output), output_cap_bytes=MIB))
    assert not ran.stdout_truncated
    assert output.stat().st_size == MIB


def test_the_cap_is_not_on_the_programs_own_files(launcher: Launcher, trial: Trial) -> None:
    own = trial.directory / "own"
    script = f"{trial.targets}/print_bytes {3 * MIB} 1 > {own}"
    ran = launcher.run(trial.shell(script, stdout=str(trial.directory / "out"), output_cap_bytes=MIB))
    assert ran.ended == Exited(code=0)
    assert own.stat().st_size == 3 * MIB
    assert not ran.stdout_truncated


def test_both_streams_may_share_a_file(launcher: Launcher, trial: Trial) -> None:
    both = str(trial.directory / "both")
    launcher.run(trial.shell("echo one; echo two >&2; echo three", stdout=both, stderr=both))
    assert (trial.directory / "both").read_text() == "one\ntwo\nthree\n"


def test_an_earlier_output_is_replaced(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "out"
    output.write_text("something longer from before")
    launcher.run(trial.shell("echo new", stdout=str(output)))
    assert output.read_text() == "new\n"


def test_standard_input_is_a_file_or_nothing(launcher: Launcher, trial: Trial) -> None:
    (trial.directory / "in").write_text("given")
    output = trial.directory / "out"
    launcher.run(trial.command("/bin/cat", stdin=str(trial.directory / "in"), stdout=str(output)))
    assert output.read_text() == "given"
    launcher.run(trial.command("/bin/cat", stdout=str(output)))
    assert output.read_text() == ""


def test_a_program_inherits_three_descriptors_and_no_more(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "out"
    launcher.run(trial.command("/bin/ls", "/proc/self/fd", stdout=str(output)))
    assert output.read_text().split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads
