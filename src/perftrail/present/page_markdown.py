"""A report as Markdown, for an issue or a pull request: the answer, what supports it, one table for each figure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.present.page import Page, Section, Table

MOST_ROWS = 25
LONGEST = 400

_ESCAPED = set("\\`*_{}[]<>()#+!|~&$")

_CALLS = re.compile(r"[@#!$~&%^](?=[\w\"'\[])|(?<=:)//|\bGH(?=-\d)|\bwww(?=\.)", re.IGNORECASE)
"""What GitHub or GitLab take for a mention, a reference or a link after all escapes are gone; they are broken up."""


def to_markdown(page: Page, *, images: str = "") -> str:
    """Write the answer and the tables; what others wrote stays text, and calls nobody.

    `images`, where the figures lie as SVG, shows them too.
    """
    return "\n".join(_lines(page, images)).rstrip() + "\n"


def inert(text: str) -> str:
    r"""Write hostile text so that it stays text in Markdown: no mark-up, no mention, no reference, one line.

    >>> inert("[x](y) by @all")
    '\\[x\\]\\(y\\) by @\u200ball'
    """
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    flat = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in cut)
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
    """Inside an HTML tag Markdown's escapes do not count."""
    flat = "".join(letter if letter.isprintable() else " " for letter in text)
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")
