"""Output of a comparison for a GitHub job."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import Mistake, PerftrailError, StudyError, UsageError
from perftrail.present.gate_output import annotated_errors, report_to_github, write_gate
from perftrail.stats.comparison import Verdict
from tests.present.test_gates import gate, noisy, row


def test_a_summary_is_no_longer_than_github_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    rows = [row(1.2, Verdict.SLOWER, value=f"{'━' * 60} {number}") for number in range(3_000)]
    report_to_github(gate(*rows))
    assert 400_000 < summary.stat().st_size < 1_000_000
    text = summary.read_text(encoding="utf-8")
    assert text.count("<details") == text.count("</details>")
    assert "more metrics for which a comment has no space" in text
    assert "::error file=perftrail.toml,line=1,title=" in capsys.readouterr().err


def test_the_log_of_a_job_ends_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    for found, command in (
        (gate(row(1.2, Verdict.SLOWER)), "perftrail find --range aaaaaaaaaa..bbbbbbbbbb    find the culprit"),
        (
            gate(noisy(0.0404)),
            "perftrail compare aaaaaaaaaa bbbbbbbbbb --max-pairs 80    measure up to 80 pairs",
        ),
    ):
        file = str(tmp_path / "comment.md")
        write_gate(found, format_name="github", output=file, also={})
        *_, annotation, last = capsys.readouterr().err.splitlines()
        assert annotation.startswith("::")
        assert last == f"Next: {command}"


@pytest.mark.parametrize(
    ("error", "annotation"),
    [
        (
            StudyError(
                [
                    Mistake(
                        file="study/perftrail.toml", line=37, key="find.metric", message="wrong\n::error::x"
                    )
                ]
            ),
            "::error file=study/perftrail.toml,line=37,title=not a valid study::find.metric: ",
        ),
        (
            UsageError("--budget 5x: 100 % wrong\n::error::x"),
            "::error title=perftrail::--budget 5x: 100 %25 wrong%0A",
        ),
    ],
)
def test_an_error_annotates_the_job(
    error: PerftrailError,
    annotation: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(PerftrailError), annotated_errors("github"):
        raise error
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path.cwd()))
    with pytest.raises(PerftrailError), annotated_errors("github"):
        raise error
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(annotation)
