"""perftrail in a notebook: a study's samples and answers as Arrow tables, its figures as they are shown.

`perftrail.open` is the way in.
"""

from __future__ import annotations

from perftrail.notebook.opened import OpenedStudy, ShownFigure

__all__ = ["OpenedStudy", "ShownFigure"]
