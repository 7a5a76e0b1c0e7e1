"""Benchmarks with fixtures: lines around invocations, services with data, their failures, and their ends."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from perftrail.builds.observing import observer
from tests.e2e.printing import begin, perftrail, perftrail_here
from tests.e2e.serving import files, write_served_study
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.sources.repositories import Repository
from tests.starting import Started

pytestmark = pytest.mark.slow("starts")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with a server and its client."""
    directory = tmp_path / "tree"
    directory.mkdir()
    for name, text in files().items():
        (directory / name).write_text(text)
    return directory


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Separate locks of workers for each test."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def samples(file: Path, metric: str) -> list[float]:
    """Return the samples of a metric in the order of their measurement."""
    lines = perftrail_here("export", file, "--format", "jsonl").stdout.splitlines()
    return [each["value"] for each in map(json.loads, lines) if each["metric"] == metric]


def failure(file: Path) -> str:
    """Run a study whose only benchmark fails; return the message of the failure."""
    done = perftrail("run", file, "--json", expect=1)
    return str(json.loads(done.stdout)["failures"][0]["message"])


def is_alive(pid: int) -> bool:
    """Whether a process runs and is not a zombie."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_lines_run_in_their_order_and_one_server_answers_all_invocations_of_a_build(
    tmp_path: Path, tree: Path
) -> None:
    log = tmp_path / "log"
    file = write_served_study(
        tmp_path / "study",
        location=tree,
        asked="{n}",
        service=f'setup = ["echo service >> {log}; echo 1 2 3 > {{data}}/rows"]',
        benchmark=f"""\
