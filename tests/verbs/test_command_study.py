"""Studies that perftrail writes for a repository without a study file."""

from __future__ import annotations

from pathlib import Path

from perftrail.verbs.command_study import write_detected_study
from tests.sources.repositories import Repository


def test_long_build_lines_are_printed_in_part_and_written_in_full(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    test = 'package tiny\n\nimport "testing"\n\nfunc BenchmarkIt(b *testing.B) {}\n'
    repository.commit({"go.mod": "module example.invalid/tiny\n", "tiny_test.go": test})
    written = write_detected_study(repository.path)
    assert written.detected.startswith("suite: go; build: module=$(go list -m); go list ./...")
    assert written.detected.endswith('… (go, because of "go.mod")')
    assert "go test -c" in written.file.read_text()
