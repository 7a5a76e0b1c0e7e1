"""A fake history, builder and starter, with speeds and failures that a test chooses."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perftrail.builds.trees import NO_SOURCES
from perftrail.model.build import Built, Failure, ManualBuild, Prepared, Recipe, content_key
from perftrail.model.process import Command, Ended, Exited, Ran
from perftrail.model.subject import Merge, Revision, Subject


@dataclass
class FakeSource:
    """Revisions r0, r1, …; `same_as` gives a revision the tree of another one.

    `merges` has the merges, `paths` the touched paths of revisions.
    """

    count: int
    same_as: dict[str, str] = field(default_factory=dict)
    merges: dict[str, Merge] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        revisions = tuple(
            Revision(id=f"r{number}", summary=f"change {number}") for number in _numbers(self.count)
        )
        if range is None:
            return revisions
        first, last = range.split("..")
        ids = [revision.id for revision in revisions]
        return revisions[ids.index(first) : ids.index(last) + 1]

    def within(self, range: str) -> frozenset[str]:
        return frozenset(revision.id for revision in self.history(range))

    def merge(self, revision: Revision) -> Merge | None:
        return self.merges.get(revision.id)

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        return tuple(self.paths.get(each.id, ()) for each in revisions)

    def content(self, revision: Revision) -> str:
        return self.same_as.get(revision.id, revision.id)

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        raise NotImplementedError


@dataclass
class FakeBuilder:
    """Builds every revision except those in `broken`, which fail with `error`; records the ids of all tried ones."""

    source: FakeSource
    broken: Collection[str] = ()
    error: str = "error: expected ';'"
    built_ids: list[str] = field(default_factory=list)
    parallel_builds: int = 1
    begun: list[str] = field(default_factory=list)
    relinks: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    unlinkable: Collection[int] = ()
    alike: bool = False
    decisive: list[str] = field(default_factory=list)

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        self.begun += [subject.revision.id for subject, _ in subjects]

    def key(self, subject: Subject, recipe: Recipe) -> str:
        return content_key(self.source.content(subject.revision), list(recipe.steps), dict(recipe.env))

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        self.built_ids.append(subject.revision.id)
        if subject.revision.id in self.broken:
            return Failure(stage="build", message=self.error, log="/logs/build.log", seconds=1.0)
        content = self.source.content(subject.revision)
        return Built(
            key=self.key(subject, recipe), artefact=content, directory=f"/builds/{content}", seconds=2.0
        )

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:
        return content_key("layout", built.key, list(recipe.relink), layout)

    @property
    def records_links(self) -> bool:
        return False

    def unpinned(self, prepared: Prepared, recipe: Recipe) -> str:
        return "this builder records no links"

    def relink(
        self, subject: Subject, recipe: Recipe, built: Built, layouts: Sequence[int]
    ) -> Mapping[int, Built | Failure]:
        """Relink to other artefacts, or always to the same when `alike`; `unlinkable` seeds fail."""
        self.relinks.append((subject.revision.id, tuple(layouts)))
        found: dict[int, Built | Failure] = {}
        for layout in layouts:
            if layout in self.unlinkable:
                found[layout] = Failure(stage="relink", message="ld: no such option", log="/logs/relink.log")
                break
            key = self.layout_key(built, recipe, layout)
            artefact = f"{built.artefact} relinked" if self.alike else f"{built.artefact} as {layout}"
            found[layout] = Built(
                key=key,
                artefact=artefact,
                directory=f"{built.directory}.{layout}",
                seconds=0.1,
                layout=layout,
            )
        return found

    def benchmark_build_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> str:
        return content_key("link", built.key, list(steps), dict(env), sorted(files))

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> Prepared | Failure:
        return Prepared(built=built, out=f"{built.directory}/out", artefact="")

    def protect(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        pass

    def messages(self) -> tuple[str, ...]:
        return ()

    def confirm(self, decisive: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        self.decisive += [subject.revision.id for subject, _ in decisive]

    def check_out(self, subject: Subject, recipe: Recipe, directory: str) -> ManualBuild:
        raise NotImplementedError

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        return {"build": prepared.built.directory, "out": prepared.out, "study": "/study", "cpus": "2"}


@dataclass
class FakeStarter:
    """Takes as long as `seconds(arguments)` says, with separate noise, and records what it started.

    Every program prints `output`, or what `prints(arguments)` returns. Its clock also passes `pause` seconds after
    each.
    """

    seconds: Callable[[tuple[str, ...]], float]
    noise: float = 0.01
    output: str = ""
    prints: Callable[[tuple[str, ...]], str] | None = None
    ended: Callable[[tuple[str, ...]], Ended] = lambda _: Exited(code=0)
    started: list[tuple[str, ...]] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    pause: float = 0.0
    spent: float = 0.0

    def clock(self) -> float:
        """Return the seconds of all programs so far."""
        return self.spent

    def run(self, command: Command) -> Ran:
        self.started.append(command.arguments)
        output = self.output if self.prints is None else self.prints(command.arguments)
        if output:
            assert command.stdout is not None
            Path(command.stdout).write_text(output)
        seconds = self.seconds(command.arguments) * math.exp(self.chance.gauss(0.0, self.noise))
        self.spent += seconds + self.pause
        return replace(RAN, ended=self.ended(command.arguments), wall_seconds=seconds, tree_ended_at=seconds)


RAN = replace(
    Ran.uncounted(Exited(code=0), began=0.0, now=0.0),
    cpu_seconds=0.01,
    user_seconds=0.01,
    max_rss_bytes=1 << 20,
)
"""A process that did nothing."""


def _numbers(count: int) -> range:
    return range(count)


def number_of(arguments: tuple[str, ...]) -> int:
    """The revision's number, from the command ``{build}/program`` with the paths of these fakes."""
    return int(arguments[0].split("/")[2].removeprefix("r"))
