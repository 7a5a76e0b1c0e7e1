"""Writing a report into a directory, and reading what it quotes from files: study file and logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.present.page_html import to_html
from perftrail.present.page_images import write_images
from perftrail.present.page_markdown import to_markdown

if TYPE_CHECKING:
    from perftrail.present.page import Page
    from perftrail.present.page_images import Drawings

PAGE, MARKDOWN, IMAGES = "index.html", "report.md", "figures"
LOG_BYTES = 6_000
FILE_BYTES = 64_000


def write_page(page: Page, directory: str, drawings: Drawings) -> tuple[Path, ...]:
    """Write the page and its figures' images; give every file. Raises `UsageError` where it cannot be written.

    `drawings` are those of its figures that are being drawn already.
    """
    root = Path(directory)
    try:
        (root / IMAGES).mkdir(parents=True, exist_ok=True)
        drawn = drawings.drawn(page.figures)
        stills = {name: each.svg for name, each in drawn.items()}
        (root / PAGE).write_text(to_html(page, stills), encoding="utf-8")
        for figure in page.figures:
            write_images(figure, drawn[figure.name], root / IMAGES)
    except OSError as error:
        raise _unwritable(directory, error) from error
    images = (root / IMAGES / f"{figure.name}.{kind}" for figure in page.figures for kind in ("svg", "png"))
    return (root / PAGE, *images)


def write_markdown(page: Page, directory: str, drawings: Drawings) -> tuple[Path, ...]:
    """Write the report as Markdown that shows its figures, and these as SVG; as `write_page` does."""
    root = Path(directory)
    try:
        (root / IMAGES).mkdir(parents=True, exist_ok=True)
        (root / MARKDOWN).write_text(to_markdown(page, images=IMAGES), encoding="utf-8")
        drawn = {
            root / IMAGES / f"{name}.svg": still for name, still in drawings.stills(page.figures).items()
        }
        for file, still in drawn.items():
            file.write_text(still, encoding="utf-8")
    except OSError as error:
        raise _unwritable(directory, error) from error
    return (root / MARKDOWN, *drawn)


def log_end(log: str, results: Path, *, most: int = LOG_BYTES) -> str:
    """Give the last bytes of a log that lies in a study's own results, wherever these were moved; else nothing.

    A store that somebody else made may name any file: only those beneath ``logs`` are read.
    """
    _, found, below = log.replace("\\", "/").rpartition("/logs/")
    logs = (results / "logs").resolve()
    path = (logs / below).resolve()
    if not found or not path.is_relative_to(logs) or not path.is_file():
        return ""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - most))
        text = file.read().decode("utf-8", errors="replace")
    return text if size <= most else f"…{text}"


def study_text(file: str) -> str:
    """Give a study file as it is written; nothing where it is gone."""
    try:
        with Path(file).open("rb") as read:
            return read.read(FILE_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _unwritable(directory: str, error: OSError) -> UsageError:
    return UsageError(f"-o {directory}: cannot be written: {error.strerror}; name another directory")
