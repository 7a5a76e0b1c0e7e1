"""Random layouts: real invocations of a program that prints the size of its environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.printing import BUILD, find_answer, perftrail, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")


def test_each_batch_is_measured_in_an_environment_of_another_size(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "repository")
    prints = 'echo "size $((1 + ${#PERFTRAIL_PADDING}))"\necho "cost 1"\n'
    for number in range(2):
        repository.commit({"program.sh": f"# {number}\n{prints}", "build.sh": BUILD.format(extra="")})
    study = write_study(tmp_path / "study", repository, find='metric = "size"\nbudget_invocations = 6')
    find_answer(study, expect=1)
    steps = json.loads(perftrail("show", study, "--search", "--json").stdout)["steps"]
    batches = [{round(sample["value"]) for sample in step["observation"]["samples"]} for step in steps]
    assert [len(sizes) for sizes in batches] == [1] * len(steps), "all samples of a batch have the same"
    assert len(set.union(*batches)) == len(steps) > 1
    assert all(1 <= size <= 4096 for size in set.union(*batches))
