"""Each stage at which a revision can fail occurs and is reported as such, with real git, builds and programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.find.journal import Ledger
from perftrail.find.sampler import Sampler
from perftrail.measure.failed_invocation import last_line_of
from perftrail.model.build import Failure
from perftrail.model.target import resolve
from perftrail.opening import open_session
from perftrail.search import CannotRelink, Measure, Unusable
from tests.measure.fake_session import drain
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("processor")

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["sh ./build.sh"]
outputs = ["program"]

[benchmark.work]
build = ["sh {{build}}/link.sh", "cp {{build}}/program {{out}}/program"]
command = "{command}"
timeout = "2s"
memory_limit = "64MiB"
metrics = {{ cost = {{ pattern = 'cost ([-0-9a-z.]+)', scale = "ratio" }} }}

[measure]
warmups = 0
"""

BUILDS = "cp program.sh program; chmod +x program\n"
PROGRAMS = {
    "checkout": "echo 'cost 17'",
    "build": "echo 'cost 17'",
    "link": "echo 'cost 17'",
    "start": "echo 'cost 17'",
    "start without a library": "echo 'x: error while loading shared libraries: libx.so' >&2; exit 127",
    "start without a preloaded object": "LD_PRELOAD=libnowhere.so.1 /bin/true; echo 'cost 17'",
    "crash by exit": "echo 'cost 17'; echo 'assertion failed' >&2; exit 3",
    "crash after an output": "echo 'cost 17'; exit 1",
    "crash by signal": "kill -SEGV $$",
    "timeout": "sleep 60",
    "memory": "exec tail /dev/zero",
    "metric missing": "echo 'nothing to say'",
    "metric no number": "echo 'cost many'",
    "metric zero": "echo 'cost 0'",
    "metric negative": "echo 'cost -2'",
    "metric infinite": "echo 'cost inf'",
    "none": "echo 'cost 17'",
}


def files(name: str, program: str) -> dict[str, str]:
    shell = "/nonexistent/shell" if name == "start" else "/bin/sh"
    return {
        "program.sh": f"#!{shell}\n# {name}\n{program}\n",
        "build.sh": "echo 'error: no rule' >&2; exit 2\n" if name == "build" else BUILDS,
        "link.sh": "echo 'error: undefined reference' >&2; exit 1\n" if name == "link" else "true\n",
    }


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Failure | float]]:
    """The outcome of each kind of revision: a failure or a value."""
    root = tmp_path_factory.mktemp("stages")
    repository = Repository(root / "repository")
    for name, program in PROGRAMS.items():
        repository.commit(files(name, program), subject=name)
    # a history whose objects are damaged: what the first revision needs is gone
    blob = repository.git("rev-parse", f"HEAD~{len(PROGRAMS) - 1}:program.sh")
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (root / "perftrail.toml").write_text(STUDY.format(location=repository.path, command="{out}/program"))
    study = studyfile.load(str(root))
    found: dict[str, Failure | float] = {}
    with open_session(study, store=None) as session:
        revisions = session.source.history()
        target = resolve(study, "cost")
        sampler = Sampler(session, {"cost": target}, revisions, Ledger(session), name="stages")
        for position, name in enumerate(PROGRAMS):
            _, observation = drain(sampler.prepare(position))
            if not isinstance(observation, Unusable):
                _, taken = drain(sampler.take(Measure(order=(position,)), position))
                assert not isinstance(taken, CannotRelink)
                [sample] = taken.batches["cost"].samples
                if sample.value is not None:
                    found[name] = sample.value
            if name not in found:
                found[name] = sampler.failures("cost")[position]
    yield found


WITHOUT_CGROUP = pytest.mark.skipif(
    os.geteuid() != 0, reason="without a cgroup, the program itself reports that it gets no more memory"
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[WITHOUT_CGROUP] if name == "memory" else [])
        for name in PROGRAMS
        if name != "none"
    ],
)
def test_a_failure_is_reported_at_its_stage(failures: dict[str, Failure | float], name: str) -> None:
    failure = failures[name]
    assert isinstance(failure, Failure), failure
    assert failure.stage == name.split(maxsplit=1)[0]
    assert failure.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("build", "no rule"),
        ("link", "undefined reference"),
        ("start without a library", "libx.so"),
        ("start without a preloaded object", "libnowhere.so.1"),
        ("crash by exit", "exit code 3: assertion failed"),
        ("crash after an output", 'exit code 1; its last line is "cost 17"'),
        ("crash by signal", "signal 11"),
        ("timeout", "2.0 s"),
        pytest.param("memory", "64", marks=WITHOUT_CGROUP),
        ("metric zero", "not a value for ratios, which need values above zero"),
        ("metric negative", "not a value for ratios, which need values above zero"),
    ],
)
def test_a_failure_says_why(failures: dict[str, Failure | float], name: str, words: str) -> None:
    failure = failures[name]
    assert isinstance(failure, Failure)
    assert words in failure.message


def test_a_revision_that_works_gives_its_value(failures: dict[str, Failure | float]) -> None:
    assert isinstance(failures["none"], float)


@pytest.mark.parametrize(
    ("errors", "named"),
    [
        (
            "/b/bench.js:1\nError: Cannot find module 'lru'\n  at x (y:1)\n\nNode.js v20.20.2\n",
            "Error: Cannot find module 'lru'",
        ),
        (
            "panic: index out of range [3]\n\ngoroutine 1 [running]:\nmain.main()\n",
            "panic: index out of range [3]",
        ),
        (
            'Exception in thread "main" java.io.IOException: x\n\tat M.main(M.java:3)\n',
            'Exception in thread "main" java.io.IOException: x',
        ),
        (
            "thread 'main' panicked at m.rs:2:5:\nexplained\nnote: run with `RUST_BACKTRACE=1`\n",
            "thread 'main' panicked at m.rs:2:5:",
        ),
        ('Traceback (most recent call last):\n  File "x"\nKeyError\n', "KeyError"),
        ("warning: old\nno rule for x\n", "no rule for x"),
    ],
)
def test_the_error_of_a_language_is_named_and_not_what_follows_it(
    tmp_path: Path, errors: str, named: str
) -> None:
    (tmp_path / "run.err").write_text(errors)
    assert last_line_of(tmp_path / "run.out") == f": {named}"
