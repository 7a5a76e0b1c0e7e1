"""A library and an application, each with its history: one is searched, the other pinned."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import found, perftrail, revisions
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow

LIBRARY_CULPRIT, APPLICATION_CULPRIT = 7, 4

LIBRARY = "int library_cost(void) {{ return {cost}; }} /* {number} */\n"
APPLICATION = """\
#include <stdio.h>
#include <sys/random.h>
int library_cost(void);
int main(void) {{ /* {number} */
    unsigned char noise = 0;
    if (getrandom(&noise, 1, 0) != 1) return 1;
    printf("cost %d.%d\\n", library_cost() + {cost}, noise % 10);
    return 0;
}}
"""

STUDY = """\
[source]
kind = "git"
location = "library"
range = "v0..main"
{at}

[sources.app]
kind = "git"
location = "app"
{app}

[build]
steps = ["cc -c library.c", "ar rcs library.a library.o"]
outputs = ["library.a"]

[benchmark.whole]
build = ["cc -o {{out}}/app {{source.app}}/app.c {{build}}/library.a"]
command = "{{out}}/app"
metrics = {{ cost = {{ pattern = 'cost ([0-9.]+)' }} }}

[measure]
warmups = 0
invocations = 3

[find]
metric = "cost"
"""


@dataclass(frozen=True)
class Both:
    """A study of a library and an application, and the commits of each, oldest first."""

    study: Path
    library: tuple[str, ...]
    application: tuple[str, ...]

    @property
    def made(self) -> int:
        """How many builds of the library there are."""
        return len(list((self.study / ".perftrail" / "builds").glob("*/built.json")))


def a_pair(root: Path, *, at: str = "", app: str = 'at = "v3"') -> Both:
    """From one revision on the library costs 30 more of some 150, and from another on the application does."""
    library, application = Repository(root / "library"), Repository(root / "app")
    made = []
    for repository, name, text, culprit in (
        (library, "library.c", LIBRARY, LIBRARY_CULPRIT),
        (application, "app.c", APPLICATION, APPLICATION_CULPRIT),
    ):
        ids = []
        for number in range(10):
            cost = 80 if number < culprit else 110
            ids.append(
                repository.commit({name: text.format(cost=cost, number=number)}, subject=f"no. {number}")
            )
            repository.tag(f"v{number}", ids[-1])
        made.append(tuple(ids))
    (root / "perftrail.toml").write_text(STUDY.format(at=at, app=app))
    return Both(study=root, library=made[0], application=made[1])


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return a_pair(tmp_path_factory.mktemp("both"))


@pytest.fixture(scope="module")
def in_library(both: Both) -> dict[str, Any]:
    return found(both.study)


@pytest.fixture(scope="module")
def in_application(both: Both, in_library: dict[str, Any]) -> dict[str, Any]:
    """Found after the other, in the same store: neither may take the other's samples for its own."""
    return found(both.study, "--along", "app", "--at", "main=v2")


def test_a_culprit_in_the_library_is_found_with_a_pinned_application(
    both: Both, in_library: dict[str, Any]
) -> None:
    assert in_library["verdict"] == "found", in_library
    assert revisions(in_library) == [[both.library[LIBRARY_CULPRIT]]]
    assert (in_library["along"], in_library["pins"]) == ("main", {"app": both.application[3]})
    assert in_library["changes"][0]["before"] == pytest.approx(160.5, abs=1.0)


def test_a_culprit_in_the_application_is_found_with_a_pinned_library(
    both: Both, in_application: dict[str, Any]
) -> None:
    assert in_application["verdict"] == "found", in_application
    assert revisions(in_application) == [[both.application[APPLICATION_CULPRIT]]]
    assert (in_application["along"], in_application["pins"]) == ("app", {"main": both.library[2]})


def test_the_library_is_built_once_while_the_application_is_searched(
    both: Both, in_library: dict[str, Any], in_application: dict[str, Any]
) -> None:
    assert both.made <= in_library["builds"] + 1


def test_an_answer_names_the_searched_source_and_the_pins(both: Both, in_application: dict[str, Any]) -> None:
    lines = perftrail("find", both.study, "--along", "app", "--at", "main=v2").stdout.splitlines()
    assert lines[0].startswith("found: ")
    assert lines[1].strip() == f"along app, with main at v2 ({both.library[2][:10]})"
    plan = perftrail("check", both.study).stdout
    assert f"along main, with app at v3 ({both.application[3][:10]})" in plan


def test_a_repeated_search_measures_nothing(
    both: Both, in_library: dict[str, Any], in_application: dict[str, Any]
) -> None:
    assert found(both.study) == in_library
    assert found(both.study, "--along", "app", "--at", "main=v2") == in_application


def test_searches_with_other_pins_are_separate(both: Both, in_application: dict[str, Any]) -> None:
    told = json.loads(perftrail("show", both.study, "--search", "1", "--json").stdout)
    assert [each["question"]["along"] for each in told["searches"]] == ["main", "app"]
    shown = perftrail("show", both.study, "--search", "2").stdout
    assert f"along app, with main at {both.library[2][:10]}" in shown


def test_samples_with_another_pin_are_never_pooled(both: Both, in_library: dict[str, Any]) -> None:
    mixed = [*(f"--only=revision={id_}" for id_ in both.library[:1]), "--at", "app=v8"]
    perftrail("run", both.study, *mixed)
    held = {
        pin: json.loads(perftrail("show", both.study, "--at", f"app={pin}", "--json").stdout)
        for pin in ("v3", "v8")
    }
    assert {row["pins"]["app"] for row in held["v8"]} == {both.application[8]}
    (row,) = (row for row in held["v8"] if row["revision"] == both.library[0])
    assert row["estimate"]["value"] == pytest.approx(190.5, abs=1.0)
    (old,) = (row for row in held["v3"] if row["revision"] == both.library[0])
    assert old["estimate"]["value"] == pytest.approx(160.5, abs=1.0)


def test_a_pin_of_the_command_line_that_is_not_a_revision_is_reported_with_its_remedy(both: Both) -> None:
    told = perftrail("find", both.study, "--at", "app=v99", expect=2).stderr
    assert "--at app=v99: " in told
    assert "name a revision of app, or omit it to use the last of its range" in told


def test_a_pin_that_is_not_a_revision_is_reported_with_its_line(tmp_path: Path) -> None:
    pair = a_pair(tmp_path, app='at = "v99"')
    told = perftrail("check", pair.study, expect=2).stderr
    assert "perftrail.toml:10: sources.app.at: " in told
    assert "v99" in told
    assert "name a revision of app" in told


SCRIPT = 'echo "cost $(($(cat "$1/cost") + {cost})).$(($(od -An -N1 -tu1 /dev/urandom) % 10))"\n'

WITH_PROGRAM = """\
[source]
{source}

[sources.bench]
kind = "directory"
location = "bench"

[benchmark.whole]
command = "sh {{source.bench}}/run.sh {{build}}"
metrics = {{ cost = {{ pattern = 'cost ([0-9.]+)' }} }}

[measure]
warmups = 0
invocations = 3

[find]
metric = "cost"
"""


def test_a_program_in_a_plain_directory_is_identified_by_its_content(tmp_path: Path) -> None:
    library = Repository(tmp_path / "library")
    ids = [library.commit({"cost": f"{80 if number < 5 else 110}"}) for number in range(8)]
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "run.sh").write_text(SCRIPT.format(cost=80))
    study = tmp_path / "perftrail.toml"
    study.write_text(WITH_PROGRAM.format(source='kind = "git"\nlocation = "library"'))
    first = found(study)
    assert revisions(first) == [[ids[5]]]
    (tmp_path / "bench" / "run.sh").write_text(SCRIPT.format(cost=20))
    second = found(study)
    assert revisions(second) == [[ids[5]]]
    assert first["pins"] != second["pins"]
    assert second["changes"][0]["before"] == pytest.approx(first["changes"][0]["before"] - 60, abs=1.0)


def test_releases_are_measured_with_an_application(tmp_path: Path) -> None:
    versions = [f"1.{number}" for number in range(4)]
    for number, version in enumerate(versions):
        (tmp_path / "kept" / version).mkdir(parents=True)
        (tmp_path / "kept" / version / "cost").write_text(f"{80 if number < 2 else 110}")
        shutil.make_archive(str(tmp_path / "kept" / version), "tar", tmp_path / "kept" / version)
    table = "".join(
        f'[[source.archives]]\nversion = "{version}"\nfile = "{version}.tar"\n' for version in versions
    )
    application = Repository(tmp_path / "bench")
    application.commit({"run.sh": SCRIPT.format(cost=80)})
    study = tmp_path / "perftrail.toml"
    text = WITH_PROGRAM.format(source=f'kind = "release"\nlocation = "kept"\n{table}')
    study.write_text(text.replace('kind = "directory"', 'kind = "git"'))
    assert revisions(found(study)) == [["1.2"]]
