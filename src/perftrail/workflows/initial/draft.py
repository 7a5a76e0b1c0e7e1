"""What a first study proposes: how to build a program, and what to run of it. Every choice has its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A shell line of a recipe, and why it is there or what may be changed of it."""

    line: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A metric that the command prints: a regular expression with one group, and the unit."""

    pattern: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A benchmark to begin with. `placeholder`: it only shows that the program starts.

    `build` are lines that make what it needs in ``{out}``, `relink` lines that link it in another order; `uses` are
    paths of the tree, from the revision's root, that it runs; `printed` are the metrics that it prints.
    """

    name: str
    command: str
    why: str
    placeholder: bool = False
    build: tuple[Step, ...] = ()
    relink: tuple[Step, ...] = ()
    uses: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, Printed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """How a build system makes a program.

    `manifest` is the file that told; `tools` are the programs that its lines start. `outputs` are paths
    from the revision's root, none when they cannot be known. `hints` are comments for the recipe. `relink` are lines
    that link what was built in another order for each ``{layout}``, or `never_linked` says why there are none.
    """

    system: str
    manifest: str
    tools: tuple[str, ...]
    steps: tuple[Step, ...]
    trial: Trial
    outputs: tuple[str, ...] = ()
    outputs_why: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    relink: tuple[Step, ...] = ()
    never_linked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Where a program's revisions come from, as `[source]` asks for them.

    `range` is empty for all there is, `revisions` counts what the range spans, 0 when that is not known.
    `troubles` say what is wrong with it and the remedy.
    """

    kind: str
    location: str
    range: str = ""
    range_why: str = ""
    revisions: int = 0
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A first study, before it is written. `others` are the build systems that were found beside it."""

    name: str
    directory: str
    history: History
    building: Building | None
    others: tuple[Building, ...] = ()
