"""The lines suggested for a range that fails for one cause are valid in a study file, and fit the cause."""

from __future__ import annotations

import tomllib

import pytest

from perftrail.measure.failure_groups import error_text, group_failures, same_reason, study_line
from perftrail.measure.remedies import remedies
from perftrail.model.build import Failure, Recipe
from perftrail.model.recipe import Build, Era
from perftrail.model.subject import Revision, Subject
from tests.measure.fake_session import a_study

REVISIONS = tuple(Revision(id=f"r{number}") for number in range(5))
TRIED = tuple(Subject(revision=revision, variant="plain") for revision in REVISIONS)
RECIPE = Recipe(directory=".", steps=("make",), env={"CFLAGS": "-O1 -g"})


def failing(*numbers: int, message: str = "error: no", stage: str = "build") -> dict[Subject, Failure]:
    failure = Failure(stage=stage, message=message)  # type: ignore[arg-type] # the stages are those of the model
    return {TRIED[number]: failure for number in numbers}


@pytest.mark.parametrize(
    ("numbers", "range_"),
    [
        ((0, 1), "..r1"),
        ((3, 4), "r3.."),
        ((2,), "r2..r2"),
        ((1, 2, 3), "r1..r3"),
        ((0, 2), None),
        ((0, 1, 2, 3, 4), None),
    ],
)
def test_a_failing_range_is_neighbours_that_fail_alike_and_not_all(
    numbers: tuple[int, ...], range_: str | None
) -> None:
    [group] = group_failures(TRIED, failing(*numbers))
    assert (group.failed_range.range if group.failed_range else None) == range_
    assert bool(remedies(group, RECIPE)) == (range_ is not None)


@pytest.mark.parametrize(
    ("message", "key", "value"),
    [
        (
            "work.c:3:10: fatal error: sys/old.h: No such file or directory",
            "overlay",
            {"compat/sys/old.h": "include/sys/old.h"},
        ),
        ("a.c:1:10: fatal error: 'old.h' file not found", "overlay", {"compat/old.h": "include/old.h"}),
        ("a.c:1:10: fatal error: ../../x.h: No such file or directory", "patch", ["fixes/old.patch"]),
        (
            "/usr/bin/ld: /tmp/ccAAAAAA.o:(.bss+0x0): multiple definition of `x'; b.o: first defined here",
            "env",
            {"CFLAGS": "-O1 -g -fcommon"},
        ),
        (
            "a.c:1:1: error: implicit declaration of function 'f' [-Wimplicit-function-declaration]",
            "env",
            {"CFLAGS": "-O1 -g -Wno-error=implicit-function-declaration"},
        ),
        ("a.cpp:1:1: error: x [-Werror=narrowing]", "env", {"CXXFLAGS": "-O2 -Wno-error=narrowing"}),
        ("a.c:4:1: error: unknown type name 'this'", "patch", ["fixes/old.patch"]),
        ('a.c:4:1: error: "\x1b[31m\\" \u202e', "patch", ["fixes/old.patch"]),
    ],
)
def test_a_repair_fits_its_cause_and_can_be_pasted(message: str, key: str, value: object) -> None:
    [group] = group_failures(TRIED, failing(0, 1, message=message))
    repair, skip = remedies(group, RECIPE)
    [era] = tomllib.loads("\n".join(repair.lines))["build"]["when"]
    assert era == {"range": "..r1", key: value}
    [skip] = tomllib.loads("\n".join(skip.lines))["source"]["skip"]
    assert skip == {"range": "..r1", "reason": error_text(message)}


@pytest.mark.parametrize(
    ("stage", "message"),
    [("crash", "exit code 7"), ("build", "ld: cannot find -lold"), ("checkout", "no tree")],
)
def test_failures_that_no_repair_can_fix_get_only_a_skip(stage: str, message: str) -> None:
    [group] = group_failures(TRIED, failing(0, stage=stage, message=message))
    assert [each.lines[0] for each in remedies(group, RECIPE)] == ["[[source.skip]]"]


def test_temporary_names_of_a_compiler_do_not_distinguish_failures() -> None:
    line = "/usr/bin/ld: /b/0a/tmp/cc{}.o:(.bss+0x0): multiple definition of `x'"
    failures = {
        **failing(1, message=line.format("exOEQC")),
        **failing(2, message=line.format("7TqK3o").replace("0a", "0b")),
    }
    [group] = group_failures(TRIED, failures)
    assert group.failed_range is not None
    assert group.failed_range.range == "r1..r2"


OLD, PATCHED = Era(range="..r1", steps=("make old",)), Era(range="..", patch=("fixes/old.patch",))


def test_failures_of_two_ranges_name_both_lines() -> None:
    study = a_study(build=Build(steps=("make",), when=(OLD, PATCHED)))
    failures = failing(0, 2, 3)
    message = same_reason(
        failures, study, eras_of=lambda each: (OLD, PATCHED) if each == TRIED[0] else (PATCHED,)
    )
    assert (
        "Correct /study/perftrail.toml:1 (build.when[0].steps) and /study/perftrail.toml:1 (build.steps)"
        in message
    )


@pytest.mark.parametrize(
    ("stage", "message", "key"),
    [
        ("build", "fixes/old.patch: x.c: no such file", "build.when[1].patch"),
        ("build", "fixes/all.patch: x.c: no such file", "build.patch"),
        ("build", 'overlay to "x.h": this revision has a directory there', "build.overlay"),
        ("build", 'build.directory "lib": no such directory in this revision', "build.directory"),
        ("checkout", "the repository has no such tree", "source.location"),
        ("fixture", "setup: exit code 1: make data", "benchmark.work.setup"),
        ("fixture", "cannot start the fixture", "benchmark.work.command"),
        ("fixture", "service db: setup: exit code 1: make data", "service.db.setup"),
        ("fixture", "service db ended: exit code 1", "service.db.command"),
    ],
)
def test_repairs_checkouts_and_fixtures_name_their_own_key(stage: str, message: str, key: str) -> None:
    build = Build(steps=("make",), patch=("fixes/all.patch",), when=(OLD, PATCHED))
    study = a_study(build=build)
    [failure] = failing(0, message=message, stage=stage).values()
    assert study_line(failure, study, "work", TRIED[0], (OLD, PATCHED)).endswith(f"({key})")
