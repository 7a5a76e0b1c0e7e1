"""Keys of fast builds in a study file, and each mistake in them."""

from __future__ import annotations

from pathlib import Path

from perftrail.model.plan import recipe_of
from tests.studyfile.studies import complaints, read

STUDY = """\
[source]
kind = "git"
location = "."

[benchmark.it]
command = "true"

[build]
steps = ["make"]
"""


def test_a_fast_build_is_read(tmp_path: Path) -> None:
    keys = 'outputs = ["a"]\nincremental = true\nunaffected_by = ["docs/**"]\ndisk = "5GiB"\n'
    study = read(tmp_path, STUDY + keys)
    how = recipe_of(study, "plain", ())
    assert how.incremental
    assert how.unaffected_by == ("docs/**",)
    assert study.build.disk_bytes == 5 * (1 << 30)
    assert read(tmp_path, STUDY).build.disk_bytes == 10 * (1 << 30)


def test_a_tree_is_only_used_again_where_outputs_say_what_to_keep(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, STUDY + "incremental = true\n")
    assert complaint.startswith("perftrail.toml:10: build.incremental: needs outputs")


def test_paths_that_do_not_matter_are_in_the_tree(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, STUDY + 'unaffected_by = ["../docs"]\n')
    assert complaint.startswith("perftrail.toml:10: build.unaffected_by: ")


def test_a_budget_of_nothing_is_refused(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, STUDY + 'disk = "0B"\n')
    assert complaint.startswith("perftrail.toml:10: build.disk: ")