parameters = {{ n = [10, 20] }}
setup = ["echo setup >> {log}; echo 4 >> {{data}}/rows"]
prepare = ["echo prepare {{n}} >> {log}", "touch here"]
conclude = ["test -f here", "echo conclude {{n}} >> {log}"]
cleanup = ["echo cleanup $(cat {{data}}/rows | wc -w) >> {log}"]
""",
    )
    perftrail("run", file)
    lines = log.read_text().split("\n")
    assert lines[:2] == ["service", "setup"]
    assert lines[-2:] == ["cleanup 4", ""]
    around = lines[2:-2]
    count = 3 if observer() else 2
    assert sorted(around) == sorted(count * ["prepare 10", "conclude 10", "prepare 20", "conclude 20"])
    for before, after in zip(around[::2], around[1::2], strict=True):
        assert (before.split()[0], after.split()[0]) == ("prepare", "conclude")
        assert before.split()[1] == after.split()[1]
    assert samples(file, "rows") == [4.0] * 4
    assert len(set(samples(file, "pid"))) == 1
    assert not any(is_alive(int(pid)) for pid in set(samples(file, "pid")))
    assert list((file.parent / ".perftrail/fixtures").iterdir()) == []


def test_setup_with_a_parameter_loads_separate_data_for_each_value(tmp_path: Path, tree: Path) -> None:
    file = write_served_study(
        tmp_path / "study",
        location=tree,
        benchmark='parameters = { n = [1, 2] }\nsetup = ["seq {n} > {data}/rows"]',
    )
    perftrail("run", file)
    assert sorted(samples(file, "rows")) == [1.0, 1.0, 2.0, 2.0]
    assert len(set(samples(file, "pid"))) == 2


def test_builds_that_alternate_keep_their_data_and_servers(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    base, head = (repository.commit(files(name=name)) for name in ("base", "head"))
    log = tmp_path / "log"
    file = write_served_study(
        tmp_path / "study",
        kind="git",
        location=repository.path,
        benchmark=f'setup = ["echo loaded >> {log}; echo 1 > {{data}}/rows"]',
        measure="quiet_threshold = 1000",
    )
    compared = perftrail("compare", base, head, file, "--metric", "cost", "--max-pairs", "9", "--json")
    assert json.loads(compared.stdout)["fresh"] >= 4
    assert log.read_text() == 2 * "loaded\n"
    assert len(set(samples(file, "pid"))) == 2


def test_a_service_can_start_again_for_each_invocation_with_the_same_data(tmp_path: Path, tree: Path) -> None:
    file = write_served_study(
        tmp_path / "study",
        location=tree,
        service='restart = "each"',
        benchmark='setup = ["echo 1 > {data}/rows"]\n'
        f'cleanup = ["test $(wc -l < {{data}}/starts) = {3 + bool(observer())}"]',  # observed once
    )
    perftrail("run", file)
    assert samples(file, "rows") == [1.0, 1.0]
    assert len(set(samples(file, "pid"))) == 2


def test_the_cpu_time_of_the_server_is_measured_by_choice(tmp_path: Path, tree: Path) -> None:
    file = write_served_study(
        tmp_path / "study", location=tree, cost="600", benchmark='measure = "server"\nnice = 19\ncpus = "0"'
    )
    perftrail("run", file)
    assert all(0.55 < seconds < 1.8 for seconds in samples(file, "cpu")), samples(file, "cpu")
    assert all(each > 1 << 20 for each in samples(file, "peak_memory_tree"))
    assert samples(file, "peak_memory") == []
    of_command = write_served_study(tmp_path / "other", location=tree, cost="600")
    perftrail("run", of_command)
    assert all(seconds < 0.55 for seconds in samples(of_command, "cpu")), samples(of_command, "cpu")


def test_a_crashed_server_is_a_failed_invocation_with_its_last_output(tmp_path: Path, tree: Path) -> None:
    log = tmp_path / "log"
    file = write_served_study(
        tmp_path / "study",
        location=tree,
        asked="crash",
        benchmark=f'setup = ["true"]\ncleanup = ["echo cleaned >> {log}"]',
    )
    done = perftrail("run", file, "--json", expect=1)
    found = json.loads(done.stdout)["failures"][0]
    assert found["stage"] == "fixture"
    assert found["message"].splitlines() == [
        'service db ended: exit code 3; its last line is "I have had enough"',
        "earlier: ready to answer",
    ]
    assert Path(found["log"]).read_text() == "ready to answer\nI have had enough\n"
    assert log.read_text() == "cleaned\n"


def test_a_failed_cleanup_is_an_error_and_its_samples_are_kept(tmp_path: Path, tree: Path) -> None:
    log = tmp_path / "log"
    file = write_served_study(
        tmp_path / "study", location=tree, benchmark=f'cleanup = ["echo cleaned >> {log}", "false"]'
    )
    done = perftrail("run", file, expect=1)
    assert "ask: cleanup: exit code 1: false" in done.stderr
    assert log.read_text() == "cleaned\n"
    assert len(samples(file, "cost")) == 2


FAILING = {
    "setup_of_a_service": (
        'setup = ["echo no space >&2; exit 4"]',
        'services = ["other"]',
        "service other: setup: no space",
    ),
    "setup": ("", 'setup = ["false"]', "setup: exit code 1: false"),
    "prepare": ("", 'prepare = ["cat missing"]', "prepare: cat: missing: No such file or directory"),
    "conclude": ("", 'conclude = ["false"]', "conclude: exit code 1: false"),
    "cpus": ("", 'cpus = "4000"', "cpus: the available CPUs are"),
    "numa": ("", 'numa = "900"', "numa: this machine has"),
}
"""Benchmarks with a line that fails: that of a service, their own, and the message."""


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The messages of one run of all failing benchmarks, by benchmark."""
    root = tmp_path_factory.mktemp("failing")
    text = f'[source]\nkind = "directory"\nlocation = "{root}"\n[measure]\ninvocations = 1\nwarmups = 0\n'
    for name, (service, benchmark, _) in FAILING.items():
        if service:
            text += f'[service.other]\ncommand = "sleep 100"\nready = {{ line = "never" }}\n{service}\n'
        text += f'[benchmark.{name}]\ncommand = "true"\n{benchmark}\n'
    (root / "perftrail.toml").write_text(text)
    found = json.loads(perftrail("run", root, "--json", expect=1).stdout)["failures"]
    return {name: each["message"] for each in found for name in FAILING if name in each["subject"].split()}


@pytest.mark.parametrize("benchmark", FAILING)
def test_a_failed_line_is_a_failed_invocation(failures: dict[str, str], benchmark: str) -> None:
    assert failures.keys() == FAILING.keys()
    assert failures[benchmark].startswith(FAILING[benchmark][2])


def test_a_server_that_is_never_ready_is_reported_with_its_last_output(tmp_path: Path, tree: Path) -> None:
    file = write_served_study(tmp_path / "study", location=tree, service='timeout = "1s"')
    text = file.read_text().replace('line = "ready to answer"', 'line = "accepting"')
    file.write_text(
        text.replace("python3 {build}/server.py 1 {port}", "sh -c 'echo not yet; exec sleep 1000' {port}")
    )
    assert failure(file) == (
        'service db is not ready after 1.0 s: no line of its output matches "accepting"; its last line is "not yet"'
    )


