"""Output of a comparison for a GitHub job."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.present.gate_output import Job
from perftrail.stats.comparison import Verdict
from tests.present.test_gates import gate, row


def test_a_summary_is_no_longer_than_github_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    rows = [row(1.2, Verdict.SLOWER, value=f"{'━' * 60} {number}") for number in range(3_000)]
    Job.of("github").report(gate(*rows))
    assert 400_000 < summary.stat().st_size < 1_000_000
    text = summary.read_text(encoding="utf-8")
    assert text.count("<details") == text.count("</details>")
    assert "more metrics for which a comment has no space" in text
    assert "::error file=perftrail.toml,line=1,title=" in capsys.readouterr().err
