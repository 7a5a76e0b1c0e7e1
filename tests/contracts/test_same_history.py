"""One history in seven kinds of source has equal revisions and equal answers.

What the program prints is a count, so no answer depends on how fast the machine is.
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

pytestmark = pytest.mark.slow

REVISIONS = 20
UNBUILDABLE = (7, 8)
RENAMED = 10
MERGE = 12
CULPRIT = 14
"""What makes the cost higher."""

HIDDEN = 9
"""What makes the size larger, just behind what does not build."""

PROGRAM = """\
import pathlib
PARTS = len(list(pathlib.Path(__file__).parent.glob("part_*")))
print("cost", {cost} * PARTS)
print("size", {size} * PARTS)
"""
"""Counts the files beside it: one that another revision left behind doubles the cost."""

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
    """The tree of a revision: the program, a part that is renamed on the way, and what the docs say."""
    cost, size = (130 if number >= CULPRIT else 100), (50 if number >= HIDDEN else 40)
    program = "this is no Python" if number in UNBUILDABLE else PROGRAM.format(cost=cost, size=size)
    part = "part_new" if number >= RENAMED else "part_old"
    return {"perftrail_planted.py": program, part: "a part", "NOTES": f"note {number // 3}"}


def summary(number: int) -> str:
    return HOSTILE[number % len(HOSTILE)] if number % 3 == 0 else f"change {number}"


def date(number: int) -> int:
    """Later revisions are dated earlier, now and then."""
    return 1_600_000_000 + (number * 7 % REVISIONS) * 86_400


@dataclass(frozen=True)
class Kept:
    """One way to keep the history: its `[source]`, each revision's id by its version, and how that is labelled."""

    source: str
    ids: Mapping[str, str]
    label: str = "{}"


def in_git(directory: Path, _: ExitStack) -> Kept:
    repository = Repository(directory / "repository")
    made: list[str] = []
    for number in range(REVISIONS):
        parents = made[-1:]
        if number == MERGE:
            side = made[-3]
            for step in range(2):
                side = repository.commit(
                    {**files(number - 3), "side": f"{step}"},
                    subject=f"side {step}",
                    branch="side",
                    parents=[side],
                )
            parents = [*parents, side]
        made.append(
            repository.commit(files(number), subject=summary(number), parents=parents, date=date(number))
        )
        repository.tag(version(number), made[-1])
    source = f'kind = "git"\nlocation = "{repository.path}"\nrange = "{VERSIONS[0]}..{VERSIONS[-1]}"'
    return Kept(source, dict(zip(VERSIONS, made, strict=True)))


