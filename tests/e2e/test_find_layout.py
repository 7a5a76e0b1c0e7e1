"""What a start draws anew of its layout: real starts of a program that tells how large its environment is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.printing import BUILD, found, perftrail, write
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow


def test_each_reading_of_a_build_is_taken_in_an_environment_of_another_size(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "repository")
    tells = 'echo "room $((1 + ${#PERFTRAIL_PADDING}))"\necho "cost 1"\n'
    for number in range(2):
        repository.commit({"program.sh": f"# {number}\n{tells}", "build.sh": BUILD.format(extra="")})
    study = write(tmp_path / "study", repository, find='metric = "room"\nbudget_invocations = 6')
    found(study, expect=1)
    steps = json.loads(perftrail("show", study, "--search", "--json").stdout)["steps"]
    sizes: dict[int, list[float]] = {0: [], 1: []}
    for step in steps:
        sizes[step["action"]["position"]] += step["news"]["values"]
    assert all(len(each) == len(set(each)) == 3 for each in sizes.values()), sizes
    assert all(1 <= size <= 4096 for each in sizes.values() for size in map(round, each))
