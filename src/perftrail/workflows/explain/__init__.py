"""What differs between a revision and the one before it, looked at from several sides."""

from __future__ import annotations

from perftrail.workflows.explain.explaining import Explain
from perftrail.workflows.explain.report import CellReport, Explained, Figured, Unavailable

__all__ = ["CellReport", "Explain", "Explained", "Figured", "Unavailable"]
