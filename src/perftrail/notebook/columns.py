"""What the tables of a notebook hold: every column with its name, its kind and its meaning, in order.

The names and meanings are a contract: columns may be added at the end, none changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "text", "number", "whole", "moment", "truth", "names"]
"""What a column holds; a `name` is a text that comes again and again."""

KINDS: dict[Kind, str] = {
    "name": "dictionary<int32, string>",
    "text": "string",
    "number": "double",
    "whole": "int64",
    "moment": "timestamp[us, UTC]",
    "truth": "bool",
    "names": "list<string>",
}
"""Each kind as Arrow calls it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `unit` is that of all its values, ``1`` of a ratio or share, `EACH` where the row says it."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""


EACH = "each"
"""The unit of a column whose rows have theirs in the column ``unit``."""


PARAMETERS = Column("PARAMETER…", "number", "One column for each parameter of the study's benchmarks.")
"""Stands for the columns that each study brings: int64, double or names, as its values are."""

POSITION = Column(
    "position", "whole", "Where the revision stands in the study's history, oldest first, from 0."
)
REVISION = Column("revision", "name", "The revision's full id.")
LABEL = Column("label", "name", "Its human name: the release or version it belongs to; empty without one.")
VARIANT = Column("variant", "name", "The variant.")
BENCHMARK = Column("benchmark", "name", "The benchmark.")
METRIC = Column("metric", "name", "The metric.")
UNIT = Column("unit", "name", "The unit of this row's figures; empty for a plain number.")
BETTER = Column("better", "name", "Which direction is an improvement: `lower` or `higher`.")

SAMPLES = (
    POSITION,
    REVISION,
    LABEL,
    VARIANT,
    BENCHMARK,
    PARAMETERS,
    METRIC,
    Column("value", "number", "The value.", EACH),
    UNIT,
    Column(
        "invocation",
        "whole",
        "Which invocation of its runnable gave it, from 0; equal ones were taken in one round.",
    ),
    Column(
        "started", "moment", "When that invocation was started; null where the store has no readable time."
    ),
    Column("machine", "name", "The machine it was taken on."),
    Column(
        "flags",
        "names",
        "Words that limit what the value means: `busy`, `stolen`, `throttled`, `output-cut`…",
    ),
    Column(
        "quiet", "truth", "Whether no flag says that others used the machine; estimates prefer quiet samples."
    ),
    Column("method", "name", "How the value was got, where several ways exist; null else."),
    Column(
        "runnable",
        "name",
        "What ran, by its content. Subjects with equal builds share it, and their samples stand once for each.",
    ),
)
"""One row for each value of each invocation."""

ESTIMATES = (
    POSITION,
    REVISION,
    LABEL,
    VARIANT,
    BENCHMARK,
    PARAMETERS,
    METRIC,
    Column("value", "number", "The median of the samples; null where nothing could be measured.", EACH),
    Column("low", "number", "The lower end of the median's interval.", EACH),
    Column("high", "number", "The upper end of the median's interval.", EACH),
    UNIT,
    BETTER,
    Column("confidence", "number", "What the interval reaches: 0.95, less with fewer than six samples.", "1"),
    Column("count", "whole", "How many samples the estimate uses."),
    Column("failures", "whole", "How many invocations gave no value."),
    Column("flags", "names", "Every flag of the samples."),
    Column(
        "noise",
        "text",
        "Which samples were marked as taken in noise, and what became of them; empty for none.",
    ),
    Column("time", "moment", "When the revision was made; null where its source does not say."),
    Column("summary", "text", "The first line of its message: text that anybody may have written."),
)
"""One row for each metric of each subject at each point: what `perftrail show` prints."""

