"""Studies for the dashboard's tests: real repositories with full stores, with hostile text in every field."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.report.filling import Size, fill
from perftrail import studyfile
from perftrail.model.build import BuildRecord, Failure
from perftrail.model.measurement import FailedInvocation, InvocationKey, Machine, Measurement
from perftrail.model.profile import Function, Profile
from perftrail.model.store_records import SearchRecord, StepRecord
from perftrail.opening import open_view, results_directory
from perftrail.process.machine import read_machine
from perftrail.results_directory import DATABASE
from perftrail.stats.call_tree import call_tree
from perftrail.stats.profile_comparison import compare_profiles
from perftrail.store import open_store
from perftrail.verbs.explain.functions import call_tree_json, explanation_record, functions_json

if TYPE_CHECKING:
    from perftrail.model.json_data import Json
    from perftrail.model.store_records import ExplanationRecord
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.store.sql import SqlStore

SCRIPT = "<script>alert('in')</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}"
"""The text of every field that a repository, a benchmark or a person may fill."""

SECRET = "what lies outside the results"
REVISIONS = 60


@dataclass(frozen=True, kw_only=True)
class Hostile:
    """A directory with two studies, and ids of the first one's content."""

    root: Path
    study: str
    revisions: tuple[Revision, ...]
    runnable: str
    machine: str
    other_machine: str
    broken: str
    search: str


def make_studies(root: Path, *, revisions: int = REVISIONS) -> Hostile:
    """Make both: `alpha` was searched, and all its texts are hostile; `beta` was only run."""
    for name, size in (
        ("alpha", Size(revisions=revisions, benchmarks=2, invocations=5, more=1)),
        ("beta", Size(revisions=12, benchmarks=1, invocations=8)),
    ):
        (root / name).mkdir()
        fill(root / name, size, seed=7)
    (root / "secret.txt").write_text(SECRET)
    return _poison(root, root / "alpha" / "perftrail.toml")


def start_again(study: Study) -> None:
    """Store one more start of a study."""
    with open_store(str(results_directory(study, None) / DATABASE), access="write") as store:
        key = InvocationKey(
            runnable=store.runnables()[0].key, machine=read_machine().id, phase="sample", ordinal=77
        )
        store.add(Measurement(key=key, started="2025-11-21", seconds=1.0, values={"seconds": 1.0}))


def more_steps(directory: Path, count: int) -> None:
    """Store a search of so many steps, which has not ended."""
    study = studyfile.load(str(directory / "perftrail.toml"))
    with open_view(study, store=None) as view:
        revisions = view.source.history()
    record = SearchRecord(
        key="7" * 64,
        machine=read_machine().id,
        question=_question(revisions),
        started="2025-11-21T10:00:00+00:00",
    )
    with open_store(str(results_directory(study, None) / DATABASE), access="write") as store:
        store.open_search(record)
        for number in range(1, count + 1):
            step = StepRecord(
                number=number,
                action={"measure": revisions[0].id, "position": 0, "readings": 1},
                observation={"values": [1.0], "seconds": 1.0},
                belief={},
                words=f"measured, step {number}",
            )
            store.add_step(record.key, record.machine, step)


def _poison(root: Path, file: Path) -> Hostile:
    text = file.read_text().splitlines()
    at = next(number for number, line in enumerate(text) if line.startswith("title"))
    text[at] = f"title = '''{SCRIPT}'''"
    file.write_text("\n".join(text) + "\n")
    study = studyfile.load(str(file))
    results = results_directory(study, None)
    _commit(root / "alpha" / "history")
    shutil.rmtree(results / "sources", ignore_errors=True)  # or the cached answer would be used
    with open_view(study, store=None) as view:
        revisions = view.source.history()
    machine, other = read_machine().id, "f" * 16
    log = results / "logs" / "runs" / "one.out"
    log.parent.mkdir(parents=True)
    log.write_text(f"printed {SCRIPT}\n")
    key = SearchRecord(
        key="5" * 64, machine=machine, question=_question(revisions), started="2025-11-21T10:00:00+00:00"
    )
    with open_store(str(results / DATABASE), access="write") as store:
        store.add_machine(Machine(id=other, facts={SCRIPT: SCRIPT}))
        runnable = store.runnables()[0].key
        _starts(store, runnable, (machine, other), log=log, results=results, root=root)
        store.add_build(
            BuildRecord(
                key="b" * 64,
                revision=revisions[3].id,
                variant="plain",
                benchmark=SCRIPT,
                finished="2025-11-21T02:03:04+00:00",
                outcome=Failure(stage="build", message=SCRIPT, log=str(log)),
            )
        )
        _search(store, key, revisions)
    return Hostile(
        root=root,
        study="alpha",
        revisions=revisions,
        runnable=runnable,
        machine=machine,
        other_machine=other,
        broken="b" * 64,
        search=key.key,
    )


