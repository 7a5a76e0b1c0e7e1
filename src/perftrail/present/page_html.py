"""A report as one self-contained HTML page: no network, no other file, no trust in the texts that it quotes."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from perftrail.charts.frame import config
from perftrail.present.page import IMAGES, PAGE, unwritable
from perftrail.present.page_images import bundle, write_images

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.search_record import Json
    from perftrail.present.page import Page, Section, Table
    from perftrail.present.page_images import Drawings


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
        assert section.figure is not None
        about = section.figure.spec["usermeta"]
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
    """Return the page; `stills` are its charts as SVG by name, for print and for readers without scripts."""
    scripts = [Markup(bundle()), Markup(_text("page.js"))]  # noqa: S704 - our own scripts, nothing from a study
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["tied"] = tied
    template = environment.from_string(_text("page.html"))
    columns = Columns()
    return template.render(
        page=page,
        at_once=AT_ONCE,
        style=Markup(_text("page.css")),  # noqa: S704 - as above
        scripts=scripts,
        policy=_policy(scripts),
        stills={name: _data_address(drawn) for name, drawn in stills.items() if len(drawn) <= LARGEST_STILL},
        specs={figure.name: _inert(figure.spec) for figure in page.figures},
        looks=_inert({"light": config("light"), "dark": config("dark")}),
        unfolded={table.name: columns.of_table(table) for table in _long_tables(page)},
        detail={
            section.figure.name: columns.of_detail(section)
            for section in page.every_section
            if section.figure is not None and section.detail
        },
        columns=[Markup(text) for text in columns.texts],  # noqa: S704 - inert_json wrote them
    )


def _long_tables(page: Page) -> Iterator[Table]:
    """Return the tables of which only the first rows are visible."""
    for section in page.every_section:
        yield from (table for table in section.tables if len(table.rows) > AT_ONCE and not table.whole)


def _inert(data: Json) -> Markup:
    return Markup(inert_json(data))  # noqa: S704 - that is what makes it inert


def tied(text: str) -> str:
    """Keep a value and its sign, and a ratio, on one line."""
    return text.replace(" %", "\u00a0%").replace("× ", "×\u00a0")


def _policy(scripts: list[Markup]) -> str:
    """Return the content security policy: only the page's own scripts, by digest."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _data_address(drawn: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.encode()).decode()


def _text(name: str) -> str:
    return (files("perftrail.present") / "templates" / name).read_text(encoding="utf-8")


def write_page(page: Page, directory: str, drawings: Drawings) -> tuple[Path, ...]:
    """Write the page and the images of its charts; return every file. Raises `UsageError` if one cannot be written.

    `drawings` are charts that are already being drawn.
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
        raise unwritable(directory, error) from error
    images = (root / IMAGES / f"{figure.name}.{kind}" for figure in page.figures for kind in ("svg", "png"))
    return (root / PAGE, *images)
