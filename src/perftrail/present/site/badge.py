"""The state of a site in a few words: as a badge (SVG), and as the JSON of shields.io's endpoint badge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from markupsafe import escape

from perftrail.model.wording import escaped

if TYPE_CHECKING:
    from perftrail.present.site.history import SiteHistory, State

LABEL = "performance"

COLOURS: dict[State, str] = {
    "slower": "#b34700",
    "faster": "#005a8f",
    "same": "#006b4f",
    "unclear": "#5a6270",
    "retired": "#5a6270",
}
"""Colours that colour-blind readers distinguish, with white text at a contrast above 4.5; the words say the same."""

HEIGHT, PADDING = 20, 6
WIDE, NARROW = frozenset("mwMW%@"), frozenset("ijlftr.,:;!'|()[] ")
PIXELS_WIDE, PIXELS, PIXELS_NARROW = 10.0, 6.8, 4.3
"""Width of a letter at 11 pixels of the fonts that browsers choose; the badge then fits the text to it exactly."""

LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """The state of a site: a message, and the state that decides its colour."""

    message: str
    state: State


class ShieldsJson(TypedDict):
    """JSON of a badge for https://img.shields.io/endpoint."""

    schemaVersion: Literal[1]
    label: str
    message: str
    color: str


def badge_of(history: SiteHistory) -> Badge:
    """Return the badge of a site: the worse metrics, else the better ones, else whether there is no change."""
    counts = history.counts
    for state, words in (("slower", ("slower", "worse")), ("faster", ("faster", "better"))):
        changed = [each for each in history.metrics if each.state == state]
        if changed:
            word = words[0] if all(each.is_time for each in changed) else words[1]
            return Badge(message=f"{len(changed)} {word}", state="slower" if state == "slower" else "faster")
    if counts["unclear"] == len(history.current):
        return Badge(message="unclear", state="unclear")
    if counts["unclear"]:
        return Badge(message=f"no change, {counts['unclear']} unclear", state="same")
    return Badge(message="no change", state="same")


def to_shields(badge: Badge) -> ShieldsJson:
    """Return a badge for shields.io."""
    return {
        "schemaVersion": 1,
        "label": LABEL,
        "message": escaped(badge.message, longest=LONGEST),
        "color": COLOURS[badge.state].removeprefix("#"),
    }


def to_svg(badge: Badge, *, label: str = LABEL) -> str:
    """Return a badge as an image; hostile text stays text."""
    label, message = (escaped(text, longest=LONGEST) for text in (label, badge.message))
    left, right = (round(_pixels(text)) + 2 * PADDING for text in (label, message))
    width = left + right
    title = escape(f"{label}: {message}")
    texts = "".join(_text(text, x, size) for text, x, size in ((label, 0, left), (message, left, right)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" '
        f'viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{width}" height="{HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><path fill="#41464f" d="M0 0h{left}v{HEIGHT}H0z"/>'
        f'<path fill="{COLOURS[badge.state]}" d="M{left} 0h{right}v{HEIGHT}H{left}z"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">{texts}</g></svg>\n'
    )


def _text(text: str, x: int, size: int) -> str:
    return f'<text x="{x + PADDING}" y="14" textLength="{size - 2 * PADDING}">{escape(text)}</text>'


def _pixels(text: str) -> float:
    return sum(
        PIXELS_WIDE if letter in WIDE else PIXELS_NARROW if letter in NARROW else PIXELS for letter in text
    )
