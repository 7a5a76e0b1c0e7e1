"""What perftrail asks of the world: one Protocol for each edge, written for whoever implements it.

Making subjects usable.

Performing jobs, here or elsewhere.

How processes are started, kept apart and watched.

A program's history, and what some sources can do beside telling it.

Keeping what was measured, searched and said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from perftrail.model.build import BuildRecord, Built, Failure, Prepared, Recipe, Workplace
    from perftrail.model.measurement import Busy, Conditions, Machine, Outcome, Runnable, Samples
    from perftrail.model.process import Command, Ran
    from perftrail.model.search_record import Json, Mark, RegressionNote, SearchRecord, StepRecord
    from perftrail.model.study import Phase
    from perftrail.model.subject import Merge, Revision, Subject


class Builder(Protocol):
    """Makes subjects usable, each in its own directory, and keeps what came of it by content."""

    def key(self, subject: Subject, recipe: Recipe) -> str:
        """Name what goes into a build: tree, recipe, toolchain. Equal keys, equal builds."""
        ...

    @property
    def hands(self) -> int:
        """How many subjects it makes at once, of those that were begun."""
        ...

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Begin to make subjects, as many at once as it has hands; `make` then waits for what came of each.

        With one hand nothing need be begun.
        """
        ...

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Make a subject in a clean directory, or give the one that is there already."""
        ...

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:
        """Name what goes into a built subject relinked with a seed, from 1; makes nothing."""
        ...

    def relink(
        self, subject: Subject, recipe: Recipe, built: Built, layouts: Sequence[int]
    ) -> Mapping[int, Built | Failure]:
        """Link the objects of a built subject again by the recipe's `relink` lines, once for each seed.

        Return each as a separate build, which has the recipe's outputs only; the subject's own build stays as it
        is. Several at once share the cost of reaching the objects. After a failure the remaining seeds are missing.
        """
        ...

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,
        sources: Mapping[str, Revision] = ...,
    ) -> Prepared | Failure:
        """Run a benchmark's own build lines against a built subject, in an ``{out}`` of its own.

        `steps` and `env` still hold their placeholders. `sources` are the other sources whose trees the lines
        or the command name, each at its revision; none unless given. `files` are absolute paths of the study's own
        files that the command uses: their content goes into the artefact beside what the lines make.
        """
        ...

    def need(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Keep what is there of subjects that are used later; may be called at any time, again too."""
        ...

    def news(self) -> tuple[str, ...]:
        """Give what was done beside making subjects since this was asked last, in words for people."""
        ...

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Compare with clean builds what was made in used trees and not checked yet, and witnesses one by one.

        Raises `StaleBuilds` when they differ, as `make` may: the builds are taken back then.
        """
        ...

    def link_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        sources: Mapping[str, Revision] = ...,
    ) -> str:
        """Name what goes into a benchmark's build, as `prepare` would make it; makes nothing."""
        ...

    def lay_out(self, subject: Subject, recipe: Recipe, directory: str) -> Workplace:
        """Put a subject's tree, repaired, into a new directory below `directory`, as `make` does before its steps.

        What is stored of the subject is left as it is. What fails is told with what is there.
        """
        ...

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        """Give what ``{build}``, ``{out}``, ``{study}`` and ``{cpus}`` stand for when the command runs."""
        ...


Job = TypeVar("Job")
Done = TypeVar("Done")
Done_co = TypeVar("Done_co", covariant=True)


class Pending(Protocol[Done_co]):
    """A job that was handed out."""

    def outcome(self) -> Done_co:
        """Give what came of it, once it has; raises what performing it raised. Asked once."""
        ...


