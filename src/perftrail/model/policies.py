"""How to measure and what to look for, where a study says more than the usual."""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from perftrail.model.conditions import Quiet
from perftrail.model.key import Key

Order = Literal["interleaved", "random", "sequential"]
Prior = Literal["suspect", "size", "notes", "measured"]
"""What may make a revision a likelier culprit before anything is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocations:
    """How often a point is run: at least, and at most when the interval stays too wide."""

    least: int = 5
    most: int = 30

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"invocations {self.least}..{self.most}: write AT_LEAST..AT_MOST, from 1")

    def __str__(self) -> str:
        return f"{self.least}..{self.most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePolicy:
    """How `run` measures: how often, how precisely, in which order."""

    invocations: Annotated[
        Invocations, Key("How often each point is run: at least..at most, or a number.", form="invocations")
    ] = field(default_factory=Invocations)
    precision: Annotated[
        float, Key("A point is done when its interval is this narrow, relative to it.", above=0, below=1)
    ] = 0.02
    order: Annotated[
        Order,
        Key(
            "In which order subjects are run; interleaved: side by side in random order, points there and back."
        ),
    ] = "interleaved"
    warmups: Annotated[int, Key("Invocations before the first that counts.", least=0)] = 1
    seed: Annotated[int, Key("Makes every random choice repeatable.", least=0)] = 1
    vary_path: Annotated[
        bool,
        Key(
            "Show each invocation its build, {build} and {out}, at a path of another length; false: for programs "
            "that must run where they were built."
        ),
    ] = True
    quiet: Annotated[
        Quiet,
        Key(
            "When others use the CPUs: mark the sample, refuse to measure, or wait that long before each "
            "invocation and then mark.",
            form="quiet",
        ),
    ] = field(default_factory=Quiet)
    quiet_threshold: Annotated[
        float, Key("How much of one CPU others may use before the machine counts as busy.", above=0)
    ] = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPolicy:
    """What `find` looks for. A metric is ``NAME``, ``BENCHMARK.NAME``, either with ``[parameter=value]``.

    ``works`` asks where it began to fail. Without any, all metrics of the study are followed together.
    """

    metric: Annotated[
        tuple[str, ...],
        Key(
            "What changed: NAME or BENCHMARK.NAME, with [parameter=value] where several remain; works for "
            "where it began to fail; several share one walk; without it, all.",
            form="texts",
        ),
    ] = ()
    variant: Annotated[str | None, Key("In which variant.")] = None
    smallest: Annotated[float, Key("The smallest change worth finding, relative.", above=0)] = 0.05
    confidence: Annotated[float, Key("How sure an answer must be.", above=0.5, below=1)] = 0.99
    budget_seconds: Annotated[
        float | None, Key("How long a search may take.", name="budget", form="duration", above=0)
    ] = None
    budget_invocations: Annotated[int | None, Key("How many invocations a search may make.", least=1)] = None
    budget_builds: Annotated[int | None, Key("How many builds a search may make.", least=1)] = None
    suspect: Annotated[
        tuple[str, ...],
        Key("Paths, ** and * allowed: revisions that touch none of them are less likely the culprit."),
    ] = ()
    prior: Annotated[
        tuple[Prior, ...],
        Key(
            "What is believed beforehand, all of it unless said: suspect (touches those paths), size (how many "
            "files it touches), notes (its message speaks of speed or memory), measured (near a change that "
            "earlier measurements show)."
        ),
    ] = ("suspect", "size", "notes", "measured")
