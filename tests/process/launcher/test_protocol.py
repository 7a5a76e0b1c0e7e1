"""The launcher's protocol: any bytes in, one line of JSON out."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftrail.errors import LauncherError
from perftrail.model.process import Command, Exited
from perftrail.process.protocol import PROTOCOL, job_line, read_answer, read_hello, read_result

if TYPE_CHECKING:
    from perftrail.process.launcher import Launcher
    from tests.process.launcher.traces import Trial


def answers(launcher: Path, lines: list[bytes]) -> list[dict[str, Any]]:
    """Send lines one by one, each after the answer to the one before."""
    with subprocess.Popen([launcher], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = [json.loads(process.stdout.readline())]
        for line in lines:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            found.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(30) == 0
    return found[1:]


EVERY_BYTE = bytes(range(1, 256))
HOSTILE = [
    EVERY_BYTE.decode(errors="surrogateescape"),
    "",
    "%",
    "%00",
    "a\tb\nc=d",
    "'\"\\$(reboot)`",
    "ünïcödé \udcff\udc80",
    "x" * 100_000,
]


def test_any_byte_is_allowed_in_arguments_and_environment(launcher: Launcher, trial: Trial) -> None:
    environment = {f"V{i}": value for i, value in enumerate(HOSTILE)} | {"\udcff\t\n%": "odd name"}
    output = trial.directory / "seen"
    command = trial.command("show_start", *HOSTILE, environment=environment, stdout=str(output))
    assert launcher.run(command).ended == Exited(code=0)
    seen = output.read_bytes().split(b"\0")
    arguments = [os.fsencode(argument) for argument in command.arguments]
    variables = [os.fsencode(f"{name}={value}") for name, value in command.environment.items()]
    assert seen == [*arguments, b"", *variables, b""]


def test_the_environment_is_exactly_the_one_given(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "seen"
    command = trial.command("show_start", stdout=str(output))
    object.__setattr__(command, "environment", {})
    launcher.run(command)
    assert output.read_bytes() == command.arguments[0].encode() + b"\0\0"


def test_arguments_of_megabytes_are_passed(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "seen"
    many = ["a" * 100_000] * 15
    assert launcher.run(trial.command("show_start", *many, stdout=str(output))).ended == Exited(code=0)
    assert output.stat().st_size > 1_500_000


def test_a_nul_in_an_argument_is_refused_before_anything_runs(launcher: Launcher, trial: Trial) -> None:
    with pytest.raises(LauncherError, match="NUL"):
        launcher.run(trial.command("/bin/echo", "a\0b"))
    assert launcher.run(trial.command("/bin/true")).ended == Exited(code=0)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"", "a field must be key=value"),
        (b"id=1", "arg: at least one is required"),
        (b"arg=/bin/true", "id: missing"),
        (b"id=1\targ=/bin/true\tcolour=red", "unknown key"),
        (b"id=1\tid=2\targ=/bin/true", "a key was given twice"),
        (b"id=1\targ=%", "a % must be followed by two hexadecimal digits"),
        (b"id=1\targ=%0", "a % must be followed by two hexadecimal digits"),
        (b"id=1\targ=%00", "a NUL byte cannot be passed to a program"),
        (b"id=1\targ=a\0b", "a NUL byte cannot be passed to a program"),
        (b"id=1\targ=x\tenv=NOVALUE", "env: must be NAME=VALUE"),
        (b"id=1\targ=x\tenv==value", "env: must be NAME=VALUE"),
        (b"id=1\targ=x\ttimeout_ns=1s", "timeout_ns: must be a number of nanoseconds"),
        (b"id=1\targ=x\ttimeout_ns=99999999999999999999", "timeout_ns: must be a number of nanoseconds"),
        (b"id=1\targ=x\tcpus=3-1", "cpus: must be none or a list such as 0,2,4-7"),
        (b"id=1\targ=x\tcpus=", "cpus: must be none or a list such as 0,2,4-7"),
        (b"id=1\targ=x\tcpus=0-99999", "cpus: must be none or a list such as 0,2,4-7"),
        (b"id=1\targ=x\tnuma=0-5000", "numa: must be a list such as 0,2-3"),
        (b"id=1\targ=x\tnice=20", "nice: must be a number from -20 to 19"),
        (b"id=1\targ=x\tnice=-21", "nice: must be a number from -20 to 19"),
        (b"id=1\targ=x\tnice=-", "nice: must be a number from -20 to 19"),
        (b"id=1\targ=x\taslr=maybe", "aslr: must be on or off"),
        (b"id=1\targ=x\torphans=adopt", "orphans: must be wait, kill or terminate"),
        (b"id=1\targ=x\tmemory_limit=1000", "memory_limit: must be at least 1048576 bytes"),
        (b"id=1\targ=x\trlimit=nofile", "rlimit: must be NAME:NUMBER or NAME:unlimited"),
        (b"id=\xff\targ=x", "id: must be printable ASCII without spaces"),
    ],
)
def test_a_malformed_line_is_answered_with_what_is_wrong(
    launcher_file: Path, line: bytes, complaint: str
) -> None:
    good = b"id=after\targ=/bin/true"
    error, result = answers(launcher_file, [line, good])
    assert (error["event"], error["message"]) == ("error", complaint)
    assert (result["event"], result["id"]) == ("result", "after")


def test_a_line_beyond_all_bounds_is_refused_and_the_next_one_served(launcher_file: Path) -> None:
    error, result = answers(launcher_file, [b"id=1\targ=" + b"x" * (17 << 20), b"id=2\targ=/bin/true"])
    assert error["message"] == "the line is too long"
    assert result["id"] == "2"


def test_a_first_line_with_long_paths_of_escaped_bytes_is_whole(launcher_file: Path) -> None:
    homes = [Path(f"/sys/fs/cgroup/{name}") for name in ("unified", "memory", "pids", "cpuacct")]
    homes = [home for home in homes if os.access(home / "cgroup.procs", os.W_OK)]
    if len(homes) < 3:
        pytest.skip("fewer than three hierarchies of cgroups here")
    descriptors = [os.open(home, os.O_RDONLY) for home in homes]
    try:
        done = subprocess.run(
            [launcher_file, b"name=" + b"\xff" * 250, *(f"cgroup={number}" for number in descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            pass_fds=descriptors,
            check=True,
        )
    finally:
        for number in descriptors:
            os.close(number)
    assert len(done.stdout) > 4096
    assert len(json.loads(done.stdout)["cgroup"]["paths"]) == len(homes)


KEYS = (
    "id= arg= env= cwd= stdin= stdout= stderr= output_cap= timeout_ns= cpus= nice= numa= aslr= memory_limit= "
    "rlimit= orphans= tree_memory= counters= program="
)
VALUES = (
    "= % %4 %41 %00 cancel none on off wait kill auto 0 1 7- -1 , 4194304 nofile: "
    "core:unlimited /nowhere/x {} A=B"
)
WORDS = [*KEYS.encode().split(), *VALUES.encode().split(), b"\t", b"\t\t", b"9" * 30, b"\xff\xfe", b"\r\0 "]


def random_line(rng: random.Random) -> bytes:
    """Random keywords, mostly invalid. The only programs that it can name are below /nowhere."""
    parts = rng.choices(WORDS, k=rng.randrange(12))
    if rng.random() < 0.3:
        parts.insert(rng.randrange(len(parts) + 1), rng.randbytes(rng.randrange(40)))
    if rng.random() < 0.3:
        parts = [b"id=1\targ=/nowhere/x\t", *(part + b"\t" for part in parts)]
    return b"".join(parts).replace(b"\n", b"").replace(b"/bin", b"")


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_random_lines_are_answered_one_by_one(launcher_file: Path, tmp_path: Path, count: int) -> None:
    rng = random.Random(20240607)
    lines = [line for _ in range(count) if (line := random_line(rng)) != b"cancel"]
    with subprocess.Popen(
        [launcher_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        for line in lines:
            process.stdin.write(line + b"\n")
            answer = json.loads(process.stdout.readline())
            assert answer["event"] in ("result", "error"), line
        process.stdin.write(b"id=last\targ=/bin/true\n")
        assert json.loads(process.stdout.readline())["ended"] == {"how": "exited", "code": 0}
        process.stdin.close()
        assert process.wait(30) == 0


def test_lines_that_come_together_are_answered_in_order(launcher_file: Path) -> None:
    lines = b"".join(b"id=%d\targ=/bin/true\n" % number for number in range(50))
    with subprocess.Popen([launcher_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write(lines)
        process.stdin.flush()
        assert [json.loads(process.stdout.readline())["id"] for _ in range(50)] == [str(n) for n in range(50)]
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_job_line_contains_every_choice() -> None:
    command = Command(
        arguments=("a b", "c\td"),
        environment={"X": "1%2"},
        directory="/work",
        stdout="/o",
        output_cap_bytes=10,
        timeout_seconds=1.5,
        memory_limit_bytes=1 << 20,
        cpus=(0, 3),
        nice=-5,
        numa=(0, 1),
        aslr=False,
        orphans="wait",
        tree_memory="sampled",
        limits={"nofile": 5, "core": None},
    )
    assert job_line(command, id="7").decode().rstrip("\n").split("\t") == [
        "id=7", "arg=a b", "arg=c%09d", "env=X=1%252", "cwd=/work", "stdout=/o", "output_cap=10",
        "timeout_ns=1500000000", "memory_limit=1048576", "cpus=0,3", "nice=-5", "numa=0,1", "aslr=off", "orphans=wait",
        "tree_memory=sampled", "rlimit=nofile:5", "rlimit=core:unlimited",
    ]  # fmt: skip


@pytest.mark.parametrize("line", [b"no json", b"[]", b"{}", b'{"event"', b"[" * 100_000])
def test_an_answer_that_is_not_of_the_protocol_is_an_error(line: bytes) -> None:
    with pytest.raises(LauncherError, match="please report it"):
        read_answer(line)


def test_a_launcher_of_another_version_is_refused_with_the_remedy() -> None:
    with pytest.raises(LauncherError, match="reinstall"):
        read_hello({"event": "hello", "protocol": 99})


@pytest.mark.parametrize("more", [{}, {"ended": 3}, {"ended": {"how": "exited"}, "cancelled": False}])
def test_a_result_without_its_fields_is_an_error(more: dict[str, object]) -> None:
    with pytest.raises(LauncherError, match="which is not its protocol; please report it"):
        read_result({"event": "result", "id": "1", **more}, id="1")


def test_a_hello_without_its_fields_is_an_error() -> None:
    with pytest.raises(LauncherError, match="which is not its protocol; please report it"):
        read_hello({"event": "hello", "protocol": PROTOCOL, "cgroup": []})


def test_the_answer_to_another_job_is_an_error() -> None:
    with pytest.raises(LauncherError, match="instead of '2'"):
        read_result({"event": "result", "id": "1"}, id="2")
