"""The type of the fixture that opens a repository of Fossil."""

from __future__ import annotations

from collections.abc import Callable

from perftrail.sources.fossil import FossilSource

Open = Callable[..., FossilSource]
"""Opens the test's repository, or another location; everything else as keys of the study's source."""
