"""Where it changed: a Bayesian search, told readings and asked what to measure next. Pure."""

from perftrail.search.action import Action, Measure, Settled
from perftrail.search.answer import Answer, Change, Effect, Kind, Verdict
from perftrail.search.evidence import Block, News, Readings, Same, Unusable
from perftrail.search.inside import Found, Inside, Origin
from perftrail.search.matrix import AllSettled, Matrix, Visit
from perftrail.search.question import Budget, Costs, Question
from perftrail.search.search import Search
from perftrail.search.snapshot import Belief
from perftrail.search.survey import Survey

__all__ = [
    "Action",
    "AllSettled",
    "Answer",
    "Belief",
    "Block",
    "Budget",
    "Change",
    "Costs",
    "Effect",
    "Found",
    "Inside",
    "Kind",
    "Matrix",
    "Measure",
    "News",
    "Origin",
    "Question",
    "Readings",
    "Same",
    "Search",
    "Settled",
    "Survey",
    "Unusable",
    "Verdict",
    "Visit",
]
