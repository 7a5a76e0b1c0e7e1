"""Ranges of a Fossil history, in the same notation as those of git."""

from __future__ import annotations

import pytest

from perftrail.errors import SourceError
from tests.sources.contents import ids, line, named
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, needs_fossil

pytestmark = needs_fossil

DAY = 86_400
NEW_YEAR = 1_704_067_200
"""2024-01-01T00:00:00Z"""


def test_a_day_means_the_last_check_in_of_the_trunk_until_then(
    opened: Open, repository: FossilRepository
) -> None:
    commits = [
        repository.commit({"a": f"{day}"}, date=NEW_YEAR + (day - 1) * DAY + DAY // 2)
        for day in (1, 3, 5, 7, 9)
    ]
    repository.commit({"a": "side"}, branch="side", parents=[commits[0]], date=NEW_YEAR + 3 * DAY)
    source = opened()
    assert ids(source.history("2024-01-04..2024-01-07")) == commits[1:4]
    assert ids(source.history("2024-01-05T12:00Z..")) == commits[2:]
    assert ids(source.history("^2024-01-04 trunk")) == commits[1:]
    assert source.within("2024-01-04..2024-01-07") == set(commits[1:4])
    with pytest.raises(SourceError, match='as old as "2020-01-01"'):
        source.history("..2020-01-01")


def test_the_newest_are_counted_in_the_walk(opened: Open, merged: dict[str, str]) -> None:
    assert named(opened(range="last 2").history(), merged) == "mc"
    assert named(opened(range="last 1", walk="merges").history(), merged) == "m"


def test_tags_are_walked_by_version_and_never_before_what_they_contain(
    opened: Open, repository: FossilRepository
) -> None:
    commits = line(repository, 4)
    for name, number in (("v1.9", 0), ("v1.10", 2), ("v1.2", 3), ("w", 1)):
        repository.tag(name, commits[number])
    assert [each.label for each in opened(range="tags:v1.*").history()] == ["v1.9", "v1.10", "v1.2"]
    with pytest.raises(SourceError, match='no tag like "x'):
        opened(range="tags:x*").history()
