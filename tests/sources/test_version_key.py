"""The order of tags as versions."""

from __future__ import annotations

import random

from perftrail.sources.ranges import version_key


def test_numbers_of_tags_are_ordered_by_size_of_any_length() -> None:
    ordered = ["v0", "v01", "v1", "v9", "v10", "v10.2", "v10.10", "v" + "1" * 5000, "v" + "2" * 5000]
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert sorted(shuffled, key=version_key) == ordered