class Engine(Protocol):
    """Performs jobs, here or elsewhere, one after the other or several at once.

    Elsewhere, whatever performs and the jobs are values that can be sent. A job whose place dies is performed
    again; what came of a job is given once.
    """

    def map(self, perform: Callable[[Job], Done], jobs: Iterable[Job]) -> Iterator[Done]:
        """Perform each job and yield what came of it, in order; the next is taken when that was dealt with."""
        ...

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Hand a job out; where nothing is done beside, it is performed when its outcome is asked for.

        One whose outcome nobody keeps any more need not be performed. `outcome` raises `ClusterError` when none can
        come any more.
        """
        ...


class Starter(Protocol):
    """Starts one process at a time and accounts for it and all its descendants."""

    def run(self, command: Command) -> Ran:
        """Start, wait for and account for one process; nothing it started is left behind.

        Raises `LauncherError` when the launcher itself fails, `KeyboardInterrupt` after killing the tree.
        """
        ...


class Enclosing(Protocol):
    """Decides where what is built or run is kept: on this machine like anything else, or in a sandbox."""

    def around(self, phase: Phase, writable: Sequence[str]) -> AbstractContextManager[Starter]:
        """Give a starter whose processes may change these directories, which are there and stay there.

        Raises `SandboxError` where that cannot be had.
        """
        ...

    def sees(self, phase: Phase) -> Sequence[object]:
        """Say for a content key what of it may change what comes out; nothing where nothing is kept from it."""
        ...


class Watcher(Protocol):
    """Watches what else the machine does. Its looks must be cheap: two stand around each invocation."""

    def begin(self) -> None:
        """Look, just before an invocation starts."""
        ...

    def end(self, own_cpu_seconds: float) -> Conditions:
        """Look, just after an invocation ended that used this CPU time; comes after `begin`, once."""
        ...

    def recent(self) -> float | None:
        """Give the CPUs that others used in the last half second, `None` when not watched that long.

        Called again within 0.1 s, it comes to know.
        """
        ...

    def busiest(self) -> tuple[Busy, ...]:
        """Name the foreign processes that use most CPU time, the worst first; may take a moment."""
        ...


class Source(Protocol):
    """A program's history. Never changes the user's own repository or checkout."""

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the study's revisions, or those of another range, oldest first, parents before children.

        Both ends of the range belong. Raises `SourceError` with the remedy when it cannot be read.
        """
        ...

    def within(self, range: str) -> frozenset[str]:
        """Give the ids of every revision of a range, also of one with an open end (``..B``, ``A..``)."""
        ...

    def merge(self, revision: Revision) -> Merge | None:
        """Give what a revision joined, `None` when it joined nothing or nothing that was not there before.

        Each branch is walked along its first parents, back to what the trunk contains. A branch that the
        study links to the revision counts as joined.
        """
        ...

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Give for each revision the paths in which it differs from the one before it in the sequence.

        Of the first, and where the source cannot tell, there are none.
        """
        ...

    def content(self, revision: Revision) -> str:
        """Name the content of a revision's tree; equal names, equal trees. Needs no checkout."""
        ...

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Put a revision's whole tree into a directory that does not exist yet.

        What was tried is appended to the file `log`. Raises `CheckoutFailed`, which the caller records.
        """
        ...


@runtime_checkable
class PartlyRead(Protocol):
    """A source that can leave paths out of account when it names a tree."""

    def content_without(self, revision: Revision, globs: tuple[str, ...]) -> str:
        """Name the content of a revision's tree but for what lies in the paths that globs match."""
        ...


@runtime_checkable
class Kept(Protocol):
    """A source that answers from what it was told of itself before, and asks again when something lacks."""

    def asked(self) -> str:
        """Say when it was told what it answers from: ISO 8601; empty when by this process, or never yet."""
        ...

    def ask_again(self) -> None:
        """Ask anew before the next answer, whatever is kept."""
        ...


@runtime_checkable
class Edited(Protocol):
    """A source whose user works in a checkout of it, where changes may lie that are in no revision yet."""

    def edited(self) -> str:
        """Give the id of the revision whose checkout was changed; empty when nothing was, or there is none.

        What is told from is what the checkout's own index notes: it may take a file that was only touched for changed.
        """
        ...


