"""Where it changed: a Bayesian search, told readings and asked what to measure next. Pure."""

from perftrail.search.answer import Answer, Change, Effect, Verdict
from perftrail.search.evidence import News, Readings, Unusable
from perftrail.search.question import Budget, Costs, Question
from perftrail.search.search import Action, Measure, Search, Settled
from perftrail.search.snapshot import Belief

__all__ = [
    "Action",
    "Answer",
    "Belief",
    "Budget",
    "Change",
    "Costs",
    "Effect",
    "Measure",
    "News",
    "Question",
    "Readings",
    "Search",
    "Settled",
    "Unusable",
    "Verdict",
]