def _starts(
    store: SqlStore, runnable: str, machines: tuple[str, str], *, log: Path, results: Path, root: Path
) -> None:
    """Store starts in which every text is hostile, and whose logs are in forbidden places."""
    machine, other = machines
    for ordinal, named in enumerate(
        (str(log), str(root / "secret.txt"), f"{results}/logs/../../../secret.txt")
    ):
        store.add(
            Measurement(
                key=InvocationKey(runnable=runnable, machine=other, phase="sample", ordinal=ordinal),
                started=SCRIPT,
                seconds=1.0,
                values={"seconds": 1.0, SCRIPT: 2.0},
                methods={SCRIPT: SCRIPT},
                flags=(SCRIPT,),
                log=named,
            )
        )
    store.add(
        FailedInvocation(
            key=InvocationKey(runnable=runnable, machine=machine, phase="sample", ordinal=99),
            started="2025-11-21T02:03:04+00:00",
            seconds=0.1,
            failure=Failure(stage="crash", message=SCRIPT, log=str(log)),
        )
    )


def _search(store: SqlStore, key: SearchRecord, revisions: tuple[Revision, ...]) -> None:
    """Store a search that has ended, and one that has not."""
    store.open_search(key)
    for step in _steps(revisions):
        store.add_step(key.key, key.machine, step)
    store.close_search(key.key, key.machine, _answer(revisions))
    store.add_explanation(_explanation(revisions[culprit(revisions)], revisions[culprit(revisions) - 1]))
    later = replace(key, key="6" * 64, question={**_question(revisions), "metric": SCRIPT})
    store.open_search(later)
    for step in _steps(revisions)[:4]:
        store.add_step(later.key, key.machine, step)


def culprit(revisions: tuple[Revision, ...]) -> int:
    """Return the position of the change that was found; the last revision was not searched."""
    return 37 * (len(revisions) - 1) // 60


def _explanation(revision: Revision, against: Revision) -> ExplanationRecord:
    """Return the functions that changed the cost of the culprit."""
    names = [Function(f"{SCRIPT} {number}", f"{SCRIPT}.c", 7) for number in range(5)]
    before, after = (
        Profile(events=("Ir",), own={each: (100.0 + extra * at,) for at, each in enumerate(names)})
        for extra in (1.0, 90.0)
    )
    functions = functions_json(
        compare_profiles([before], [after]), method="callgrind", pairs=1, shown_file=str
    )
    return explanation_record(
        revision.id,
        against.id,
        [{"benchmark": "bench-00", "variant": "plain", "point": {}, "functions": functions}],
        tree=call_tree_json(call_tree(before, after), benchmark="bench-00", point={}, shown_file=str),
    )


def _commit(repository: Path) -> None:
    """Add a tag and a commit whose names are scripts."""
    git = ["git", "-C", str(repository), "-c", f"user.name={SCRIPT}", "-c", "user.email=a@example.invalid"]
    subprocess.run([*git, "tag", "<script>alert('tag')</script>", "HEAD~5"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", SCRIPT], check=True)


def _question(revisions: tuple[Revision, ...]) -> dict[str, Json]:
    return {
        "metric": "bench-00.seconds",
        "variant": "plain",
        "benchmark": "bench-00",
        "revisions": len(revisions),
        "first": revisions[0].id,
        "last": revisions[-1].id,
        "threshold": 0.05,
        "confidence": 0.99,
        "thorough": False,
        "priors": [SCRIPT],
    }


def _steps(revisions: tuple[Revision, ...]) -> list[StepRecord]:
    count = len(revisions) - 1
    positions = (0, count - 1, count // 2, 3 * count // 4, culprit(revisions))
    return [
        StepRecord(
            number=number,
            action={"measure": revisions[position].id, "position": position, "readings": 3},
            observation={"values": [1.0, 1.01, 0.99], "seconds": 3.0},
            belief={}
            if number < 2
            else {
                "no_change": 0.5 / number,
                "candidates": count // number,
                "built": [
                    {"revision": revisions[at].id, "position": at, "changed": at / (count - 1)}
                    for at in sorted(positions[:number])
                ],
            },
            words=f"measured {position}: {SCRIPT}",
        )
        for number, position in enumerate(positions, 1)
    ]


def _answer(revisions: tuple[Revision, ...]) -> dict[str, Json]:
    return {
        "verdict": "found",
        "metric": "bench-00.seconds",
        "benchmark": "bench-00",
        "variant": "plain",
        "unit": "s",
        "better": "lower",
        "revisions": len(revisions),
        "builds": 5,
        "unbuildable": [],
        "failures": [],
        "broken_ranges": [],
        "invocations": 15,
        "discarded": 0,
        "marked": 0,
        "seconds": 15.0,
        "confidence": 0.99,
        "minimum_detectable": 0.02,
        "machine": "here",
        "other_machines": [SCRIPT],
        "priors": [],
        "reason": SCRIPT,
        "changes": [
            {
                "revisions": [revisions[culprit(revisions)].id],
                "confidence": 0.997,
                "before": 1.0,
                "after": 1.1,
                "effect": {"value": 1.1, "low": 1.08, "high": 1.12, "confidence": 0.95},
                "kind": "step",
                "notes": [],
                "inside": None,
            }
        ],
    }