CHANGES = (
    POSITION,
    REVISION,
    LABEL,
    VARIANT,
    BENCHMARK,
    PARAMETERS,
    METRIC,
    UNIT,
    BETTER,
    Column("before", "number", "The level before.", EACH),
    Column("after", "number", "The level from this revision on.", EACH),
    Column("effect", "number", "after/before.", "1"),
    Column("low", "number", "The lower end of the effect's 95 % interval.", "1"),
    Column("high", "number", "The upper end of the effect's 95 % interval.", "1"),
    Column("p_value", "number", "How probable so sure a change is where there is none.", "1"),
    Column("size_in_noise", "number", "The change over the noise of one revision, without its sign.", "1"),
    Column("size_in_noise_low", "number", "The lower end of the size's 95 % interval.", "1"),
    Column("size_in_noise_high", "number", "The upper end of the size's 95 % interval.", "1"),
    Column("alert", "truth", "Whether the change is surely large, and shown by several builds."),
    Column(
        "candidates",
        "names",
        "The revisions that may have made it, oldest first: more than one where some were not measured.",
    ),
    Column("earliest", "name", "The first revision at which it may lie, with 95 %."),
    Column("latest", "name", "The last revision at which it may lie, with 95 %."),
)
"""One row for each change point along the history: what `perftrail show` prints below its table."""

COMPARISONS = (
    Column("subject", "name", "What is compared: a variant, or a revision by its short id and label."),
    Column(
        "reference", "name", "What it is compared with: the first variant, or the oldest revision measured."
    ),
    BENCHMARK,
    METRIC,
    BETTER,
    Column(
        "effect",
        "number",
        "subject/reference of invocations that ran in turns; of several points the geometric mean.",
        "1",
    ),
    Column("low", "number", "The lower end of the effect's interval.", "1"),
    Column("high", "number", "The upper end of the effect's interval.", "1"),
    Column(
        "confidence", "number", "What the interval reaches, all comparisons of the table considered.", "1"
    ),
    Column("pairs", "whole", "How many pairs there are, over all points."),
    Column("verdict", "name", "`faster`, `slower`, `same` or `unclear`: of smaller, larger, equal figures."),
    Column("improved", "truth", "Whether a sure difference is an improvement; null without one."),
    Column(
        "smallest_seen",
        "number",
        "The relative change that would have been called in 80 of 100 cases; null with too few pairs.",
        "1",
    ),
)
"""One row for each benchmark's metric of each subject: what `perftrail report` compares."""

ANSWERS = (
    Column("search", "whole", "The search, as `perftrail show --search N` numbers it."),
    Column("started", "moment", "When it was begun."),
    METRIC,
    BENCHMARK,
    VARIANT,
    UNIT,
    BETTER,
    Column("first", "name", "The known-old end of the range it searches."),
    Column("last", "name", "The other end."),
    Column(
        "verdict", "name", "`found`, `range`, `several`, `none` or `unclear`; null where it has not ended."
    ),
    Column("reason", "text", "Why it ended."),
    Column("confidence", "number", "How sure the answer as a whole is.", "1"),
    Column("smallest_seen", "number", "The smallest relative change that would have been seen.", "1"),
    Column("revisions", "whole", "How many revisions the range has."),
    Column("builds", "whole", "How many of them were built, failed ones too."),
    Column("invocations", "whole", "How many invocations it used."),
    Column("seconds", "number", "What it took.", "s"),
    Column(
        "change", "whole", "Which change of the answer this row is of, from 0; null where none was found."
    ),
    Column("kind", "name", "What the change is: a `step`, or a `ramp` of many small ones."),
    Column(
        "candidates", "names", "The revisions that may have made it, oldest first; one where it was found."
    ),
    Column("sure", "number", "The probability that it is this one, or one of these.", "1"),
    Column("before", "number", "The level before.", EACH),
    Column("after", "number", "The level after.", EACH),
    Column("effect", "number", "after/before.", "1"),
    Column("low", "number", "The lower end of the effect's 95 % interval.", "1"),
    Column("high", "number", "The upper end of the effect's 95 % interval.", "1"),
    Column(
        "inside",
        "text",
        "What was found inside the merge that the culprit is, as JSON; null where nothing was.",
    ),
)
"""One row for each change that a search found; a search that found none, or has not ended, has one row."""

COMMON = frozenset(column.name for columns in (SAMPLES, ESTIMATES, CHANGES) for column in columns)
"""The names of columns that no parameter's column may have."""
