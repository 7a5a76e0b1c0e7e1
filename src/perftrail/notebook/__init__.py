"""A study in a notebook: samples and answers as Arrow tables, and charts.

Start with `perftrail.open`.
"""

from __future__ import annotations

from perftrail.notebook.opened import OpenedStudy, ShownChart

__all__ = ["OpenedStudy", "ShownChart"]
