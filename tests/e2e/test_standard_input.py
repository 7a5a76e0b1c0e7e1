"""A benchmark's standard input is the study's own file, wherever perftrail is started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.starting import start

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[source]
kind = "directory"
location = "source"

[benchmark.count]
command = "cat"
stdin = "{size}.txt"
parameters = { size = [3, 7] }

[benchmark.count.metrics]
read = { pattern = '^(\\d+)$' }

[measure]
invocations = 1
warmups = 0
"""


def test_a_relative_standard_input_is_read_from_the_directory_of_the_study(tmp_path: Path) -> None:
    study, other_directory = tmp_path / "study", tmp_path / "other"
    (study / "source").mkdir(parents=True)
    other_directory.mkdir()
    for size in (3, 7):
        (study / f"{size}.txt").write_text(f"{size}\n")
        (other_directory / f"{size}.txt").write_text("0\n")
    (study / "perftrail.toml").write_text(STUDY)
    ended = start("run", study, cwd=other_directory)
    assert ended.returncode == 0, ended.stderr
    exported = start("export", study, "--format", "jsonl", cwd=other_directory)
    samples = [json.loads(line) for line in exported.stdout.splitlines()]
    read = {each["point"]["size"]: each["value"] for each in samples if each["metric"] == "read"}
    assert read == {3: 3.0, 7: 7.0}
