"""A study: one question about a program's performance, as its file asks it.

What is said of a field in its `Key`, here and in the modules of its parts, is the reference of the study file:
its JSON Schema, its messages and its documentation are made from it.
"""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perftrail.model.benchmark import Benchmark
from perftrail.model.claim import Claim
from perftrail.model.metrics import Derived
from perftrail.model.pins import MAIN
from perftrail.model.policies import FindPolicy, MeasurePolicy
from perftrail.model.recipe import PLAIN, Build, Variant
from perftrail.model.sandbox import Sandbox
from perftrail.model.source import Source
from perftrail.model.watching import WatchPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One question, read from one file; `directory` is where that file lies.

    `sources` are those beside `source`; `along` names the one whose history is walked.
    """

    title: str
    file: str
    directory: str
    source: Source
    benchmarks: Mapping[str, Benchmark]
    build: Build = field(default_factory=Build)
    variants: Mapping[str, Variant] = field(default_factory=lambda: {PLAIN: Variant()})
    derived: Mapping[str, Derived] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    measure: MeasurePolicy = field(default_factory=MeasurePolicy)
    find: FindPolicy = field(default_factory=FindPolicy)
    sandbox: Sandbox = field(default_factory=Sandbox)
    watch: WatchPolicy = field(default_factory=WatchPolicy)
    sources: Mapping[str, Source] = field(default_factory=dict)
    along: str = MAIN

    @property
    def every_source(self) -> Mapping[str, Source]:
        """Every source by its name, that of `[source]` first."""
        return {MAIN: self.source, **self.sources}

    @property
    def walked(self) -> Source:
        """The source whose history is walked."""
        return self.every_source[self.along]
