"""Draw the difference of two profiles as a flame graph: one file that needs no network.

Each frame is as wide as the larger of its costs; its two lines are the costs before and after. Orange frames cost more
after, blue ones less, grey ones the same: colours that colour-blind people distinguish. The file is an SVG, or an HTML
page with it: a drawing of the largest frames, for readers without scripts. Its script replaces the drawing by one
that can be zoomed and searched, and that has every frame of at least 1.5 pixels.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING, Literal

from perftrail.model.build import content_key
from perftrail.model.wording import escaped, percent
from perftrail.present.answer_sentence import revision_name
from perftrail.present.html_page import LinkedFile, inert_json, template_text
from perftrail.stats.call_tree import layout_widths
from perftrail.verbs.explain.functions import stored_call_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.json_data import Json
    from perftrail.model.profile import Function
    from perftrail.model.store_records import ExplanationRecord
    from perftrail.model.subject import Revision
    from perftrail.stats.call_tree import CallTree

WIDTH = 1200
ROW = 19
TOP = 44
STILL_SHARE = 0.002
"""Smallest share of a frame that is drawn without scripts."""

LONGEST_NAME = 300
LETTER_WIDTH = 6.6

Kind = Literal["svg", "html"]


def flame_graph(tree: CallTree, *, title: str, kind: Kind, roots: tuple[str, ...] = ()) -> str:
    """Return the file; `title` and all names are untrusted. `roots` are directories that file names leave out."""
    widths = [float(f"{each:.6g}") for each in layout_widths(tree)]
    data: dict[str, Json] = {
        "names": [_name(each, roots) for each in tree.names],
        "parents": [*tree.parents],
        "functions": [*tree.functions],
        "before": [float(f"{each:.6g}") for each in tree.before],
        "after": [float(f"{each:.6g}") for each in tree.after],
        "widths": [*widths],
    }
    script = template_text("flame.js").replace("FLAME_DATA", inert_json(data))
    if kind == "svg":
        return _svg(_frames(tree, widths), title, f"<script><![CDATA[{script}]]></script>")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    body = _svg(_frames(tree, widths), title, "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(escaped(title))}</title>'
        "<style>body { margin: 0; background: #fff } "
        "@media (prefers-color-scheme: dark) { body { background: #15181d } }</style></head>"
        f"<body>{body}<script>{script}</script></body></html>\n"
    )


def stored_flame_graph(record: ExplanationRecord, revisions: Mapping[str, Revision]) -> LinkedFile | None:
    """Return the flame graph of a stored explanation as a page; `None` without call paths. `revisions` are by id."""
    stored = stored_call_tree(record)
    if stored is None:
        return None
    culprit, against = (
        revision_name(revisions[each]) if each in revisions else escaped(each[:10])
        for each in (record.revision, record.against)
    )
    return LinkedFile(
        name=f"flame-{content_key(record.key)[:12]}.html",  # a foreign store may have any key
        title=f"Flame graph of the difference: {culprit}",
        content=lambda: flame_graph(
            stored.tree, title=f"{stored.place}: {culprit} against {against}", kind="html"
        ),
    )


def _name(function: Function, roots: tuple[str, ...]) -> list[Json]:
    file = function.file
    for root in roots:
        file = file.removeprefix(root)
    return [escaped(function.name, longest=LONGEST_NAME), escaped(file, longest=LONGEST_NAME), function.line]


def _svg(frames: str, title: str, script: str) -> str:
    name = escape(escaped(title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="flame" viewBox="0 0 {WIDTH} {_height(frames)}" '
        f'width="{WIDTH}" height="{_height(frames)}" style="max-width: 100%; height: auto" '
        f'font-family="monospace" font-size="11"><title>{name}</title><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="6" y="16" font-size="14" font-family="sans-serif">{name}</text>'
        f'<text x="6" y="{TOP - 8}" font-family="sans-serif">orange: more after, blue: less</text>'
        f"{frames}{script}</svg>\n"
    )


def _height(frames: str) -> int:
    return TOP + (frames.count("data-depth") + 2) * ROW if frames else TOP


def _frames(tree: CallTree, widths: list[float]) -> str:
    """Return the largest frames for readers without scripts, one group for each depth."""
    whole = widths[0] if widths else 0.0
    if whole <= 0.0:
        return ""
    left, filled, depth = [0.0] * len(widths), [0.0] * len(widths), [0] * len(widths)
    rows: dict[int, list[str]] = {}
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            left[node] = left[parent] + filled[parent]
            filled[parent] += widths[node]
            depth[node] = depth[parent] + 1
        if widths[node] < STILL_SHARE * whole:
            continue
        x, width = (value / whole * (WIDTH - 8) for value in (left[node], widths[node]))
        y = TOP + depth[node] * ROW
        name = escaped(tree.names[tree.functions[node]].name, longest=LONGEST_NAME)
        costs = (
            f"{name}: {percent(tree.before[node] / (tree.before[0] or 1.0))} before, "
            f"{percent(tree.after[node] / (tree.after[0] or 1.0))} after"
        )
        letters = int((width - 6) / LETTER_WIDTH)
        shown = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 2 else ""
        text = f'<text x="{x + 7:.2f}" y="{y + ROW - 7}">{escape(shown)}</text>' if shown else ""
        rows.setdefault(depth[node], []).append(
            f'<g><title>{escape(costs)}</title><rect x="{x + 4:.2f}" y="{y}" width="{max(0.5, width - 0.5):.2f}" '
            f'height="{ROW - 1}" fill="{_colour(tree.before[node], tree.after[node], tree.before[0])}"/>{text}</g>'
        )
    return "".join(f'<g data-depth="{level}">{"".join(frames)}</g>' for level, frames in sorted(rows.items()))


def _colour(before: float, after: float, total: float) -> str:
    """Return the colour of a frame, the same as that of the script."""
    larger, change = max(before, after), after - before
    if larger <= 0.0 or abs(change) < 0.0005 * total:
        return "#e6e6e6"
    part = 0.25 + 0.75 * min(1.0, abs(change) / larger)
    end = (217, 95, 2) if change > 0.0 else (33, 102, 172)
    return "#" + "".join(f"{round(230 + (value - 230) * part):02x}" for value in end)
