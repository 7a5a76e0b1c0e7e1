"""The shape of the study file: its tables, as they are named there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from perftrail.model.benchmark import Benchmark
from perftrail.model.field import AXIS, FIGURE, NAME, Key
from perftrail.model.metrics import Derived
from perftrail.model.recipe import Build, Variant
from perftrail.model.source import MAIN, Source
from perftrail.model.study import Claim, FindPolicy, MeasurePolicy, Sandbox, WatchPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What the study is about."""

    title: Annotated[str, Key("The question, in a sentence.")] = ""
    along: Annotated[
        str, Key("The source whose history is walked: main, which is [source], or one of [sources].")
    ] = MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A perftrail study: one question about a program's performance."""

    study: Annotated[Heading, Key("What the study is about.")] = field(default_factory=Heading)
    source: Annotated[Source, Key("Where revisions come from.")]
    sources: Annotated[
        Mapping[str, Source],
        Key(
            "Other sources, an application or a benchmark program, say: {source.NAME} is where such a tree lies.",
            names=AXIS,
        ),
    ] = field(default_factory=dict)
    build: Annotated[Build, Key("How a revision is made usable.")] = field(default_factory=Build)
    variants: Annotated[
        Mapping[str, Variant],
        Key("Named ways to build or to run; without any there is one, plain.", names=NAME),
    ] = field(default_factory=dict)
    benchmark: Annotated[
        Mapping[str, Benchmark],
        Key("Commands to run, with their parameters and metrics; a study of samples has none.", names=NAME),
    ] = field(default_factory=dict)
    derived: Annotated[
        Mapping[str, Derived], Key("Metrics computed from others of one benchmark.", names=FIGURE)
    ] = field(default_factory=dict)
    claims: Annotated[
        Mapping[str, Claim],
        Key(
            "Sentences to be judged by what is measured, a paper's, say: `perftrail show --claims`.",
            names=NAME,
        ),
    ] = field(default_factory=dict)
    measure: Annotated[MeasurePolicy, Key("How often, how precisely, in which order.")] = field(
        default_factory=MeasurePolicy
    )
    find: Annotated[FindPolicy, Key("What `perftrail find` looks for.")] = field(default_factory=FindPolicy)
    sandbox: Annotated[Sandbox, Key("What builds and runs may see and use in a sandbox.")] = field(
        default_factory=Sandbox
    )
    watch: Annotated[WatchPolicy, Key("What `perftrail watch` follows, and who is told.")] = field(
        default_factory=WatchPolicy
    )
