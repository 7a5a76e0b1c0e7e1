"""Output of a comparison for a GitHub job."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.present.gate_output import Job
from tests.present.test_gates import gate


def test_a_summary_is_no_longer_than_github_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    Job.of("github").report(gate(), "━" * 500_000)
    assert 800_000 < summary.stat().st_size < 1 << 20
    assert set(summary.read_text(encoding="utf-8")) == {"━", "\n"}
    assert "::error file=perftrail.toml,line=1,title=no answer::" in capsys.readouterr().err