def in_fossil(directory: Path, _: ExitStack) -> Kept:
    repository = FossilRepository(directory / "project.fossil")
    repository.commit({}, subject="initial empty check-in")
    made: list[str] = []
    for number in range(REVISIONS):
        parents = made[-1:] or None
        if number == MERGE:
            side = made[-3]
            for step in range(2):
                side = repository.commit(
                    {**files(number - 3), "side": f"{step}"},
                    subject=f"side {step}",
                    branch="side",
                    parents=[side],
                )
            parents = [made[-1], side]
        made.append(
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
    return Kept(source, dict(zip(VERSIONS, made, strict=True)))


def in_archives(directory: Path, _: ExitStack) -> Kept:
    (directory / "dist").mkdir(parents=True)
    table = []
    for number in range(REVISIONS):
        inside = {f"planted-{number}/{name}": text for name, text in files(number).items()}
        name = f"planted-{number}.{'zip' if number % 2 else 'tar.gz'}"
        (directory / "dist" / name).write_bytes(zip_of(inside) if number % 2 else tar_of(inside))
        table.append(f'  {{ version = "{version(number)}", file = "{name}" }},')
    source = f'kind = "release"\nlocation = "{directory / "dist"}"\narchives = [\n' + "\n".join(table) + "\n]"
    return Kept(source, dict(zip(VERSIONS, VERSIONS, strict=True)))


def in_an_index(directory: Path, stack: ExitStack) -> Kept:
    index = stack.enter_context(serving(PackageIndex()))
    for number in range(REVISIONS):
        beside = files(number)
        program = beside.pop("perftrail_planted.py")
        index.add("perftrail_planted", version(number), program, beside=beside)
    source = f'kind = "release"\nlocation = "pypi:perftrail-planted"\nindex = "{index.url}"'
    return Kept(source, dict(zip(VERSIONS, VERSIONS, strict=True)))


def in_crates(_: Path, stack: ExitStack) -> Kept:
    registry = stack.enter_context(serving_crates(CrateRegistry()))
    for number in range(REVISIONS):
        registry.add("perftrail-planted", f"{version(number)}.0", files(number))
    return released("crates", registry.index, "{}.0")


def in_npm(_: Path, stack: ExitStack) -> Kept:
    registry = stack.enter_context(serving_npm(NpmRegistry()))
    for number in range(REVISIONS):
        registry.add("perftrail-planted", f"{version(number)}.0", files(number))
    return released("npm", registry.url, "{}.0")


def in_debian(directory: Path, _: ExitStack) -> Kept:
    archive = DebianArchive(directory / "archive")
    for number in range(REVISIONS):
        archive.add("perftrail-planted", f"{version(number)}-1", files(number))
    return released("debian", archive.index, "{}-1")


def released(ecosystem: str, index: str, form: str) -> Kept:
    source = f'kind = "release"\nlocation = "{ecosystem}:perftrail-planted"\nindex = "{index}"'
    return Kept(source, {each: form.format(each) for each in VERSIONS}, form)


def perftrail(*arguments: str) -> Any:
    done = start(*arguments, "--json", env={**os.environ, "PIP_CONFIG_FILE": "/dev/null"})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


@dataclass(frozen=True)
class FoundHistory:
    """The history in one of its ways, with the study and what perftrail said of it."""

    kept: Kept
    study: Path
    answer: Mapping[str, Any]


WAYS = [
    pytest.param(in_git, id="git"),
    pytest.param(in_fossil, id="Fossil", marks=needs_fossil),
    pytest.param(in_archives, id="archives"),
    pytest.param(in_an_index, id="a package index"),
    pytest.param(in_crates, id="crates", marks=needs_cargo),
    pytest.param(in_npm, id="npm", marks=needs_npm),
    pytest.param(in_debian, id="Debian", marks=needs_apt),
]


@pytest.fixture(scope="module", params=WAYS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoundHistory]:
    make: Callable[[Path, ExitStack], Kept] = request.param
    directory = tmp_path_factory.mktemp(make.__name__)
    with ExitStack() as stack:
        kept = make(directory, stack)
        study = directory / "study"
        study.mkdir()
        (study / "perftrail.toml").write_text(STUDY.format(source=kept.source, python=sys.executable))
        yield FoundHistory(kept, study, perftrail("find", str(study)))


def test_it_has_the_same_revisions_in_the_same_order(found: FoundHistory, tmp_path: Path) -> None:
    with Launcher() as launcher:
        source = open_source(load(str(found.study)), cache=str(tmp_path), starter=launcher)
        history = source.history()
    assert [revision.label for revision in history] == [found.kept.label.format(each) for each in VERSIONS]
    assert [revision.id for revision in history] == [found.kept.ids[each] for each in VERSIONS]
    assert found.answer["revisions"] == REVISIONS


def test_the_same_revision_is_found_with_the_same_effect(found: FoundHistory) -> None:
    assert found.answer["verdict"] == "found", found.answer
    [change] = found.answer["changes"]
    assert change["revisions"] == [found.kept.ids[version(CULPRIT)]]
    assert change["before"] == pytest.approx(100)
    assert change["after"] == pytest.approx(130)
    assert change["effect"]["value"] == pytest.approx(1.3)


def test_a_change_behind_broken_builds_is_the_same_range(found: FoundHistory) -> None:
    answer = perftrail("find", str(found.study), "--metric", "size")
    assert answer["verdict"] == "range", answer
    [change] = answer["changes"]
    assert change["revisions"] == [found.kept.ids[version(number)] for number in (*UNBUILDABLE, HIDDEN)]
    assert set(answer["unbuildable"]) == {found.kept.ids[version(number)] for number in UNBUILDABLE}


def test_nothing_hostile_was_run(found: FoundHistory) -> None:
    assert not list(found.study.parent.rglob("pwned"))
