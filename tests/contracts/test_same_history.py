"""One history in seven kinds of source has equal revisions and equal answers.

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

pytestmark = pytest.mark.slow("processor")

REVISIONS = 20
UNBUILDABLE = (7, 8)
RENAMED = 10
MERGE = 12
CULPRIT = 14
"""The revision that makes the cost higher."""

HIDDEN = 9
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
class SearchedHistory:
    """The history in one kind of source, with the study and the answer of its search."""

    planted: Planted
    study: Path
    answer: Mapping[str, Any]


KINDS = [
    pytest.param(in_git, id="git"),
    pytest.param(in_fossil, id="Fossil", marks=needs_fossil),
    pytest.param(in_archives, id="archives"),
    pytest.param(in_an_index, id="a package index"),
    pytest.param(in_crates, id="crates", marks=needs_cargo),
    pytest.param(in_npm, id="npm", marks=needs_npm),
    pytest.param(in_debian, id="Debian", marks=needs_apt),
]


@pytest.fixture(scope="module", params=KINDS)
def searched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SearchedHistory]:
    plant: Callable[[Path, ExitStack], Planted] = request.param
    directory = tmp_path_factory.mktemp(plant.__name__)
    with ExitStack() as stack:
        planted = plant(directory, stack)
        study = directory / "study"
        study.mkdir()
        (study / "perftrail.toml").write_text(STUDY.format(source=planted.source, python=sys.executable))
        yield SearchedHistory(planted, study, perftrail("find", str(study)))


def test_every_kind_of_source_has_the_same_revisions_in_the_same_order(
    searched: SearchedHistory, tmp_path: Path
) -> None:
    with Launcher() as launcher:
        source = open_source(load(str(searched.study)), cache=str(tmp_path), starter=launcher)
        history = source.history()
    assert [revision.label for revision in history] == [
        searched.planted.label.format(each) for each in VERSIONS
    ]
    assert [revision.id for revision in history] == [searched.planted.ids[each] for each in VERSIONS]
    assert searched.answer["revisions"] == REVISIONS


def test_the_same_revision_is_found_with_the_same_effect(searched: SearchedHistory) -> None:
    assert searched.answer["verdict"] == "found", searched.answer
    [change] = searched.answer["changes"]
    assert change["revisions"] == [searched.planted.ids[version(CULPRIT)]]
    assert change["before"] == pytest.approx(100)
    assert change["after"] == pytest.approx(130)
    assert change["effect"]["value"] == pytest.approx(1.3)


def test_a_change_behind_broken_builds_is_the_same_range(searched: SearchedHistory) -> None:
    answer = perftrail("find", str(searched.study), "--metric", "size")
    assert answer["verdict"] == "range", answer
    [change] = answer["changes"]
    assert change["revisions"] == [searched.planted.ids[version(number)] for number in (*UNBUILDABLE, HIDDEN)]
    assert set(answer["unbuildable"]) == {searched.planted.ids[version(number)] for number in UNBUILDABLE}


def test_nothing_hostile_was_run(searched: SearchedHistory) -> None:
    assert not list(searched.study.parent.rglob("pwned"))
