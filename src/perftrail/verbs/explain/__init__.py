"""What differs between a revision and the one before it, looked at from several sides."""

from __future__ import annotations

from perftrail.verbs.explain.explain import Explain
from perftrail.verbs.explain.result import CellReport, Explained, Figured, Unavailable

__all__ = ["CellReport", "Explain", "Explained", "Figured", "Unavailable"]
