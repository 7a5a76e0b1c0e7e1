"""The type of the fixture that opens a repository of git."""

from __future__ import annotations

from collections.abc import Callable

from perftrail.sources.git import GitSource

Open = Callable[..., GitSource]
"""Opens the test's repository, or another location; everything else as keys of the study's source."""
