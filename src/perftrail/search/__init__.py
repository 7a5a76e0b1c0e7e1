"""Search for the revisions that changed a metric. Pure: no clock, no disk.

- `question`, `budget`, `answer`, `words`: what a search is asked and answers, and sentences about it.
- `search`, `many`, `merges`: ask/tell searches for one metric, several, the branches of a merge.
- `observation`, `evidence`, `drift`: samples and other results, and their correction for the machine's drift.
- `guide`, `policy`, `posterior`, `noise`: where to look first if builds are expensive, by a belief about changes;
  `rate_guide` for a rate.
- `rounds`: what decides. `layout_guard`, `conclude`: what may be named, and the answer. `forecast`: the work left.
"""

from perftrail.search.answer import Action, Answer, Change, Effect, Kind, Measure, Settled, Summary, Verdict
from perftrail.search.budget import Budget, Costs
from perftrail.search.forecast import WorkLeft
from perftrail.search.many import AllSettled, BatchRequest, ManySearch
from perftrail.search.merges import MergeOrigin, MergeSearch, Origin
from perftrail.search.observation import (
    Batch,
    BootSession,
    Built,
    CannotRelink,
    Observation,
    Sample,
    Unusable,
)
from perftrail.search.posterior import Belief
from perftrail.search.question import Question
from perftrail.search.search import Search

__all__ = [
    "Action",
    "AllSettled",
    "Answer",
    "Batch",
    "BatchRequest",
    "Belief",
    "BootSession",
    "Budget",
    "Built",
    "CannotRelink",
    "Change",
    "Costs",
    "Effect",
    "Kind",
    "ManySearch",
    "Measure",
    "MergeOrigin",
    "MergeSearch",
    "Observation",
    "Origin",
    "Question",
    "Sample",
    "Search",
    "Settled",
    "Summary",
    "Unusable",
    "Verdict",
    "WorkLeft",
]
