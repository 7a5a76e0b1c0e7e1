"""A report as one page that needs nothing else: no network, no file beside it, no trust in what it quotes."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from perftrail.figures.frame import config
from perftrail.figures.history import plain
from perftrail.report.page_images import bundle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.trail import Json
    from perftrail.report.page import Page, Section

AT_ONCE = 30
"""So many rows of a table stand in the page; the rest is shown when asked for."""

LARGEST_STILL = 200_000
"""A still image beyond this is left out of the page: it lies beside it anyway."""


def to_html(page: Page, stills: Mapping[str, str]) -> str:
    """Write a page; `stills` are its figures drawn as SVG, by name, for readers without scripts and for print."""
    scripts = [Markup(bundle()), Markup(_text("page.js"))]  # noqa: S704 - our own scripts, nothing from a study
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["tied"] = tied
    template = environment.from_string(_text("page.html"))
    return template.render(
        page=page,
        at_once=AT_ONCE,
        style=Markup(_text("page.css")),  # noqa: S704 - as above
        scripts=scripts,
        policy=_policy(scripts),
        stills={name: _data_address(drawn) for name, drawn in stills.items() if len(drawn) <= LARGEST_STILL},
        data=Markup(inert_json(_data(page))),  # noqa: S704 - escaped by inert_json
    )


def tied(text: str) -> str:
    """Keep a figure and its sign, and a ratio, on one line."""
    return text.replace(" %", "\u00a0%").replace("× ", "×\u00a0")


def inert_json(data: Json) -> str:
    r"""Write JSON that ends no script and begins no tag, whatever its texts hold.

    >>> inert_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _data(page: Page) -> Json:
    """What the page's script draws and unfolds."""
    sections = page.every_section
    return {
        "figures": {figure.name: figure.spec for figure in page.figures},
        "looks": {"light": config("light"), "dark": config("dark")},
        "rest": {
            table.name: [list(row) for row in table.rows[AT_ONCE:]]
            for section in sections
            for table in section.tables
            if len(table.rows) > AT_ONCE
        },
        "detail": {
            section.figure.name: _detail(section)
            for section in sections
            if section.figure is not None and section.detail
        },
    }


def _detail(section: Section) -> Json:
    """Every point of a thinned figure, in columns: names once, figures as short as they are read."""
    assert section.figure is not None
    about = section.figure.spec["usermeta"]
    assert isinstance(about, dict)
    divisor = about["divisor"]
    assert isinstance(divisor, float)
    rows = [plain(point, divisor) for point in section.detail]
    columns = ("position", "subject", "revision", "value", "low", "high", "count")
    return {name: [_short(row[name]) for row in rows] for name in columns}


def _short(value: Json) -> Json:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _policy(scripts: list[Markup]) -> str:
    """Allow the page's own scripts by their digests and nothing else; Vega compiles its expressions itself."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _data_address(drawn: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.encode()).decode()


def _text(name: str) -> str:
    return (files("perftrail.report") / "templates" / name).read_text(encoding="utf-8")
