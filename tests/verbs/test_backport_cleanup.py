"""Files of a killed back-port are removed by the next one, except those that are left for the user."""

from __future__ import annotations

from pathlib import Path

from perftrail.model.source import Source
from perftrail.results_directory import create
from perftrail.verbs.backport.patch import BackportRequest, FittedPatch, fit_patch
from tests.measure.fake_session import a_study

PATCH = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n"


def test_attempts_of_a_killed_back_port_are_removed_and_trees_for_people_are_not(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program/f").write_text("one\n")
    create(tmp_path / "store")
    backports = tmp_path / "store/backports"
    for left in ("0123456789ab/try-x1y2/tree/f", "ba9876543210/try-q/tree/f", "ba9876543210/tree/f"):
        (backports / left).parent.mkdir(parents=True)
        (backports / left).write_text("left over")
    study = a_study(
        directory=str(tmp_path), source=Source(kind="directory", location=str(tmp_path / "program"))
    )
    created = fit_patch(study, BackportRequest(onto=".", patch=PATCH), store=str(tmp_path / "store"))
    assert isinstance(created, FittedPatch)
    assert [str(each.relative_to(backports)) for each in sorted(backports.rglob("f"))] == [
        "ba9876543210/tree/f"
    ]
    assert not (backports / "0123456789ab").exists()
