"""Back-ports end to end: a real history, real patches and builds, values without noise."""

from __future__ import annotations

import json
import subprocess
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail_here
from tests.e2e.releases import STUDY, Releases, make_releases, write_study
from tests.starting import start

pytestmark = pytest.mark.slow("starts")


def perftrail(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = start(*arguments)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def perftrail_json(*arguments: str, expect: int = 0) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(perftrail(*arguments, "--json", expect=expect).stdout)
    return answer


def metric(answer: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [each for each in answer["metrics"] if each["name"] == name]
    return dict(found)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return make_releases(tmp_path_factory.mktemp("releases") / "repository")


@pytest.fixture(scope="module")
def backported(releases: Releases, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    study = write_study(tmp_path_factory.mktemp("whole") / "study", releases)
    return study, perftrail_json("backport", releases.fix, str(study), "--onto", "v1.0")


def test_a_fix_that_applies_retains_the_whole_gain_and_its_cost_is_reported(
    backported: tuple[Path, dict[str, Any]],
) -> None:
    _, answer = backported
    assert (answer["verdict"], answer["metric"]) == ("whole", "work.ratio")
    assert answer["retained_gain"]["low"] == pytest.approx(1.0)
    assert answer["retained_gain"]["high"] == pytest.approx(1.0)
    assert answer["costs"] == ["work.steps[threads=1]"]
    ratio, one_thread = metric(answer, "work.ratio"), metric(answer, "work.steps[threads=1]")
    assert ratio["patched_against_old"]["effect"]["value"] == pytest.approx(2.2)
    assert ratio["patched_against_old"]["verdict"] == "better"
    assert one_thread["patched_against_old"]["effect"]["value"] == pytest.approx(1.1)
    assert one_thread["patched_against_old"]["verdict"] == "worse"
    assert one_thread["retained_gain"] is None


def test_the_patch_is_written_next_to_the_study_and_turns_the_old_release_into_the_patched_one(
    backported: tuple[Path, dict[str, Any]], releases: Releases, tmp_path: Path
) -> None:
    study, answer = backported
    file = study.parent / "perftrail-backport-v1.0.patch"
    assert answer["patch"]["file"] == str(file)
    text = file.read_text()
    assert text.startswith("perftrail backport\n")
    assert "\x1b" not in text
    assert "\u202e" not in text
    checkout = tmp_path / "checkout"
    subprocess.run(
        ["git", "clone", "-q", "-b", "v1.0", releases.repository.path, checkout],
        check=True,
        capture_output=True,
    )
    subprocess.run(["git", "apply", file], cwd=checkout, check=True)
    assert "TOGETHER 50000ul" in (checkout / "table.h").read_text()
    assert (checkout / "NEWS").read_text() == "1.0"


def test_a_repeated_command_starts_nothing_and_has_the_same_answer(
    backported: tuple[Path, dict[str, Any]], releases: Releases
) -> None:
    study, answer = backported
    assert perftrail_json("backport", releases.fix, str(study), "--onto", "v1.0") == answer
    done = perftrail("backport", releases.fix, str(study), "--onto", "v1.0")
    assert ", 0 new; " in done.stdout
    assert done.stdout.splitlines()[0].startswith(
        "the patched revision retains 100 % of the gain in ratio; costs 10 % more steps"
    )
    for text in (done.stdout, done.stderr):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_the_patched_release_is_built_by_the_recipe_of_its_base(
    backported: tuple[Path, dict[str, Any]], releases: Releases
) -> None:
    """Another recipe would yield an equal build, so the test reads the log."""
    study, answer = backported
    logs = [file.read_text() for file in (study.parent / ".perftrail" / "logs").glob("*.log")]
    [log] = [text for text in logs if text.startswith(f"# {answer['patched']} ")]
    assert "ERA" not in log or "old" in log


def test_half_of_a_fix_retains_a_part_of_the_gain(releases: Releases, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", releases)
    base = releases.repository.git("show", f"{releases.release}:table.h") + "\n"
    half = base.replace("TOGETHER 100000ul", "TOGETHER 70000ul")
    for name, text in (("old", base), ("new", half)):
        (tmp_path / name).write_text(text)
    diff = subprocess.run(
        ["git", "diff", "--no-index", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    patch = tmp_path / "half.patch"
    patch.write_text(diff.replace("a/old", "a/table.h").replace("b/new", "b/table.h"))
    answer = perftrail_json("backport", releases.fix, str(study), "--patch", str(patch), "--onto", "v1.0")
    assert answer["verdict"] == "part"
    # The ratio retains log(10/7) of log(2.2); the steps of eight threads retain log(7/10) of log(1/2).
    assert answer["retained_gain"]["value"] == pytest.approx(0.4524, abs=0.001)
    eight_threads = metric(answer, "work.steps[threads=8]")
    assert eight_threads["retained_gain"]["value"] == pytest.approx(0.5146, abs=0.001)
    assert answer["costs"] == []
    assert answer["patch"]["file"] is None
    without_fix = perftrail_json("backport", str(study), "--patch", str(patch), "--onto", "v1.0")
    assert without_fix["verdict"] == "measured"
    assert without_fix["fix"] is None
    assert metric(without_fix, "work.ratio")["patched_against_old"]["effect"]["value"] == pytest.approx(
        10 / 7
    )


def test_a_conflict_is_explained_resolved_and_measured(releases: Releases, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", releases)
    before = releases.repository.snapshot()
    answer = perftrail_json("backport", releases.tangled, str(study), "--onto", "v1.0", expect=1)
    assert answer["verdict"] == "conflict"
    [conflict] = answer["conflicts"]
    assert (conflict["path"], conflict["clash"]) == ("table.h", "changed")
    assert answer["prerequisites"] == [releases.fix, releases.after_fix]
    output = perftrail("backport", releases.tangled, str(study), "--onto", "v1.0", expect=1).stdout
    assert output.splitlines()[0].startswith("conflict: ")
    assert releases.after_fix[:10] in output
    assert answer["directory"] in output
    assert "\x1b" not in output
    tree = Path(answer["directory"])
    conflicted = (tree / "table.h").read_text()
    assert "<<<<<<<" in conflicted
    (tree / "table.h").write_text(
        "#define ALONE 60000ul\n#define TOGETHER 100000ul\n#define LOCKS_BEGIN\n#define LOCKS_END\n"
    )
    git = ["git", "-C", str(tree)]
    subprocess.run([*git, "add", "-A"], check=True)
    resolved = tmp_path / "resolved.patch"
    resolved.write_bytes(
        subprocess.run([*git, "diff", "--cached", "--binary"], check=True, capture_output=True).stdout
    )
    resolved_answer = perftrail_json(
        "backport", releases.tangled, str(study), "--patch", str(resolved), "--onto", "v1.0"
    )
    one_thread = metric(resolved_answer, "work.steps[threads=1]")
    assert one_thread["retained_gain"]["value"] == pytest.approx(1.0)
    assert releases.repository.snapshot() == before


def test_a_merge_is_back_ported_with_its_whole_branch(releases: Releases, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", releases)
    answer = perftrail_json("backport", releases.merge, str(study), "--onto", f"{releases.fix}~2", expect=1)
    assert answer["verdict"] == "conflict"
    assert answer["fix"]["parents"] == 2
    on_later_revision = perftrail_json("backport", releases.merge, str(study), "--onto", releases.after_fix)
    eight_threads = metric(on_later_revision, "work.steps[threads=8]")
    assert eight_threads["estimates"]["patched"]["value"] == 25_000
    assert eight_threads["retained_gain"]["value"] == pytest.approx(1.0)


def test_without_a_gain_no_retained_gain_is_reported(releases: Releases, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", releases)
    answer = perftrail_json("backport", releases.after_fix, str(study), "--onto", releases.fix)
    assert answer["verdict"] == "no gain"
    assert answer["retained_gain"] is None
    output = perftrail("backport", releases.after_fix, str(study), "--onto", releases.fix).stdout
    assert output.startswith(
        "no gain of the fix was detected in ratio: the fixed revision equals the old one"
    )


def test_a_patch_that_breaks_the_build_is_reported_without_an_answer(
    releases: Releases, tmp_path: Path
) -> None:
    study = write_study(tmp_path / "study", releases)
    patch = tmp_path / "broken.patch"
    patch.write_text(
        "--- a/table.h\n+++ b/table.h\n@@ -1,2 +1,3 @@\n+this does not compile\n /* number of steps */\n \n"
    )
    done = perftrail("backport", str(study), "--patch", str(patch), "--onto", "v1.0", expect=1)
    assert done.stdout.startswith("no answer: the patched revision does not build")
    assert "(log: " in done.stdout


def test_an_existing_file_of_the_user_is_not_overwritten(releases: Releases, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", releases)
    existing = tmp_path / "mine"
    existing.write_text("mine")
    done = perftrail(
        "backport", releases.fix, str(study), "--onto", "v1.0", "--output", str(existing), expect=2
    )
    assert "choose another --output" in done.stderr
    assert existing.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--onto", "v1.0"], "no change to back-port"),
        (["nosuch", "--onto", "v1.0"], "no revision"),
        (["v2.0", "--onto", "v1.1"], "did you mean"),
        (["v1.0..v2.0", "--onto", "v1.0"], "a range is not a revision"),
        (["v2.0", "--onto", "--upload-pack=x"], "no revision"),
        (["--patch", "nosuch.patch", "--onto", "v1.0"], "cannot be read"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(
    releases: Releases, tmp_path: Path, arguments: list[str], words: str
) -> None:
    study = write_study(tmp_path / "study", releases)
    with chdir(study.parent):
        assert words in perftrail_here("backport", *arguments, expect=2).stderr


def test_a_directory_accepts_a_patch_but_not_a_revision(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    (program / "work.sh").write_text("echo steps 100\n")
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(
        '[study]\ntitle = "t"\n[source]\nkind = "directory"\nlocation = "../program"\n'
        '[benchmark.work]\ncommand = "sh {build}/work.sh"\n'
        "metrics = { steps = { pattern = 'steps ([0-9]+)' } }\n"
    )
    (tmp_path / "p").write_text(
        "--- a/work.sh\n+++ b/work.sh\n@@ -1 +1 @@\n-echo steps 100\n+echo steps 80\n"
    )
    answer = perftrail_json("backport", str(study), "--patch", str(tmp_path / "p"), "--onto", ".")
    assert metric(answer, "work.steps")["patched_against_old"]["effect"]["value"] == pytest.approx(0.8)
    assert (program / "work.sh").read_text() == "echo steps 100\n"
    refused = perftrail_here("backport", ".", study, "--onto", ".", expect=2)
    assert "only a git or Fossil history" in refused.stderr


def test_the_study_of_these_tests_has_a_ratio_and_a_release(releases: Releases) -> None:
    assert "ratio" in STUDY
    assert releases.repository.git("rev-parse", "v1.0") == releases.release
