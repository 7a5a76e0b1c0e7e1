"""The example of the docs, read from the page."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "notebook.md"


def blocks(language: str) -> list[str]:
    """Every block of a language, in the order of the page."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def write_study(directory: Path) -> None:
    """Write the study of the page."""
    [study], [program] = blocks("toml"), blocks("sh")
    (directory / "program").mkdir(parents=True)
    (directory / "program" / "count.sh").write_text(program)
    (directory / "perftrail.toml").write_text(study)