@pytest.mark.parametrize("ready", ['port = "{port}"', 'command = "python3 {build}/client.py {port} hello"'])
def test_a_server_is_ready_when_its_port_or_a_command_answers(tmp_path: Path, tree: Path, ready: str) -> None:
    file = write_served_study(tmp_path / "study", location=tree)
    file.write_text(file.read_text().replace('line = "ready to answer"', ready))
    perftrail("run", file)
    assert len(samples(file, "cost")) == 2


def test_check_shows_the_fixture_and_what_this_machine_lacks(tmp_path: Path, tree: Path) -> None:
    file = write_served_study(
        tmp_path / "study",
        location=tree,
        service='restart = "each"',
        benchmark='setup = ["true", "true"]\nmeasure = "server"\ncpus = "4000"\nnice = 2',
    )
    shown = perftrail_here("check", file).stdout
    fixture = next(line for line in shown.splitlines() if line.startswith("fixture"))
    assert fixture.split(maxsplit=1)[1] == (
        "ask: services db (started for each invocation); CPU time and memory of the services; setup: 2 lines; "
        "CPUs 4000; niceness 2"
    )
    assert "benchmark.ask.cpus: the available CPUs are" in shown


def running(file: Path, started: Path) -> Started:
    """Start `run`, and return when the server runs."""
    process = begin("run", file)
    deadline = time.monotonic() + 60
    while not (started.exists() and started.read_text().endswith("\n")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=lambda each: each.name)
def test_no_server_outlives_perftrail_and_an_interrupt_cleans_up(
    tmp_path: Path, tree: Path, sent: signal.Signals
) -> None:
    log, pid_file = tmp_path / "log", tmp_path / "pid"
    file = write_served_study(
        tmp_path / "study",
        location=tree,
        cost="60000",
        benchmark=f"""\
setup = ["echo setup >> {log}"]
prepare = ["cp {{data}}/starts {pid_file}"]
cleanup = ["test -e {{data}}/starts && echo cleanup >> {log}"]
timeout = "100s"
""",
    )
    process = running(file, pid_file)
    pid = int(pid_file.read_text())
    assert is_alive(pid)
    process.send_signal(sent)
    process.wait(timeout=60)
    ended = time.monotonic()
    while is_alive(pid):
        assert time.monotonic() - ended < 2.0, "the server outlived perftrail by two seconds"
        time.sleep(0.02)
    expected = "setup\n" if sent == signal.SIGKILL else "setup\ncleanup\n"
    assert log.read_text() == expected


@needs_sandbox
def test_a_sandboxed_command_reaches_a_sandboxed_service_by_a_socket_in_its_data(
    tmp_path: Path, tree: Path
) -> None:
    file = write_served_study(
        tmp_path / "study",
        location=tree,
        place="{data}/s",
        benchmark='setup = ["echo 1 > {data}/rows"]\nmeasure = "server"',
    )
    perftrail("run", file, "--sandbox")
    assert samples(file, "rows") == [1.0, 1.0]
    assert len(samples(file, "cpu")) == 2


@needs_sandbox
@pytest.mark.parametrize("ready", ['line = "ready to answer"', 'port = "{port}"'])
def test_a_sandboxed_command_reaches_the_port_of_a_sandboxed_service(
    tmp_path: Path, tree: Path, ready: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        there = outside.getsockname()[1]
        connect = f"socket.create_connection(('127.0.0.1', {there}), 3)"
        file = write_served_study(
            tmp_path / "study",
            location=tree,
            benchmark=f"""\
prepare = ["! python3 -c \\"import socket; {connect}\\" 2> /dev/null"]
""",
        )
        file.write_text(file.read_text().replace('line = "ready to answer"', ready))
        perftrail("run", file, "--sandbox")
    assert len(set(samples(file, "pid"))) == 1
    assert len(samples(file, "cost")) == 2


@pytest.mark.long
def test_workers_run_fixtures_too(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    repository.commit(files())
    log = tmp_path / "log"
    file = write_served_study(
        tmp_path / "study",
        kind="git",
        location=repository.path,
        benchmark=f'setup = ["echo setup >> {log}; echo 1 > {{data}}/rows"]\ncleanup = ["echo cleanup >> {log}"]',
    )
    perftrail("run", file, "--engine", "dask:local:1")
    assert samples(file, "rows") == [1.0, 1.0]
    pids = set(samples(file, "pid"))
    assert len(pids) == 1
    assert log.read_text() == "setup\ncleanup\n"
    assert not any(is_alive(int(pid)) for pid in pids)
