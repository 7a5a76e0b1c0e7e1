"""One history in seven kinds of source has equal revisions and equal answers, each of them in the long tests.

The program prints a count, so no answer depends on the speed of the machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perftrail.process.launcher import Launcher
from perftrail.sources import open_source
from perftrail.studyfile import load
from tests.e2e.histories import HOSTILE
from tests.sources.archives import tar_of, zip_of
from tests.sources.crates import CrateRegistry, needs_cargo
from tests.sources.crates import serving as serving_crates
from tests.sources.debian_archive import DebianArchive, needs_apt
from tests.sources.fossil_repositories import FossilRepository, needs_fossil
from tests.sources.npm_packages import NpmRegistry, needs_npm
from tests.sources.npm_packages import serving as serving_npm
from tests.sources.packages import PackageIndex, serving
from tests.sources.repositories import Repository
from tests.starting import start

REVISIONS = 12
UNBUILDABLE = (4, 5)
RENAMED = 7
MERGE = 8
CULPRIT = 9
"""The revision that makes the cost higher."""

HIDDEN = 6
"""The revision that makes the size larger, directly after unbuildable ones."""

PROGRAM = """\
import pathlib
PARTS = len(list(pathlib.Path(__file__).parent.glob("part_*")))
print("cost", {cost} * PARTS)
print("size", {size} * PARTS)
"""
"""Counts the parts in its directory: a leftover part of another revision doubles the cost."""

STUDY = """\
[source]
{source}

[build]
steps = ["{python} -m py_compile perftrail_planted.py"]
outputs = ["perftrail_planted.py", "part_*"]

[benchmark.count]
command = "{python} {{build}}/perftrail_planted.py"
[benchmark.count.metrics]
cost = {{ pattern = 'cost ([0-9]+)' }}
size = {{ pattern = 'size ([0-9]+)' }}

[measure]
warmups = 0

