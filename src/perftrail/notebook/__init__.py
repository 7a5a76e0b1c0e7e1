"""perftrail in a notebook: a study's samples and answers as Arrow tables, its figures as they are shown.

`perftrail.open` is the way in.
"""

from __future__ import annotations

from perftrail.notebook.figure import ShownFigure
from perftrail.notebook.opened import OpenedStudy

__all__ = ["OpenedStudy", "ShownFigure"]
