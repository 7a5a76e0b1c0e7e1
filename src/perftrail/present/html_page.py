"""A page of results: plain values, written as Markdown, or as one HTML file and images."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from markupsafe import Markup

from perftrail.charts.frame import config, themed
from perftrail.errors import UsageError
from perftrail.file_tree import create_directory, open_to_read, real_path, user_cache, write_file
from perftrail.model.wording import DOCUMENTATION, counted, escaped
from perftrail.results.ranking import RankingJson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perftrail.charts.frame import Chart, HistoryPoint
    from perftrail.model.json_data import Json
    from perftrail.ports import Engine, Pending
    from perftrail.results.ranking import Ranking


Tone = Literal["better", "worse", "plain", "unclear"]
"""Colour class of an answer, in addition to its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: `numbers` are the columns with numbers. Every text may be hostile.

    `whole`: every row is part of the answer and is always visible. `best` are emphasised numbers, by row and column.
    `sparklines` are the columns whose text is the path of a line; Markdown does not have them.
    """

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    title: str = ""
    whole: bool = False
    best: frozenset[tuple[int, int]] = frozenset()
    sparklines: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Verbatim text: a study file, the end of a log, commands. Hostile.

    Markdown has only `commands`.
    """

    title: str
    text: str
    folded: bool = False
    commands: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedFile:
    """A page that a report links, in the same directory because it may be large. `content` writes it."""

    name: str
    title: str
    content: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report. `detail` has all points of a chart that shows only some.

    `answers`: its chart answers the study's question. `files` are linked only by a report in a directory.
    """

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    chart: Chart | None = None
    tables: tuple[Table, ...] = ()
    listings: tuple[Listing, ...] = ()
    detail: tuple[HistoryPoint, ...] = ()
    files: tuple[LinkedFile, ...] = ()
    answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact about an answer: its subject, and the value in words."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer in a sentence, with its evidence: effect, certainty, cost. `table` has several changes, a row each."""

    sentence: str
    tone: Tone
    facts: tuple[Fact, ...]
    table: Table | None = None
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
    rankings: Annotated[
        list[RankingJson], "the ranks of the variants by metric and workload; empty: the answer is no ranking"
    ]
    files: list[WrittenFileJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report. `question` is the study's title, `lead` the chart that answers it, if there is one.

    `answer` is the search's own answer in JSON, if there is one. `rankings` are the answer of a matrix. `commits` are
    the addresses of revisions on the web, by short id.
    """

    question: str
    verdict: Verdict
    lead: Section | None
    sections: tuple[Section, ...]
    written_by: str
    answer: Mapping[str, Json] | None = None
    rankings: tuple[Ranking, ...] = ()
    commits: Mapping[str, str] = field(default_factory=dict)

    @property
    def every_section(self) -> tuple[Section, ...]:
        """The lead and all other sections."""
        return (*(() if self.lead is None else (self.lead,)), *self.sections)

    @property
    def files(self) -> tuple[LinkedFile, ...]:
        """Every file that the page links."""
        return tuple(file for section in self.every_section for file in section.files)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Every chart, in the order of the page."""
        return tuple(section.chart for section in self.every_section if section.chart is not None)


OPEN = ("answer", "ranking")
"""Sections that Markdown shows unfolded."""

MOST_ROWS = 25
LONGEST = 400

_ESCAPED = set("\\`*_{}[]<>()#+!|~&$")

_CALLS = re.compile(
    rf"[@#!$~&%^](?=[\w\"'\[])|(?<=:)//(?!{re.escape(DOCUMENTATION.partition('//')[2])}/)|\bGH(?=-\d)|\bwww(?=\.)",
    re.IGNORECASE,
)
"""Patterns that GitHub or GitLab read as a mention, reference or link even if escaped; they are broken up."""


def to_markdown(page: Page, *, images: str = "") -> str:
    """Return a report as Markdown; hostile text stays text and mentions no user.

    `images` is the directory of the charts' SVG files; without it, the text has no charts, and links no files.
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
    if page.verdict.table is not None:
        yield from _table(page.verdict.table)
        yield ""
    yield from (f"- {inert(fact.label)}: {inert(fact.text)}" for fact in page.verdict.facts)
    yield from (f"- {inert(note)}" for note in page.verdict.notes)
    for section in page.every_section:
        yield from _section(section, images)
    yield ""
    yield f"<sub>{inert(page.written_by)}</sub>"


def _section(section: Section, images: str) -> Iterator[str]:
    chart = section.chart if images else None
    if not (section.tables or section.paragraphs or chart):
        return
    yield ""
    yield f"<details{' open' if section.name in OPEN else ''}><summary>{_tag_safe(section.title)}</summary>"
    if chart is not None:
        yield ""
        yield f"![{inert(chart.title)}]({images}/{chart.name}.svg)"
        yield ""
        yield inert(chart.caption)
    for text in section.paragraphs:
        yield ""
        yield inert(text)
    for table in section.tables:
        if table.title:
            yield ""
            yield f"{inert(table.title)}:"
        yield ""
        yield from _table(table)
    for file in section.files if images else ():
        yield ""
        yield f"[{inert(file.title)}]({file.name})"
    for listing in section.listings:
        if listing.commands:
            yield ""
            yield f"{inert(listing.title)}:"
            yield ""
            yield from fenced(listing.text)
    yield ""
    yield "</details>"


def fenced(text: str) -> Iterator[str]:
    """Yield hostile text as a code block that it cannot end, with no line that a CI runner executes as a command."""
    yield "~~~~~~~~sh"
    yield from (escaped(line, longest=None).replace("##[", "# #[") for line in text.splitlines())
    yield "~~~~~~~~"


def _table(table: Table) -> Iterator[str]:
    columns = [number for number in range(len(table.head)) if number not in table.sparklines]
    yield f"| {' | '.join(inert(table.head[number]) for number in columns)} |"
    yield f"| {' | '.join('---:' if number in table.numbers else ':---' for number in columns)} |"
    most = len(table.rows) if table.whole else MOST_ROWS
    for row in table.rows[:most]:
        yield f"| {' | '.join(inert(row[number]) for number in columns)} |"
    if len(table.rows) > most:
        yield ""
        yield f"{counted(len(table.rows) - most, 'more row')}."


def _tag_safe(text: str) -> str:
    """Escape text inside an HTML tag, where Markdown's escapes have no effect."""
    return (
        escaped(text, longest=None)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("@", "@\u200b")
    )


PAGE, MARKDOWN, IMAGES = "index.html", "report.md", "charts"
LOG_BYTES = 6_000
FILE_BYTES = 64_000


def write_markdown(page: Page, directory: str, drawings: Drawings) -> tuple[Path, ...]:
    """Write the report as Markdown with its charts as SVG, like `write_page`."""
    root = Path(directory)
    try:
        create_directory(create_directory(root) / IMAGES)
        write_file(root / MARKDOWN, to_markdown(page, images=IMAGES))
        drawn = {root / IMAGES / f"{name}.svg": still for name, still in drawings.stills(page.charts).items()}
        for file, still in drawn.items():
            write_file(file, still)
        linked = write_linked(page, root)
    except OSError as error:
        raise unwritable(directory, error) from error
    return (root / MARKDOWN, *drawn, *linked)


def write_linked(page: Page, directory: Path) -> tuple[Path, ...]:
    """Write the files that a page links into its directory, and return their paths."""
    for file in page.files:
        write_file(directory / file.name, file.content())
    return tuple(directory / file.name for file in page.files)


def log_end(log: str, results: Path, *, most: int = LOG_BYTES) -> str:
    """Return the end of a log in a study's own results, also after they moved; empty without one.

    A foreign store may name any file, so only files below ``logs`` are read.
    """
    _, found, below = log.replace("\\", "/").rpartition("/logs/")
    logs = real_path(results / "logs")
    path = real_path(logs / below)
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
        with open_to_read(Path(file)) as read:
            return read.read(FILE_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def unwritable(directory: str, error: OSError) -> UsageError:
    """Return the error of a directory that cannot be written."""
    return UsageError(f"-o {directory}: cannot be written: {error.strerror}; name another directory")


VEGA_LITE = "6.4"
"""Version of Vega-Lite for page and images."""

PNG_SCALE = 2.0

SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""Script that exports Vega-Embed from the bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A chart as SVG, and as PNG, which may not be finished yet."""

    svg: str
    image: bytes | Pending[bytes]

    @property
    def png(self) -> bytes:
        """Wait for the PNG, and return it. Call it once."""
        return self.image if isinstance(self.image, bytes) else self.image.outcome()


class Drawings:
    """Charts as SVG; an engine draws each as soon as it is known."""

    def __init__(self, engine: Engine) -> None:
        require_renderer()
        self._engine = engine
        self._begun: dict[str, Pending[str]] = {}
        engine.begin(_start, "")

    def begin(self, chart: Chart) -> None:
        """Start to draw a chart, once."""
        if chart.name not in self._begun:
            self._begun[chart.name] = self._engine.begin(svg, chart)

    def drawn(self, charts: Sequence[Chart]) -> Mapping[str, Drawn]:
        """Draw charts; return them by name. Call it once.

        Two thirds of the PNGs are made here while the engine draws the other charts.
        """
        found: dict[str, Drawn] = {}
        for name, still in self._stills(charts):
            image = png(still) if len(found) * 3 < len(charts) * 2 else self._engine.begin(png, still)
            found[name] = Drawn(svg=still, image=image)
        return found

    def stills(self, charts: Sequence[Chart]) -> Mapping[str, str]:
        """Return charts as SVG alone by name. Call it once."""
        return dict(self._stills(charts))

    def _stills(self, charts: Sequence[Chart]) -> Iterator[tuple[str, str]]:
        for chart in charts:
            self.begin(chart)
        for chart in charts:
            yield chart.name, self._begun[chart.name].outcome()


def require_renderer() -> None:
    """Raise `UsageError` with the remedy if the library that draws charts is not installed."""
    if find_spec("vl_convert") is None:
        raise UsageError(
            "charts need vl-convert-python, which is not installed: pip install 'perftrail[report]'; "
            "perftrail report --format markdown prints a report without charts"
        )


def _renderer() -> ModuleType:
    """Return the library that draws charts; commands without charts do not load it."""
    require_renderer()
    import vl_convert

    renderer: ModuleType = vl_convert
    return renderer


def _start(title: str) -> None:
    """Draw nothing, to start the renderer, which takes half a second."""
    _renderer().vegalite_to_svg({"title": title, "mark": "point"}, vl_version=VEGA_LITE)


def svg(chart: Chart) -> str:
    """Return a chart as SVG, for a white page.

    It contains no description of each mark: these would be half of a large file. Its caption describes the chart.
    """
    spec = themed(chart.spec, "light")
    silent = {**spec, "config": {**config("light"), "aria": False}}
    drawn: str = _renderer().vegalite_to_svg(_drawable(silent), vl_version=VEGA_LITE)
    return drawn


_UNDRAWABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no XML may contain: the renderer ends the whole process at one of them."""


def _drawable(data: Json) -> Json:
    """Return a specification whose texts the renderer can draw."""
    if isinstance(data, str):
        return _UNDRAWABLE.sub(lambda found: escaped(found[0]), data)
    if isinstance(data, Mapping):
        return {name: _drawable(each) for name, each in data.items()}
    return [_drawable(each) for each in data] if isinstance(data, list) else data


def png(drawn: str) -> bytes:
    """Return an SVG as PNG."""
    image: bytes = _renderer().svg_to_png(drawn, scale=PNG_SCALE)
    return image


def write_images(chart: Chart, drawn: Drawn, directory: Path) -> None:
    """Write a chart's SVG, PNG and specification into a directory."""
    spec = themed(chart.spec, "light")
    write_file(directory / f"{chart.name}.svg", drawn.svg)
    write_file(directory / f"{chart.name}.png", drawn.png)
    write_file(directory / f"{chart.name}.vl.json", json.dumps(spec))


def bundle_name() -> str:
    """Return the name of the script that `bundle` returns; it depends on the content."""
    from importlib.metadata import version  # here: it imports the reader of e-mail

    return f"vega-{VEGA_LITE}-{version('vl-convert-python')}"


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that loads nothing.

    Bundling takes seconds, so the result is cached in the user's own cache directory, which no other user can write to.
    """
    cached = user_cache() / f"{bundle_name()}.js"
    with suppress(OSError, UnicodeDecodeError):
        return cached.read_text(encoding="utf-8")
    script: str = _renderer().javascript_bundle(SNIPPET, vl_version=VEGA_LITE)
    with suppress(OSError):
        cached.parent.mkdir(parents=True, exist_ok=True)
        new = cached.with_suffix(f".{os.getpid()}")
        new.write_text(script, encoding="utf-8")
        new.replace(cached)
    return script


class Columns:
    """Columns of tables and charts by number; equal columns are stored once.

    >>> columns = Columns()
    >>> [columns.number(["a", "b"]), columns.number([1.5]), columns.number(["a", "b"])]
    [0, 1, 0]
    >>> columns.texts
    ('["a","b"]', '[1.5]')
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, values: Sequence[Json]) -> int:
        """Add a column; return its number."""
        return self._numbers.setdefault(inert_json(list(values)), len(self._numbers))

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns as JSON, by number."""
        return tuple(self._numbers)

    def of_table(self, table: Table) -> list[int]:
        """Add a whole table; return the numbers of its columns."""
        return [self.number(column) for column in zip(*table.rows, strict=True)]

    def of_detail(self, section: Section) -> Mapping[str, int]:
        """Add every point of a thinned chart, in the chart's units; return the numbers of the columns by name."""
        assert section.chart is not None
        about = section.chart.spec["usermeta"]
        assert isinstance(about, dict)
        divisor = about["divisor"]
        assert isinstance(divisor, float)
        points = section.detail
        columns: dict[str, list[Json]] = {
            "position": [point.position for point in points],
            "subject": [point.subject for point in points],
            "revision": [point.revision for point in points],
            "value": [_short(point.value / divisor) for point in points],
            "low": [_short(point.low / divisor) for point in points],
            "high": [_short(point.high / divisor) for point in points],
            "count": [point.count for point in points],
        }
        return {name: self.number(column) for name, column in columns.items()}


def inert_json(data: Json) -> str:
    r"""Return JSON that cannot end a script or begin a tag.

    >>> inert_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _short(value: float) -> float:
    """Return a value with its visible digits."""
    return float(f"{value:.5g}")


AT_ONCE = 30
"""Number of visible rows of a table; the page shows the rest on request."""

LARGEST_STILL = 100_000
"""Largest still image inside the page, in bytes; larger ones are only separate files."""


def to_html(page: Page, stills: Mapping[str, str]) -> str:
    """Return the page, which links `page.files`.

    `stills` are its charts as SVG by name, for print and for readers without scripts.
    """
    from jinja2 import Environment, StrictUndefined

    own = (bundle(), template_text("tables.js"), template_text("page.js"))
    scripts = [Markup(each) for each in own]  # noqa: S704 - our own scripts, nothing from a study
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["tied"] = tied
    environment.filters["linked"] = lambda text: linked(text, page.commits)
    template = environment.from_string(template_text("page.html"))
    columns = Columns()
    return template.render(
        page=page,
        at_once=AT_ONCE,
        style=Markup(template_text("page.css")),  # noqa: S704 - as above
        scripts=scripts,
        policy=content_policy(scripts, evaluates=True),
        stills={name: _data_address(drawn) for name, drawn in stills.items() if len(drawn) <= LARGEST_STILL},
        specs={chart.name: _inert(chart.spec) for chart in page.charts},
        looks=_inert({"light": config("light"), "dark": config("dark")}),
        unfolded={table.name: columns.of_table(table) for table in _long_tables(page)},
        detail={
            section.chart.name: columns.of_detail(section)
            for section in page.every_section
            if section.chart is not None and section.detail
        },
        columns=[Markup(text) for text in columns.texts],  # noqa: S704 - inert_json wrote them
    )


def _long_tables(page: Page) -> Iterator[Table]:
    """Return the tables of which only the first rows are visible."""
    for section in page.every_section:
        yield from (table for table in section.tables if len(table.rows) > AT_ONCE and not table.whole)


def _inert(data: Json) -> Markup:
    return Markup(inert_json(data))  # noqa: S704 - inert_json escapes it


def tied(text: str) -> str:
    """Keep a value and its sign, and a ratio, on one line."""
    return text.replace(" %", "\u00a0%").replace("× ", "×\u00a0")


_LINKED = re.compile(rf"((?<![0-9a-f])[0-9a-f]{{10}}(?![0-9a-f])|{re.escape(DOCUMENTATION)}/[\w/#-]+\.html)")


def linked(text: str, commits: Mapping[str, str]) -> Markup:
    """Return hostile text as HTML. Short ids of commits link to their addresses; pages of the documentation are links.

    >>> linked("at 3f9c2ab41d <b>", {"3f9c2ab41d": "https://example.org/3"})
    Markup('at <a href="https://example.org/3">3f9c2ab41d</a> &lt;b&gt;')
    """
    link = Markup('<a href="{}">{}</a>')

    def part_of(part: str) -> Markup | str:
        if part.startswith(DOCUMENTATION):
            return link.format(part, part.removeprefix(f"{DOCUMENTATION}/"))
        return link.format(commits[part], part) if part in commits else part

    parts = _LINKED.split(text)
    return Markup().join(part_of(part) if number % 2 else part for number, part in enumerate(parts))


def content_policy(scripts: Sequence[str], *, evaluates: bool) -> str:
    """Return the content security policy of a page: only its own scripts, by digest, and no request.

    `evaluates`: a script compiles functions, as Vega does.
    """
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    evaluation = " 'unsafe-eval'" if evaluates else ""
    return (
        f"default-src 'none'; script-src {allowed}{evaluation}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _data_address(drawn: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.encode()).decode()


def template_text(name: str) -> str:
    """Return a file of the templates."""
    return (files("perftrail.present") / "templates" / name).read_text(encoding="utf-8")


def write_page(page: Page, directory: str, drawings: Drawings) -> tuple[Path, ...]:
    """Write the page and the images of its charts; return every file. Raises `UsageError` if one cannot be written.

    `drawings` are charts that are already being drawn.
    """
    root = Path(directory)
    try:
        create_directory(create_directory(root) / IMAGES)
        drawn = drawings.drawn(page.charts)
        stills = {name: each.svg for name, each in drawn.items()}
        write_file(root / PAGE, to_html(page, stills))
        for chart in page.charts:
            write_images(chart, drawn[chart.name], root / IMAGES)
    except OSError as error:
        raise unwritable(directory, error) from error
    images = (root / IMAGES / f"{chart.name}.{kind}" for chart in page.charts for kind in ("svg", "png"))
    return (root / PAGE, *images, *write_linked(page, root))