[find]
metric = "cost"
threshold = 0.05
"""


def version(number: int) -> str:
    return f"1.{number}"


VERSIONS = [version(number) for number in range(REVISIONS)]


def files(number: int) -> dict[str, str]:
    """Return the files of a revision: the program, a part that one revision renames, and notes."""
    cost, size = (130 if number >= CULPRIT else 100), (50 if number >= HIDDEN else 40)
    program = "this is no Python" if number in UNBUILDABLE else PROGRAM.format(cost=cost, size=size)
    part = "part_new" if number >= RENAMED else "part_old"
    return {"perftrail_planted.py": program, part: "a part", "NOTES": f"note {number // 3}"}


def summary(number: int) -> str:
    return HOSTILE[number % len(HOSTILE)] if number % 3 == 0 else f"change {number}"


def date(number: int) -> int:
    """Return a date that is earlier than those of some previous revisions."""
    return 1_600_000_000 + (number * 7 % REVISIONS) * 86_400


@dataclass(frozen=True)
class Planted:
    """The history in one kind of source: the `[source]` table, the ids by version, and the format of the labels."""

    source: str
    ids: Mapping[str, str]
    label: str = "{}"


def in_git(directory: Path, _: ExitStack) -> Planted:
    repository = Repository(directory / "repository")
    ids: list[str] = []
    for number in range(REVISIONS):
        parents = ids[-1:]
        if number == MERGE:
            side = ids[-3]
            for step in range(2):
                side = repository.commit(
                    {**files(number - 3), "side": f"{step}"},
                    subject=f"side {step}",
                    branch="side",
                    parents=[side],
                )
            parents = [*parents, side]
        ids.append(
            repository.commit(files(number), subject=summary(number), parents=parents, date=date(number))
        )
        repository.tag(version(number), ids[-1])
    source = f'kind = "git"\nlocation = "{repository.path}"\nrange = "{VERSIONS[0]}..{VERSIONS[-1]}"'
    return Planted(source, dict(zip(VERSIONS, ids, strict=True)))


def in_fossil(directory: Path, _: ExitStack) -> Planted:
    repository = FossilRepository(directory / "project.fossil")
    repository.commit({}, subject="initial empty check-in")
    ids: list[str] = []
    for number in range(REVISIONS):
        parents = ids[-1:] or None
        if number == MERGE:
            side = ids[-3]
            for step in range(2):
                side = repository.commit(
                    {**files(number - 3), "side": f"{step}"},
                    subject=f"side {step}",
                    branch="side",
                    parents=[side],
                )
            parents = [ids[-1], side]
        ids.append(
            repository.commit(
                files(number),
                subject=summary(number),
                parents=parents,
                date=date(number),
                tags=[version(number)],
                renamed={"part_new": "part_old"} if number == RENAMED else None,
            )
        )
    source = f'kind = "fossil"\nlocation = "{repository.make()}"\nrange = "{VERSIONS[0]}..{VERSIONS[-1]}"'
    return Planted(source, dict(zip(VERSIONS, ids, strict=True)))


def in_archives(directory: Path, _: ExitStack) -> Planted:
    (directory / "dist").mkdir(parents=True)
    table = []
    for number in range(REVISIONS):
        members = {f"planted-{number}/{name}": text for name, text in files(number).items()}
        name = f"planted-{number}.{'zip' if number % 2 else 'tar.gz'}"
        (directory / "dist" / name).write_bytes(zip_of(members) if number % 2 else tar_of(members))
        table.append(f'  {{ version = "{version(number)}", file = "{name}" }},')
    source = f'kind = "release"\nlocation = "{directory / "dist"}"\narchives = [\n' + "\n".join(table) + "\n]"
    return Planted(source, dict(zip(VERSIONS, VERSIONS, strict=True)))


def in_an_index(directory: Path, stack: ExitStack) -> Planted:
    index = stack.enter_context(serving(PackageIndex()))
    for number in range(REVISIONS):
        other_files = files(number)
        program = other_files.pop("perftrail_planted.py")
        index.add("perftrail_planted", version(number), program, other_files=other_files)
    source = f'kind = "release"\nlocation = "pypi:perftrail-planted"\nindex = "{index.url}"'
    return Planted(source, dict(zip(VERSIONS, VERSIONS, strict=True)))


def in_crates(_: Path, stack: ExitStack) -> Planted:
    registry = stack.enter_context(serving_crates(CrateRegistry()))
    for number in range(REVISIONS):
        registry.add("perftrail-planted", f"{version(number)}.0", files(number))
    return released("crates", registry.index, "{}.0")


def in_npm(_: Path, stack: ExitStack) -> Planted:
    registry = stack.enter_context(serving_npm(NpmRegistry()))
    for number in range(REVISIONS):
        registry.add("perftrail-planted", f"{version(number)}.0", files(number))
    return released("npm", registry.url, "{}.0")


def in_debian(directory: Path, _: ExitStack) -> Planted:
    archive = DebianArchive(directory / "archive")
    for number in range(REVISIONS):
        archive.add("perftrail-planted", f"{version(number)}-1", files(number))
    return released("debian", archive.index, "{}-1")


def released(ecosystem: str, index: str, form: str) -> Planted:
    source = f'kind = "release"\nlocation = "{ecosystem}:perftrail-planted"\nindex = "{index}"'
    return Planted(source, {each: form.format(each) for each in VERSIONS}, form)


def perftrail(*arguments: str) -> Any:
    done = start(*arguments, "--json", env={**os.environ, "PIP_CONFIG_FILE": "/dev/null"})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


@dataclass(frozen=True)
class History:
    """The history in one kind of source, with a study of it."""

    planted: Planted
    study: Path


KINDS: dict[str, tuple[Callable[[Path, ExitStack], Planted], *tuple[pytest.MarkDecorator, ...]]] = {
    "git": (in_git,),
    "Fossil": (in_fossil, needs_fossil),
    "archives": (in_archives,),
    "a package index": (in_an_index,),
    "crates": (in_crates, needs_cargo),
    "npm": (in_npm, needs_npm),
    "Debian": (in_debian, needs_apt),
}


def every_kind(*, long: bool) -> pytest.MarkDecorator:
    """Parametrise a test over the kinds; git alone unless in a `long` test, where each kind takes some seconds."""
    params = []
    for name, (_, *own) in KINDS.items():
        marks = [pytest.mark.slow("starts")] if long else []
        marks += [pytest.mark.long] if long and name != "git" else []
        params.append(pytest.param(name, id=name, marks=[*own, *marks]))
    return pytest.mark.parametrize("history", params, indirect=True)


@pytest.fixture(scope="module")
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    plant, *_ = KINDS[request.param]
    directory = tmp_path_factory.mktemp(plant.__name__)
    with ExitStack() as stack:
        planted = plant(directory, stack)
        study = directory / "study"
        study.mkdir()
        (study / "perftrail.toml").write_text(STUDY.format(source=planted.source, python=sys.executable))
        yield History(planted, study)


@pytest.fixture(scope="module")
def answer(history: History) -> Mapping[str, Any]:
    """The answer of the search for the change."""
    found: Mapping[str, Any] = perftrail("find", str(history.study))
    return found


@every_kind(long=False)
def test_every_kind_of_source_has_the_same_revisions_in_the_same_order(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with Launcher() as launcher:
        source = open_source(load(str(history.study)), cache=str(tmp_path), starter=launcher)
        revisions = source.history()
    assert [revision.label for revision in revisions] == [
        history.planted.label.format(each) for each in VERSIONS
    ]
    assert [revision.id for revision in revisions] == [history.planted.ids[each] for each in VERSIONS]


@every_kind(long=True)
def test_the_same_revision_is_found_with_the_same_effect(history: History, answer: Mapping[str, Any]) -> None:
    assert answer["verdict"] == "found", answer
    assert answer["revisions"] == REVISIONS
    [change] = answer["changes"]
    assert change["revisions"] == [history.planted.ids[version(CULPRIT)]]
    assert change["before"] == pytest.approx(100)
    assert change["after"] == pytest.approx(130)
    assert change["effect"]["value"] == pytest.approx(1.3)


@every_kind(long=True)
def test_a_change_behind_broken_builds_is_the_same_range(history: History) -> None:
    answer = perftrail("find", str(history.study), "--metric", "size")
    assert answer["verdict"] == "range", answer
    [change] = answer["changes"]
    assert change["revisions"] == [history.planted.ids[version(number)] for number in (*UNBUILDABLE, HIDDEN)]
    assert set(answer["unbuildable"]) == {history.planted.ids[version(number)] for number in UNBUILDABLE}


@every_kind(long=True)
@pytest.mark.usefixtures("answer")
def test_nothing_hostile_was_run(history: History) -> None:
    assert not list(history.study.parent.rglob("pwned"))