@runtime_checkable
class Growing(Protocol):
    """A source of which we keep a copy, while it grows elsewhere."""

    def refresh(self) -> None:
        """Bring what is new by now, whatever is asked for next. Raises `SourceError` when it cannot be reached."""
        ...


class Store(Protocol):
    """Keeps every outcome, each durable when its call returns, and never changes one.

    One perftrail writes to a file at a time, and one of each machine to a server; reading needs no permission.
    """

    def add_machine(self, machine: Machine) -> None:
        """Keep what a machine is, once."""
        ...

    def machines(self) -> Mapping[str, Machine]:
        """Give every machine seen, by id."""
        ...

    def add_build(self, record: BuildRecord) -> None:
        """Keep what came of a build; a later record of the same key stands for it from then on."""
        ...

    def build(self, key: str) -> BuildRecord | None:
        """Give what came of a build, on this machine if it was tried here; `None` when it never was."""
        ...

    def builds(self) -> Mapping[str, BuildRecord]:
        """Give what came of every build, by key: for who looks at all of a history."""
        ...

    def subject_builds(self) -> Mapping[tuple[str, str], BuildRecord]:
        """Return the last build of every subject, by revision and variant."""
        ...

    def add_runnable(self, runnable: Runnable, *, last: bool = False) -> None:
        """Keep which revision, variant, benchmark and point a runnable stands for, and its last origin.

        With `last`, it comes after all others from then on: it is what its cell runs now.
        """
        ...

    def add_revisions(self, revisions: Iterable[tuple[int, Revision]]) -> None:
        """Store revisions, each with its position in the history; a known one gets its new position and label."""
        ...

    def history(self) -> Sequence[Revision]:
        """Return the stored revisions in the order of the history."""
        ...

    def sampled_machines(self) -> frozenset[str]:
        """Return the ids of the machines with at least one invocation."""
        ...

    def ran(self, runnables: Collection[str], machine: str) -> frozenset[str]:
        """Return the runnables, among these, that have an invocation on a machine."""
        ...

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Give every runnable, or those of one benchmark, in the order they were first kept."""
        ...

    def revisions(self) -> frozenset[str]:
        """Give the ids of the revisions that runnables stand for."""
        ...

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome. Raises `StoreError` when its key is there already."""
        ...

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Give the outcomes of runnables on a machine: by runnable, warm-ups first, then by ordinal."""
        ...

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Give what the samples of runnables on a machine are of some metrics; nothing of what was never started."""
        ...

    def open_search(self, record: SearchRecord) -> None:
        """Keep that a search began; one that is there already is left as it is."""
        ...

    def close_search(self, key: str, machine: str, answer: Mapping[str, Json]) -> None:
        """Keep a search's answer; a later answer to the same question replaces it."""
        ...

    def searches(self) -> Sequence[SearchRecord]:
        """Give every search, the one begun last at the end."""
        ...

    def add_step(self, key: str, machine: str, step: StepRecord) -> None:
        """Keep a step of a search; the same number again replaces it, as a resumed search retells it."""
        ...

    def steps(self, key: str, machine: str) -> Sequence[StepRecord]:
        """Give the steps of a search in order."""
        ...

    def mark(self) -> Mark:
        """Say how far the store is: another mark than before, and something was added. Asked every second."""
        ...

    def recent(self, most: int) -> Sequence[tuple[Runnable, Outcome]]:
        """Give the outcomes that were kept last, newest first, each with the first that its runnable stands for."""
        ...

    def notes(self) -> Sequence[RegressionNote]:
        """Give what was said of regressions, oldest first."""
        ...

    def add_note(self, note: RegressionNote) -> None:
        """Keep what was said of a regression; allowed while another perftrail writes."""
        ...


__all__ = [
    "Builder",
    "Done",
    "Edited",
    "Enclosing",
    "Engine",
    "Growing",
    "Job",
    "Kept",
    "PartlyRead",
    "Pending",
    "Source",
    "Starter",
    "Store",
    "Watcher",
]
