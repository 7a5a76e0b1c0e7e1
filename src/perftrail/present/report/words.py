"""Names of revisions, rows and values in a report: escaped and short."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.model.wording import escaped
from perftrail.present.shared_sentences import estimate_words, interval_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from perftrail.model.subject import Revision
    from perftrail.results.rows import Row
    from perftrail.stats.changepoints import ChangePoint
    from perftrail.stats.series_noise import Correlation


def revision_mark(revision: Revision) -> str:
    """Return a short name of a revision for tables and charts: short id and label."""
    label = revision.label if revision.label != revision.id else ""
    return escaped(f"{revision.short} {label}".strip(), longest=40)


def row_metric(row: Row) -> str:
    """Return the metric of a row: benchmark, metric, point."""
    point = f" at {escaped(str(row.point))}" if row.point.values else ""
    return f"{row.benchmark}.{row.metric}{point}"


def row_value(row: Row) -> str:
    """Return a row's median with its interval, and the interval's confidence if few samples allow less than 95 %."""
    estimate = row.estimate
    text = estimate_words(estimate, row.unit)
    if estimate is not None and estimate.count > 1 and estimate.confidence < 0.9495:
        text += f", {100.0 * estimate.confidence:.0f} % interval"
    return text


def size_words(point: ChangePoint) -> str:
    """Return the size of a change compared with the noise."""
    size = interval_words(point.size, point.size_low, point.size_high)
    return f"{size} times the noise of one revision"


LEAST_PROBABILITY = 0.001
"""Smaller probabilities are not stated: they rest on the model of the noise alone."""


def certainty_words(point: ChangePoint) -> str:
    """Return how certain a change along the history is."""
    bound = max(point.p_value, LEAST_PROBABILITY)
    return f"{size_words(point)}; probability of a false alarm at most {bound:.1g}"


def correlation_words(correlation: Correlation) -> str:
    """Return that neighbouring revisions are correlated, and what follows."""
    return (
        f"neighbouring revisions resemble each other: correlation {correlation.value:.2f} "
        f"[{correlation.low:.2f}, {correlation.high:.2f}]. Small changes cannot be separated from such noise"
    )


def slug(text: str, taken: Collection[str] = ()) -> str:
    """Return a file name for any text: letters, digits and dashes, different from those in `taken`.

    >>> slug("../../etc/passwd"), slug("mt real", {"mt-real"})
    ('etc-passwd', 'mt-real-2')
    """
    name = re.sub(r"[^A-Za-z0-9]+", "-", text)[:60].strip("-").lower() or "chart"
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique
