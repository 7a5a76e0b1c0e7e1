"""A library and an application, each with its history: one is searched, the other pinned."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import find_answer, perftrail, perftrail_here, revisions
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

LIBRARY_CULPRIT, APPLICATION_CULPRIT = 6, 4

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
pin = false
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
class TwoSources:
    """A study of a library and an application, and the commits of each, oldest first."""

    study: Path
    library: tuple[str, ...]
    application: tuple[str, ...]

    @property
    def library_builds(self) -> int:
        """The number of builds of the library; their layouts have no log of their own."""
        results = self.study / ".perftrail"
        built = [each.parent.name for each in (results / "builds").glob("*/built.json")]
        return sum((results / "logs" / f"{key}.log").is_file() for key in built)


def commit_two_sources(root: Path, *, at: str = "", app: str = 'at = "v3"') -> TwoSources:
    """Commit a library and an application, each of which costs 30 more from its culprit on, and write a study."""
    library, application = Repository(root / "library"), Repository(root / "app")
    commits = []
    for repository, name, text, culprit in (
        (library, "library.c", LIBRARY, LIBRARY_CULPRIT),
        (application, "app.c", APPLICATION, APPLICATION_CULPRIT),
    ):
        ids = []
        for number in range(9):
            cost = 80 if number < culprit else 110
            ids.append(
                repository.commit({name: text.format(cost=cost, number=number)}, subject=f"no. {number}")
            )
            repository.tag(f"v{number}", ids[-1])
        commits.append(tuple(ids))
    (root / "perftrail.toml").write_text(STUDY.format(at=at, app=app))
    return TwoSources(study=root, library=commits[0], application=commits[1])


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> TwoSources:
    return commit_two_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def library_answer(sources: TwoSources) -> dict[str, Any]:
    return find_answer(sources.study)


@pytest.fixture(scope="module")
def application_answer(sources: TwoSources, library_answer: dict[str, Any]) -> dict[str, Any]:
    """The second search in the same store: neither search may reuse samples of the other."""
    return find_answer(sources.study, "--along", "app", "--at", "main=v2")


def test_a_culprit_in_the_library_is_found_with_a_pinned_application(
    sources: TwoSources, library_answer: dict[str, Any]
) -> None:
    assert library_answer["verdict"] == "found", library_answer
    assert revisions(library_answer) == [[sources.library[LIBRARY_CULPRIT]]]
    assert (library_answer["along"], library_answer["pins"]) == ("main", {"app": sources.application[3]})
    assert library_answer["changes"][0]["before"] == pytest.approx(160.5, abs=1.0)


def test_a_culprit_in_the_application_is_found_with_a_pinned_library(
    sources: TwoSources, application_answer: dict[str, Any]
) -> None:
    assert application_answer["verdict"] == "found", application_answer
    assert revisions(application_answer) == [[sources.application[APPLICATION_CULPRIT]]]
    assert (application_answer["along"], application_answer["pins"]) == ("app", {"main": sources.library[2]})


def test_the_library_is_built_once_while_the_application_is_searched(
    sources: TwoSources, library_answer: dict[str, Any], application_answer: dict[str, Any]
) -> None:
    assert sources.library_builds <= library_answer["builds"] + 1


def test_an_answer_names_the_searched_source_and_the_pins(
    sources: TwoSources, application_answer: dict[str, Any]
) -> None:
    lines = perftrail("find", sources.study, "--along", "app", "--at", "main=v2").stdout.splitlines()
    assert lines[0].startswith("found: ")
    assert lines[1].strip() == f"along app, with main at v2 ({sources.library[2][:10]})"
    plan = perftrail_here("check", sources.study).stdout
    assert f"along main, with app at v3 ({sources.application[3][:10]})" in plan


def test_a_repeated_search_measures_nothing(
    sources: TwoSources, library_answer: dict[str, Any], application_answer: dict[str, Any]
) -> None:
    assert find_answer(sources.study) == library_answer
    assert find_answer(sources.study, "--along", "app", "--at", "main=v2") == application_answer


def test_searches_with_other_pins_are_separate(
    sources: TwoSources, application_answer: dict[str, Any]
) -> None:
    report = json.loads(perftrail_here("show", sources.study, "--search", "1", "--json").stdout)
    assert [each["question"]["along"] for each in report["searches"]] == ["main", "app"]
    shown = perftrail_here("show", sources.study, "--search", "2").stdout
    assert f"along app, with main at {sources.library[2][:10]}" in shown


def test_samples_with_another_pin_are_never_pooled(
    sources: TwoSources, library_answer: dict[str, Any]
) -> None:
    options = [*(f"--only=revision={id_}" for id_ in sources.library[:1]), "--at", "app=v8"]
    perftrail("run", sources.study, *options)
    rows = {
        pin: json.loads(perftrail_here("show", sources.study, "--at", f"app={pin}", "--json").stdout)
        for pin in ("v3", "v8")
    }
    assert {row["pins"]["app"] for row in rows["v8"]} == {sources.application[8]}
    (row,) = (row for row in rows["v8"] if row["revision"] == sources.library[0])
    assert row["estimate"]["value"] == pytest.approx(190.5, abs=1.0)
    (old,) = (row for row in rows["v3"] if row["revision"] == sources.library[0])
    assert old["estimate"]["value"] == pytest.approx(160.5, abs=1.0)


def test_a_pin_of_the_command_line_that_is_not_a_revision_is_reported_with_its_remedy(
    sources: TwoSources,
) -> None:
    stderr = perftrail_here("find", sources.study, "--at", "app=v99", expect=2).stderr
    assert "--at app=v99: " in stderr
    assert "name a revision of app, or omit it to use the last of its range" in stderr


def test_a_pin_that_is_not_a_revision_is_reported_with_its_line(tmp_path: Path) -> None:
    sources = commit_two_sources(tmp_path, app='at = "v88"')
    stderr = perftrail_here("check", sources.study, expect=2).stderr
    assert "perftrail.toml:10: sources.app.at: " in stderr
    assert 'no revision "v88"; did you mean "v8"?' in stderr


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
    first = find_answer(study)
    assert revisions(first) == [[ids[5]]]
    (tmp_path / "bench" / "run.sh").write_text(SCRIPT.format(cost=20))
    second = find_answer(study)
    assert revisions(second) == [[ids[5]]]
    assert first["pins"] != second["pins"]
    assert second["changes"][0]["before"] == pytest.approx(first["changes"][0]["before"] - 60, abs=1.0)


def test_releases_are_measured_with_an_application(tmp_path: Path) -> None:
    versions = [f"1.{number}" for number in range(4)]
    for number, version in enumerate(versions):
        (tmp_path / "archives" / version).mkdir(parents=True)
        (tmp_path / "archives" / version / "cost").write_text(f"{80 if number < 2 else 110}")
        shutil.make_archive(str(tmp_path / "archives" / version), "tar", tmp_path / "archives" / version)
    table = "".join(
        f'[[source.archives]]\nversion = "{version}"\nfile = "{version}.tar"\n' for version in versions
    )
    application = Repository(tmp_path / "bench")
    application.commit({"run.sh": SCRIPT.format(cost=80)})
    study = tmp_path / "perftrail.toml"
    text = WITH_PROGRAM.format(source=f'kind = "release"\nlocation = "archives"\n{table}')
    study.write_text(text.replace('kind = "directory"', 'kind = "git"'))
    assert revisions(find_answer(study)) == [["1.2"]]
