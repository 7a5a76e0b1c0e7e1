"""Where it changed: a guide that finds where to look, and a certificate that decides. Pure."""

from perftrail.search.answer import Action, Answer, Change, Effect, Kind, Measure, Settled, Verdict
from perftrail.search.certificate import Certificate, Summary
from perftrail.search.evidence import Batch, BootSession, Built, CannotRelink, News, Sample, Unusable
from perftrail.search.many import AllSettled, ManySearch, Visit
from perftrail.search.merges import Found, MergeSearch, Origin
from perftrail.search.posterior import Belief
from perftrail.search.question import Budget, Costs, Question
from perftrail.search.search import Search

__all__ = [
    "Action",
    "AllSettled",
    "Answer",
    "Batch",
    "Belief",
    "BootSession",
    "Budget",
    "Built",
    "CannotRelink",
    "Certificate",
    "Change",
    "Costs",
    "Effect",
    "Found",
    "Kind",
    "ManySearch",
    "Measure",
    "MergeSearch",
    "News",
    "Origin",
    "Question",
    "Sample",
    "Search",
    "Settled",
    "Summary",
    "Unusable",
    "Verdict",
    "Visit",
]
