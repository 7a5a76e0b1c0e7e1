"""The content of a report as plain values, a report as Markdown, and the files that a report quotes.

In Markdown, for an issue or a pull request, a report has the answer, its evidence, and a table for each chart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.errors import UsageError
from perftrail.model.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.charts.frame import Figure, HistoryPoint
    from perftrail.model.search_record import Json
    from perftrail.present.page_images import Drawings


Tone = Literal["better", "worse", "plain", "unclear"]
"""How an answer is marked, in addition to its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: `numbers` are the columns with numbers. Every text may be hostile.

    `whole`: every row is part of the answer and is always visible.
    """

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    title: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Verbatim text: a study file, the end of a log, commands. Hostile."""

    title: str
    text: str
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report. `detail` has all points of a chart that shows only some.

    `answers`: its chart answers the study's question.
    """

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    figure: Figure | None = None
    tables: tuple[Table, ...] = ()
    listings: tuple[Listing, ...] = ()
    detail: tuple[HistoryPoint, ...] = ()
    answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact about an answer: its subject, and the value in words."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer in a sentence, with its evidence: effect, certainty, cost."""

    sentence: str
    tone: Tone
    facts: tuple[Fact, ...]
    notes: tuple[str, ...] = ()


class WrittenFileJson(TypedDict):
    """A file that was written."""

    file: str
    bytes: int


class ReportJson(TypedDict):
    """The answer of a report, and the files that it was written to."""

    question: str
    verdict: Annotated[str, "the answer in a sentence"]
    answer: Annotated[Mapping[str, object] | None, "what `find --json` printed; null: no search has ended"]
    files: list[WrittenFileJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report. `question` is the study's title, `lead` the chart that answers it, if there is one.

    `answer` is the search's own answer in JSON, if there is one.
    """

    question: str
    verdict: Verdict
    lead: Section | None
    sections: tuple[Section, ...]
    made_by: str
    answer: Mapping[str, Json] | None = None

    @property
    def every_section(self) -> tuple[Section, ...]:
        """The lead and all other sections."""
        return (*(() if self.lead is None else (self.lead,)), *self.sections)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every chart, in the order of the page."""
        return tuple(section.figure for section in self.every_section if section.figure is not None)


MOST_ROWS = 25
LONGEST = 400

_ESCAPED = set("\\`*_{}[]<>()#+!|~&$")

_CALLS = re.compile(r"[@#!$~&%^](?=[\w\"'\[])|(?<=:)//|\bGH(?=-\d)|\bwww(?=\.)", re.IGNORECASE)
"""Patterns that GitHub or GitLab read as a mention, reference or link even if escaped; they are broken up."""


def to_markdown(page: Page, *, images: str = "") -> str:
    """Return a report as Markdown; hostile texts stay text and mention nobody.

    `images` is the directory of the charts' SVG files; without it, they are left out.
    """
    return "\n".join(_lines(page, images)).rstrip() + "\n"


def inert(text: str) -> str:
    r"""Escape hostile text for Markdown: no mark-up, no mention, no reference, one line.

    >>> inert("[x](y) by @all")
    '\\[x\\]\\(y\\) by @\u200ball'
    """
    flat = escaped(text, longest=LONGEST)
    broken = _CALLS.sub(lambda found: f"\u200b{found[0]}" if found[0] == "//" else f"{found[0]}\u200b", flat)
    return "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in broken)


def _lines(page: Page, images: str) -> Iterator[str]:
    yield f"### {inert(page.question)}"
    yield ""
    yield f"**{inert(page.verdict.sentence)}**"
    yield ""
    yield from (f"- {inert(fact.label)}: {inert(fact.text)}" for fact in page.verdict.facts)
    yield from (f"- {inert(note)}" for note in page.verdict.notes)
    for section in page.every_section:
        yield from _section(section, images)
    yield ""
    yield f"<sub>{inert(page.made_by)}</sub>"


def _section(section: Section, images: str) -> Iterator[str]:
    figure = section.figure if images else None
    if not (section.tables or section.paragraphs or figure):
        return
    yield ""
    yield f"<details{' open' if section.name == 'answer' else ''}><summary>{_tag_safe(section.title)}</summary>"
    if figure is not None:
        yield ""
        yield f"![{inert(figure.title)}]({images}/{figure.name}.svg)"
        yield ""
        yield inert(figure.caption)
    for text in section.paragraphs:
        yield ""
        yield inert(text)
    for table in section.tables:
        yield ""
        yield from _table(table)
    yield ""
    yield "</details>"


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(inert(name) for name in table.head)} |"
    rule = ("---:" if number in table.numbers else ":---" for number in range(len(table.head)))
    yield f"| {' | '.join(rule)} |"
    most = len(table.rows) if table.whole else MOST_ROWS
    for row in table.rows[:most]:
        yield f"| {' | '.join(inert(text) for text in row)} |"
    if len(table.rows) > most:
        yield ""
        yield f"{len(table.rows) - most} more rows."


def _tag_safe(text: str) -> str:
    """Escape text inside an HTML tag, where Markdown's escapes have no effect."""
    return (
        escaped(text, longest=None)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("@", "@\u200b")
    )


PAGE, MARKDOWN, IMAGES = "index.html", "report.md", "figures"
LOG_BYTES = 6_000
FILE_BYTES = 64_000


def write_markdown(page: Page, directory: str, drawings: Drawings) -> tuple[Path, ...]:
    """Write the report as Markdown with its charts as SVG, like `page_html.write_page`."""
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
        raise unwritable(directory, error) from error
    return (root / MARKDOWN, *drawn)


def log_end(log: str, results: Path, *, most: int = LOG_BYTES) -> str:
    """Return the end of a log in a study's own results, also after they moved; empty without one.

    A foreign store may name any file, so only files below ``logs`` are read.
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
    """Return the text of a study file; empty if it no longer exists."""
    try:
        with Path(file).open("rb") as read:
            return read.read(FILE_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def unwritable(directory: str, error: OSError) -> UsageError:
    """Return the error of a directory that cannot be written."""
    return UsageError(f"-o {directory}: cannot be written: {error.strerror}; name another directory")
