"""The response of a Debian archive is cached: reading commands use the cache and print its age."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.e2e.printing import perftrail
from tests.sources.debian_archive import DebianArchive, needs_apt

pytestmark = needs_apt

STUDY = """\
[source]
kind = "release"
location = "debian:perftrail-planted"
index = "{index}"

[benchmark.work]
command = "sh {{build}}/work.sh"
metrics = {{ cost = {{ pattern = 'cost ([0-9]+)' }} }}

[measure]
invocations = 2
warmups = 0
"""


def test_building_commands_query_an_archive_and_reading_commands_use_the_cache(tmp_path: Path) -> None:
    archive = DebianArchive(tmp_path / "archive")
    archive.add("perftrail-planted", "1.0-1", {"work.sh": "echo cost 1\n"})
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(STUDY.format(index=archive.index))
    assert "ago" not in perftrail("check", study).stderr
    archive.add("perftrail-planted", "1.1-1", {"work.sh": "echo cost 2\n"})
    kept = perftrail("check", "--json", study)
    data = json.loads(kept.stdout)
    assert data["revisions"] == 1
    assert f"at {data['source_updated']}; run and find read them again" in kept.stderr
    perftrail("run", study)
    shutil.rmtree(archive.directory)
    shown = perftrail("show", "--json", study)
    assert {row["revision"] for row in json.loads(shown.stdout)} == {"1.0-1", "1.1-1"}
    assert "perftrail read the revisions of this source" in shown.stderr
    assert "cannot read these archives" in perftrail("run", study, expect=2).stderr
