"""Versions by Semantic Versioning."""

from __future__ import annotations

from itertools import pairwise

import pytest

from perftrail.errors import SourceError
from perftrail.sources.packages.registry import SemanticVersion, is_semantic_version

STANDARD = [
    "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
    "1.0.0-rc.1", "1.0.0", "1.9.0", "1.10.0", "1.11.0", "2.0.0",
]  # fmt: skip
"""The examples of the standard, in its order."""


@pytest.mark.parametrize(("older", "newer"), list(pairwise(STANDARD)))
def test_the_examples_of_the_standard_are_in_its_order(older: str, newer: str) -> None:
    assert SemanticVersion.read(older) < SemanticVersion.read(newer)
    assert not SemanticVersion.read(newer) < SemanticVersion.read(older)


@pytest.mark.parametrize("written", ["1.2", "v1.2", "1.2.0", "v1.2.0"])
def test_an_end_of_a_range_may_leave_out_zeros(written: str) -> None:
    assert SemanticVersion.read(written) == SemanticVersion.read("1.2.0")


@pytest.mark.parametrize("written", ["", "latest", "1.2.3.4", "1..2", "^1.0.0", "1.0.0-", "٣.0.0"])
def test_an_invalid_version_is_refused(written: str) -> None:
    with pytest.raises(SourceError, match="is not a version number"):
        SemanticVersion.read(written)


@pytest.mark.parametrize("written", [f"1.0.0-{'9' * 5000}", f"1.0.0+{'a' * 300}", f"{'1' * 30}.0.0"])
def test_absurdly_long_versions_of_a_registry_are_not_versions(written: str) -> None:
    assert not is_semantic_version(written)
    with pytest.raises(SourceError, match="is not a version number"):
        SemanticVersion.read(written)
