"""Names of revisions, rows and values in a report: escaped and short."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.model.wording import change as relative
from perftrail.model.wording import decimals, escaped, quantity

if TYPE_CHECKING:
    from collections.abc import Collection

    from perftrail.model.subject import Revision
    from perftrail.results.rows import Row
    from perftrail.stats.changepoints import ChangePoint, Correlation


def revision_title(revision: Revision) -> str:
    """Return a revision for a sentence: short id, label, and message."""
    label = f" ({escaped(revision.label)})" if revision.label and revision.label != revision.id else ""
    result = revision.summary and revision.id not in revision.summary
    return f"{revision.short}{label}{f' “{escaped(revision.summary)}”' if result else ''}"


def revision_mark(revision: Revision) -> str:
    """Return a revision for a narrow place: short id and label."""
    label = revision.label if revision.label != revision.id else ""
    return escaped(f"{revision.short} {label}".strip(), longest=40)


def row_metric(row: Row) -> str:
    """Return the metric of a row: benchmark, metric, point."""
    point = f" at {escaped(str(row.point))}" if row.point.values else ""
    return f"{row.benchmark}.{row.metric}{point}"


def row_figure(row: Row) -> str:
    """Return a row's median with its interval."""
    found = row.estimate
    if found is None:
        return "no value"
    if found.count == 1:
        return quantity(found.value, row.unit)
    return quantity(found.value, row.unit, low=found.low, high=found.high)


def effect_words(value: float, low: float, high: float, *, interval: str = "95 % interval") -> str:
    """Return an effect: direction, ratio, interval."""
    digits = decimals(value, low, high)
    return f"{relative(value)} (× {value:.{digits}f}, {interval} {low:.{digits}f} to {high:.{digits}f})"


def size_words(point: ChangePoint) -> str:
    """Return the size of a change compared with the noise."""
    low, high = point.size_low, point.size_high
    digits = decimals(point.size, low, high)
    return f"{point.size:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}] times the noise of one revision"


def certainty_words(point: ChangePoint) -> str:
    """Return how certain a change along the history is."""
    return f"{size_words(point)}; a false alarm with probability {max(point.p_value, 1e-300):.1g} at most"


def correlation_words(found: Correlation) -> str:
    """Return that neighbouring revisions are correlated, and what follows."""
    return (
        f"neighbouring revisions resemble each other: correlation {found.value:.2f} "
        f"[{found.low:.2f}, {found.high:.2f}]. Small changes cannot be separated from such noise"
    )


def slug(text: str, taken: Collection[str] = ()) -> str:
    """Return a file name for any text: letters, digits and dashes, different from those in `taken`.

    >>> slug("../../etc/passwd"), slug("mt real", {"mt-real"})
    ('etc-passwd', 'mt-real-2')
    """
    name = re.sub(r"[^A-Za-z0-9]+", "-", text)[:60].strip("-").lower() or "figure"
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique
