"""A campaign over a malicious history in real sandboxes: every attempt is contained and reported."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from perftrail.process.launcher import Launcher
from tests.e2e.printing import perftrail, program
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.process.sandbox.test_limits import FORKS, alive
from tests.sources.repositories import Repository

pytestmark = [pytest.mark.slow("starts"), needs_sandbox]

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["sh ./build.sh"]
outputs = ["program"]

[benchmark.work]
command = "{{build}}/program"
timeout = "20s"
metrics = {{ cost = {{ pattern = 'cost ([-0-9.]+)' }} }}

[measure]
invocations = 1
warmups = 0

[sandbox]
memory = "64MiB"
processes = 40
disk = "16MiB"
"""

MEMORY = "python3 -c 'x = bytearray(200 << 20)'"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that no build and no run may change."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "file").write_text("unchanged")
    return path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def attempts(outside: Path, port: int, mark: str) -> dict[str, str]:
    """Return the attempts of a build or a run by name: shell lines that fail if the sandbox refuses them."""
    connect = f'import socket; socket.create_connection(("127.0.0.1", {port}), 3)'
    return {
        "home": "cat ~/secret",
        "write": f"echo x > {outside}/pwned",
        "system": "echo x > /etc/perftrail-pwned",
        "network": f"python3 -c '{connect}'",
        "daemon": f"setsid sleep {mark} </dev/null >/dev/null 2>&1 & sleep 0.1",
        "disk": "exec head -c 64M /dev/zero > big",
        "forks": FORKS,
        "memory": MEMORY,
        "launcher": "kill -9 -1",
    }


def files(phase: str, name: str, script: str) -> dict[str, str]:
    """Return the files of a revision that runs a script in its build or in its run."""
    lines = f"set -e\n{script}\n"
    if phase == "build":
        return program(100, name=f"{phase} {name}", build=lines)
    return program(100, name=f"{phase} {name}", body=lines)


REFUSED = {
    "home": "No such file or directory",
    "write": "Directory nonexistent",
    "system": "the sandbox refused writing anywhere but in its own directories",
    "network": 'the sandbox refused the network (sandbox.network = "none")',
    "disk": "the sandbox refused more than 16MiB on disk (sandbox.disk)",
    "forks": "the sandbox refused more than 40 processes (sandbox.processes)",
    "memory": "the sandbox refused more than 64MiB of memory (sandbox.memory)",
    "launcher": "the sandbox refused killing or stopping perftrail's launcher",
}


def test_a_malicious_history_does_no_harm(
    tmp_path: Path, outside: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("the secret")
    monkeypatch.setenv("HOME", str(home))
    mark = f"7{os.getpid()}.5"
    scripts = attempts(outside, listener.getsockname()[1], mark)
    repository = Repository(tmp_path / "repository")
    commits = {
        f"{phase} {name}": repository.commit(files(phase, name, script), subject=f"{phase} {name}")
        for phase in ("build", "run")
        for name, script in scripts.items()
    }
    links = {
        "output link": f"rm program; ln -s {outside}/file program",
        "directory link": f"ln -s {outside} away; mkdir deep; ln -s {outside} deep/away; chmod 000 deep; exit 1",
        "tree link": f"cd ..; rm -rf tree; mv tree gone; ln -s {outside} tree",
    }
    commits |= {
        name: repository.commit(program(100, name=name, build=script), subject=name)
        for name, script in links.items()
    }
    for name in ("--upload-pack=touch${IFS}pwned", "$(touch${IFS}pwned)", "-u.touch"):
        repository.git("update-ref", f"refs/tags/{name}", commits["build home"])
        repository.git("update-ref", f"refs/heads/{name}", commits["build home"])
    for number, url in enumerate(("ext::sh -c touch% pwned", "-utouch pwned", "--upload-pack=touch pwned")):
        modules = f'[submodule "m"]\n\tpath = m\n\turl = "{url}"\n'
        tree = {**program(100, name=url), ".gitmodules": modules, "m": f"commit:{commits['build home']}"}
        commits[f"submodule {number}"] = repository.commit(tree, subject=url)
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(STUDY.format(location=repository.path))

    report = json.loads(perftrail("run", study, "--sandbox", "--json").stdout)

    failures = {each["subject"].split()[0]: each for each in report["failures"]}
    failure_of = {name: failures[id[:10]] for name, id in commits.items() if id[:10] in failures}
    with Launcher() as launcher:
        has_cgroup = bool(launcher.start().cgroup_paths)
    refused = REFUSED if has_cgroup else REFUSED | {"memory": "MemoryError"}  # then malloc fails
    for name, words in refused.items():
        assert words in failure_of[f"build {name}"]["message"], failure_of[f"build {name}"]
        assert failure_of[f"build {name}"]["stage"] == "build"
        assert words in failure_of[f"run {name}"]["message"], failure_of[f"run {name}"]
    assert failure_of["run memory"]["stage"] == ("memory" if has_cgroup else "crash")
    assert {"build daemon", "run daemon"}.isdisjoint(failure_of)
    assert failure_of["output link"]["stage"] == "start"
    assert failure_of["directory link"]["stage"] == "build"
    assert {failure_of[f"submodule {number}"]["stage"] for number in range(3)} == {"checkout"}
    assert "the secret" not in json.dumps(report)
    assert not alive(f"sleep {mark}")
    with pytest.raises(TimeoutError):
        listener.accept()
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "unchanged"
    assert not list(tmp_path.rglob("pwned"))
    assert not Path("/etc/perftrail-pwned").exists()
    assert [path.name for path in home.iterdir()] == ["secret"]


def test_samples_of_a_sandbox_are_not_pooled_with_others(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    repository.commit(program(100))
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(STUDY.format(location=repository.path))
    for options in (["--sandbox"], [], ["--sandbox"]):
        report = json.loads(perftrail("run", study, "--json", *options).stdout)
        assert report["invocations"] == (0 if options and (study / "seen").exists() else 1)
        if options:
            (study / "seen").touch()


def test_nothing_runs_without_an_available_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    repository = Repository(tmp_path / "repository")
    repository.commit(program(100, build=f"touch {tmp_path}/pwned"))
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(STUDY.format(location=repository.path))
    done = perftrail("run", study, "--sandbox", expect=1)
    assert "No permissions to create new namespace" in done.stderr
    assert "user.max_user_namespaces" in done.stderr
    assert not (tmp_path / "pwned").exists()
