"""Build settings of the study file: the recipe, its eras, and the changes of variants."""

# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from perftrail.model.field import AXIS, ENVIRONMENT, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Another recipe for a range of the history; missing keys are those of `[build]`."""

    range: Annotated[str, Key("The range, A..B; either end may be open.", stand_in="..")]
    directory: Annotated[str | None, Key("Where the steps run, relative to the revision's root.")] = None
    steps: Annotated[tuple[str, ...] | None, Key("Shell lines that build a revision.")] = None
    env: Annotated[
        Mapping[str, str], Key("Variables added to the build's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    timeout_seconds: Annotated[
        float | None, Key("Longest time of a build.", name="timeout", form="duration", above=0)
    ] = None
    outputs: Annotated[
        tuple[str, ...] | None, Key("Files a benchmark may use, relative to the revision's root.")
    ] = None
    overlay: Annotated[
        Mapping[str, str], Key("Files to copy into the tree, in addition to those of [build].")
    ] = field(default_factory=dict)
    patch: Annotated[tuple[str, ...], Key("Patches to apply after those of [build].")] = ()
    relink: Annotated[
        tuple[str, ...] | None, Key("Shell lines that link in another order for each {layout} seed.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How to build a revision: shell lines, run in `directory` of a clean tree."""

    directory: Annotated[str, Key("Where the steps run, relative to the revision's root.")] = "."
    steps: Annotated[tuple[str, ...], Key("Shell lines (sh -eu) that build a revision.")] = ()
    env: Annotated[
        Mapping[str, str],
        Key(
            "Variables added to the build's environment, which has only a few of yours: PATH, HOME, USER, LOGNAME, "
            "CARGO_HOME, RUSTUP_HOME, and those of proxies and certificates.",
            names=ENVIRONMENT,
        ),
    ] = field(default_factory=dict)
    timeout_seconds: Annotated[
        float, Key("Longest time of a build.", name="timeout", form="duration", above=0)
    ] = 1800.0
    outputs: Annotated[
        tuple[str, ...],
        Key(
            "Files a benchmark may use, relative to the revision's root, * and ? allowed. "
            "Builds with equal outputs are one build, measured once."
        ),
    ] = ()
    relink: Annotated[
        tuple[str, ...],
        Key(
            "Shell lines that link the same objects in another order for each {layout} seed (1, 2, …); they run "
            "after the steps, in the same directory. A relinked build stores only the outputs."
        ),
    ] = ()
    pin: Annotated[
        bool,
        Key(
            "Record each link of a build, and repeat it with every piece of code at a place that depends only on a "
            "seed, so that find and compare measure several memory layouts without relink lines, which override it. "
            "false: measure builds as they are linked."
        ),
    ] = True
    overlay: Annotated[
        Mapping[str, str],
        Key(
            "Files of the study to copy into the tree before the steps: a path below this file's directory = "
            "the path in the tree, relative to the revision's root."
        ),
    ] = field(default_factory=dict)
    patch: Annotated[
        tuple[str, ...],
        Key("Patches to apply before the steps, after the overlay: paths below this file's directory."),
    ] = ()
    incremental: Annotated[
        bool,
        Key(
            "Build each revision in the tree of an earlier one, so that make builds only what changed; some builds "
            "are compared with clean ones. Stores only the outputs."
        ),
    ] = False
    unaffected_by: Annotated[
        tuple[str, ...],
        Key(
            "Paths that no build and no benchmark uses, relative to the revision's root, *, ? and ** allowed. "
            "Revisions that differ only in these are built once (git, Fossil)."
        ),
    ] = ()
    disk_bytes: Annotated[
        float,
        Key(
            "Disk quota of the builds. Beyond it, perftrail deletes builds that are cheap to repeat, large and "
            "long unused, but none that the current run needs, and prints a message.",
            name="disk",
            form="size",
            above=0,
        ),
    ] = 10 << 30
    when: Annotated[
        tuple[Era, ...],
        Key(
            "Other recipes for ranges of the history; the last matching one wins. Variables, overlays and patches "
            "of all matching ones accumulate."
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBuild:
    """What a variant changes of the build."""

    directory: Annotated[
        str | None,
        Key("Where the steps run, instead of [build]'s directory; relative to the variant's root."),
    ] = None
    steps: Annotated[tuple[str, ...] | None, Key("Shell lines instead of those of [build].")] = None
    env: Annotated[
        Mapping[str, str], Key("Variables added to the build's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    outputs: Annotated[
        tuple[str, ...] | None, Key("Files a benchmark may use, instead of those of [build].")
    ] = None
    overlay: Annotated[
        Mapping[str, str], Key("Files to copy into the tree, in addition to those of [build] and its eras.")
    ] = field(default_factory=dict)
    patch: Annotated[tuple[str, ...], Key("Patches to apply after those of [build] and its eras.")] = ()
    relink: Annotated[
        tuple[str, ...] | None, Key("Shell lines that link in another order, instead of those of [build].")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRun:
    """What a variant changes of the run: environment, prefix words, and parts of the command."""

    env: Annotated[
        Mapping[str, str], Key("Variables added to the command's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    prefix: Annotated[tuple[str, ...], Key("Words before the command, one item each.")] = ()
    parts: Annotated[
        Mapping[str, str],
        Key("Parts of benchmarks' commands and builds: {NAME} is replaced by this text.", names=AXIS),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A named way to build or to run; `rebuild = false` shares the plain build."""

    directory: Annotated[
        str | None,
        Key(
            "Directory sources only: the folder of this variant, relative to source.location. "
            "Its build contains nothing else, and only a change in the folder triggers a new build."
        ),
    ] = None
    rebuild: Annotated[bool, Key("false: this variant only changes how the command runs.")] = True
    build: Annotated[VariantBuild, Key("What this variant changes of the build.")] = field(
        default_factory=VariantBuild
    )
    run: Annotated[VariantRun, Key("What this variant changes of the run.")] = field(
        default_factory=VariantRun
    )


PLAIN = "plain"
"""Name of the only variant, if a study declares none."""
