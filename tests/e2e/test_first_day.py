"""Mistakes of new users are reported early, with the remedy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.cli.main import cli
from perftrail.errors import PerftrailError
from tests.e2e.printing import perftrail, program, write_study
from tests.sources.repositories import Repository

REVISIONS = 6


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository that no test changes: half of its revisions cost more."""
    made = Repository(tmp_path_factory.mktemp("first") / "repository")
    for number in range(REVISIONS):
        made.commit(
            program(100 + number // (REVISIONS // 2) * 40, name=f"{number}"), subject=f"Commit {number}"
        )
    return made


@pytest.fixture
def study(repository: Repository, tmp_path: Path) -> Path:
    """A study of six revisions."""
    return write_study(tmp_path / "study", repository)


@pytest.fixture(scope="module")
def searched(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A study in a git repository of its own, and its first search. No test changes the study."""
    study = write_study(tmp_path_factory.mktemp("searched") / "study", repository)
    subprocess.run(["git", "init", "-q", study.parent], check=True)
    return study, perftrail("find", study)


def mistakes_of(study: Path) -> list[str]:
    """Return the mistakes that `perftrail check` reports; it runs in this process."""
    with pytest.raises(PerftrailError) as raised:
        cli.main(["check", str(study)], standalone_mode=False)
    assert raised.value.exit_code == 2
    return [each for each in str(raised.value).splitlines() if ": " in each]


def replaced(study: Path, old: str, new: str) -> Path:
    """Replace a text of the study file, and return its path."""
    text = study.read_text()
    assert old in text
    study.write_text(text.replace(old, new))
    return study


def test_a_recipe_with_a_typo_ends_after_three_builds(study: Path) -> None:
    done = perftrail("find", replaced(study, "sh ./build.sh", "sh ./biuld.sh"), expect=1)
    assert len(list((study.parent / ".perftrail" / "logs").iterdir())) <= 4, "one builds while others fail"
    assert "all failed for one reason: build: " in " ".join(done.stderr.split())
    assert "biuld.sh" in done.stderr
    assert "perftrail.toml:6 (build.steps), then test it with" in " ".join(done.stderr.split())
    assert "continue with --keep-going" in " ".join(done.stderr.split())


def test_keep_going_tries_every_revision(study: Path) -> None:
    study = replaced(study, "sh ./build.sh", "sh ./biuld.sh")
    done = perftrail("run", study, "--keep-going", expect=1)
    assert "all failed for one reason" not in done.stderr
    assert f"0 of {REVISIONS} points measured, 0 new invocations, {REVISIONS} failures" in done.stdout


def test_a_missing_input_file_is_named_before_the_first_build(study: Path) -> None:
    study = replaced(study, 'timeout = "5s"', 'timeout = "5s"\nstdin = "words.txt"')
    message = ':12: benchmark.work.stdin: no such file: "{study}/words.txt"; create it first'
    assert message in "".join(mistakes_of(study))
    for command in ("run", "find"):
        assert message in perftrail(command, study, expect=2).stderr, command
    (study.parent / "words.txt").write_text("words\n")
    assert "no such file" not in perftrail("check", study).stderr


def test_a_pattern_with_several_matches_is_reported_once(study: Path) -> None:
    study = replaced(study, "cost ([-0-9.]+)", "[a-z]+ ([-0-9.]+)")
    done = perftrail("run", replaced(study, "[build]", 'range = "last 2"\n[build]'))
    output = " ".join(done.stderr.split())
    assert (
        output.count('work.cost uses the last of 2 values; choose with pick = "last", "sum" or another') == 1
    )


def test_a_pattern_without_a_match_is_reported_with_its_line_and_the_output(
    study: Path, tmp_path: Path
) -> None:
    study = replaced(study, "cost ([-0-9.]+)", "price ([-0-9.]+)")
    output = " ".join(perftrail("find", study, "--metric", "cost", expect=1).stderr.split())
    assert "work.metrics.cost), then test it with: perftrail check --try 3" in output
    assert "perftrail.toml:12 (benchmark." in output
    assert "the output has no match for 'price ([-0-9.]+)'; its last line is \"" in output
    done = perftrail("run", study, "--store", tmp_path / "other", expect=1)
    assert "perftrail.toml:12 (benchmark.work.metrics.cost)" in " ".join((done.stdout + done.stderr).split())


def test_a_count_that_doubles_is_found(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(4):
        script = f"# {number}\necho cost {100 + number // 2 * 100}\necho size 1\n"
        repository.commit({**program(0), "program.sh": script}, subject=f"Commit {number}")
    done = perftrail("find", write_study(tmp_path / "study", repository))
    assert "“Commit 2” changed cost: 100 % more" in " ".join(done.stdout.split())


def test_an_output_with_a_typo_names_its_line(study: Path) -> None:
    output = " ".join(perftrail("run", replaced(study, '"program"', '"porgram"'), expect=1).stderr.split())
    assert 'outputs matched no file: porgram; did you mean "program"?' in output
    assert "perftrail.toml:7 (build.outputs)" in output


def test_an_unknown_unit_is_reported_with_the_likely_one(study: Path) -> None:
    study = replaced(study, "cost ([-0-9.]+)'", 'cost ([-0-9.]+)\', unit = "msec"')
    done = perftrail("check", study)
    assert 'benchmark.work.metrics.cost.unit: "msec" is not a standard unit; did you mean "ms"?' in " ".join(
        (done.stdout + done.stderr).split()
    )


def test_a_range_that_does_not_exist_is_reported_with_its_line(study: Path) -> None:
    study = replaced(study, "[build]", 'range = "v1.0..HEAD"\n\n[build]')
    message = ':5: source.range: no revision "v1.0"; git branch --all and git tag list the names'
    assert message in "".join(mistakes_of(study))
    assert message in perftrail("run", study, expect=2).stderr


def test_ranges_and_all_other_mistakes_are_reported_at_once(study: Path) -> None:
    skip = '[[source.skip]]\nrange = "v7..v8"\nreason = "broken"\n\n[build]'
    study = replaced(study, "[build]", f'range = "v1..HEAD"\n\n{skip}')
    study = replaced(study, "cost ([-0-9.]+)", "cost [-0-9.]+")
    study = replaced(
        study, "[benchmark", '[[build.when]]\nrange = "..v9"\nsteps = ["{bulid}/x"]\n\n[benchmark'
    )
    for options in ((), ("--try", "1")):
        done = perftrail("check", study, *options, expect=2)
        mistakes = [each for each in done.stderr.splitlines() if ": " in each]
        assert [each.split(": ")[1] for each in mistakes] == [
            "source.range",
            "source.skip[0].range",  # v7
            "source.skip[0].range",  # v8
            "build.when[0].range",
            "build.when[0].steps",
            "benchmark.work.metrics.cost.pattern",
        ]
        assert 'no revision "v7"; git branch --all and git tag list the names' in mistakes[1]


def test_both_ends_of_a_range_are_reported(study: Path) -> None:
    mistakes = mistakes_of(replaced(study, "[build]", 'range = "v7..v8"\n\n[build]'))
    assert ['"v7"' in mistakes[0], '"v8"' in mistakes[1], len(mistakes)] == [True, True, 2]


def test_a_wrong_label_or_path_of_the_source_is_reported_with_a_wrong_range(study: Path) -> None:
    source = 'range = "v1..HEAD"\nlabel = { file = "a", pattern = "(" }\ntouching = ["../x"]\n\n[build]'
    assert [each.split(": ")[1] for each in mistakes_of(replaced(study, "[build]", source))] == [
        "source.range",
        "source.label.pattern",
        "source.touching",
    ]


def test_mistakes_are_reported_before_a_history_is_fetched(study: Path, repository: Repository) -> None:
    address = replaced(study, f'location = "{repository.path}"', 'location = "https://192.0.2.1/x"')
    [mistake] = mistakes_of(replaced(address, "cost ([-0-9.]+)", "cost"))
    assert "benchmark.work.metrics.cost.pattern: " in mistake


def test_the_results_stay_out_of_git_status(
    searched: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    study, _ = searched
    status = subprocess.run(
        ["git", "-C", study.parent, "status", "--short"], check=True, capture_output=True, text=True
    ).stdout
    assert status == "?? perftrail.toml\n"


def test_results_that_are_removed_during_a_run_are_an_error(study: Path) -> None:
    script = study.parent.parent / "removes"
    script.write_text(f"#!/bin/sh\nrm -rf {study.parent}/.perftrail\n")
    replaced(study, 'steps = ["sh ./build.sh"]', f'steps = ["sh ./build.sh", "sh {script}"]')
    done = perftrail("run", study, expect=1)
    assert f"{study.parent}/.perftrail: was removed while perftrail used it" in done.stderr


def test_results_that_a_benchmark_removes_are_one_error(study: Path) -> None:
    script = study.parent / "removes.sh"
    script.write_text(f"rm -rf {study.parent}/.perftrail\n")
    study = replaced(study, '"{build}/program"', '"sh {study}/removes.sh {build}"')
    done = perftrail("run", study, expect=1)
    assert "was removed or replaced while perftrail used it" in " ".join(done.stderr.split())
    assert "cannot start" not in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("metric = \"cost\"", 'threshold = "3"', '"3" is not a fraction; write for example 0.02 or "2%"'),
        ("metric = \"cost\"", "threshold = 3", "find.threshold: must be below 1, as 0.05"),
        ("metric = \"cost\"", 'threshold = "300%"', 'find.threshold: must be below 1, as 0.05 or "5%"'),
        ("metric = \"cost\"", "threshold = 2-3", 'text needs quotes; write threshold = "2-3"'),
        ("/repository", "/repositry", 'does not exist; did you mean "repository"?'),
        (
            "{build}/program",
            "sh input.txt {build}",
            '"input.txt" is a file of the study, but the command runs in an empty directory; write {study}/input.txt',
        ),
    ],
)  # fmt: skip
def test_mistakes_of_a_study_name_the_near_miss(study: Path, old: str, new: str, message: str) -> None:
    (study.parent / "input.txt").write_text("input")
    assert message in " ".join(mistakes_of(replaced(study, old, new)))


def test_a_wrong_path_of_a_study_names_the_nearest_file(study: Path) -> None:
    [mistake] = mistakes_of(study.with_name("perftrial.toml"))
    assert mistake.endswith('perftrial.toml: no such file; did you mean "perftrail.toml"?')


@pytest.mark.slow("starts")
def test_the_report_answers_the_question_of_the_study_in_a_default_directory(
    searched: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    study, first = searched
    perftrail("find", study, "--metric", "works")
    assert perftrail("find", study).stdout.splitlines()[0] == first.stdout.splitlines()[0]
    page = study.parent / ".perftrail" / "report" / "index.html"
    assert str(page) in perftrail("report", study).stdout
    text = page.read_text()
    assert "did not begin to fail" not in text
    assert "changed cost: " in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "perftrail find study\nperftrail report study -o report" in text


def test_show_prints_messages_and_marks_revisions_with_the_same_build(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    first = repository.commit(program(100), subject="Add the program")
    second = repository.commit(
        {**program(100), "README": "text"}, subject="Docs only \x1b[31mred [bold]x[/bold]"
    )
    third = repository.commit(program(140), subject="Cost more")
    study = write_study(tmp_path / "study", repository)
    perftrail("run", study)
    rows = [line for line in perftrail("show", study).stdout.splitlines() if "  cost " in line]
    assert [line.split()[0] for line in rows] == [each[:10] for each in (first, second, third)]
    assert rows[0].rstrip().endswith("Add the program")
    assert f"same build as {first[:10]}" in rows[1]
    assert rows[1].rstrip().endswith(r"Docs only \x1b[31mred [bold]x[/bold]")
    assert "same build" not in rows[0] + rows[2]
    assert rows[2].rstrip().endswith("Cost more")


def test_the_report_names_the_command_of_its_search_with_its_options(study: Path) -> None:
    text = perftrail(
        "find", study, "--metric", "size", "--threshold", "3%", "--thorough", "--no-prior"
    ).stdout
    replaced(study, 'metric = "cost"', 'metric = "size"')
    report = perftrail("report", study, "--format", "markdown").stdout
    command = "perftrail find study --threshold 0.03 --thorough --no-prior"
    assert f"{command}\nperftrail report study -o report\n~~~" in report
    repeated = command.replace("find study", f"find {study}").split()[1:]
    assert perftrail(*repeated).stdout.splitlines()[0] == text.splitlines()[0]


def test_stored_steps_are_printed_only_with_verbose(
    searched: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    study, first = searched
    again = perftrail("find", study).stderr.splitlines()
    assert any(line.startswith("  1  measured ") for line in first.stderr.splitlines())
    assert not any("measured" in line for line in again)
    assert again[-1].endswith(" stored steps, no new step")
    verbose = perftrail("find", study, "-v").stderr
    assert "\n  1  stored: measured " in verbose


def test_compare_uses_the_threshold_of_the_studys_searches(study: Path) -> None:
    output = " ".join(perftrail("compare", "HEAD~1", "HEAD", study).stdout.split())
    assert "changes below 2 % count as none ([measure] precision; --threshold changes it)" in output
    replaced(study, "[find]\n", "[find]\nthreshold = 0.1\n")
    output = " ".join(perftrail("compare", "HEAD~1", "HEAD", study).stdout.split())
    assert "changes below 10 % count as none ([find] threshold; --threshold changes it)" in output
    done = perftrail("compare", "HEAD~1", "HEAD", study, "--threshold", "0.05%", "--max-pairs", "10")
    assert "changes below 0.05 % count as none (--threshold)" in " ".join(done.stdout.split())
