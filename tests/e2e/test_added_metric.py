"""A metric that is added to a study is read from stored outputs: nothing that they contain is measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.copied import copy_study
from tests.e2e.printing import perftrail, perftrail_here, program, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

BOTH = "metrics = { cost = { pattern = 'cost ([-0-9.]+)' }, size = { pattern = 'size ([0-9.]+)' } }"
FEWER = "metrics = { cost = { pattern = 'cost ([-0-9.]+)' } }"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of five revisions, measured without the metric `size`, which it has now."""
    root = tmp_path_factory.mktemp("measured")
    repository = Repository(root / "repository")
    for number in range(5):
        repository.commit(program(100, name=f"{number}"), subject=f"Commit {number}")
    file = write_study(root / "study", repository)
    text = file.read_text().replace('metric = "cost"', "")
    assert BOTH in text
    file.write_text(text.replace(BOTH, FEWER).replace("warmups = 0", "warmups = 0\ninvocations = 5"))
    perftrail("run", file)
    file.write_text(file.read_text().replace(FEWER, BOTH))
    # Only copies have the directory in which they were measured: no log is read from another one.
    return file.parent.rename(root / "elsewhere")


@pytest.fixture
def study(measured: Path, tmp_path: Path) -> Path:
    """A copy of the study, which a test may measure again."""
    return copy_study(measured, tmp_path / "study") / "perftrail.toml"


def test_run_reads_an_added_metric_and_starts_nothing(study: Path) -> None:
    checked = perftrail_here("check", study).stderr
    assert (
        "all 5 measured points have no size yet; perftrail run first reads new metrics from stored" in checked
    )
    done = perftrail("run", study)
    output = " ".join(done.stderr.split())
    assert "all 5 measured points have no size yet; perftrail reads new metrics from stored outputs" in output
    assert "work: size was read from the stored output of 5 invocations" in output
    assert "and 2 more points read from stored outputs" in output
    assert "0 new invocations" in done.stdout
    shown = perftrail_here("show", study, "--metric", "size").stdout
    assert shown.count(" size ") == 5


def test_stored_outputs_are_read_in_a_moved_study(study: Path, tmp_path: Path) -> None:
    moved = study.parent.rename(tmp_path / "moved")
    done = perftrail("run", moved)
    assert "work: size was read from the stored output of 5 invocations" in " ".join(done.stderr.split())
    assert "0 new invocations" in done.stdout


def test_run_says_which_invocations_an_added_metric_needs_again(study: Path) -> None:
    for log in (study.parent / ".perftrail" / "logs").rglob("*-sample-3.out"):
        log.unlink()
    done = perftrail("run", study)
    output = " ".join(done.stderr.split())
    assert "size is not in the stored output of 1 invocation: perftrail repeats it" in output
    assert ", and was read from that of 4" in output
    assert "5 new invocations" in done.stdout
