"""Interfaces to builds, jobs, processes and sandboxes, sources of histories, and the store.

Each is a Protocol; its docstrings are the contract of its implementations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from perftrail.model.build import (
        BenchmarkLines,
        BuildRecord,
        Built,
        Failure,
        ManualBuild,
        Prepared,
        Recipe,
    )
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import BusyProcess, Conditions, Machine, Outcome, Runnable, Samples
    from perftrail.model.patch import TouchedFile
    from perftrail.model.process import Command, Ran
    from perftrail.model.reads import BuildReads, TreeFile
    from perftrail.model.sandbox import Phase
    from perftrail.model.store_records import (
        ComparisonRecord,
        ExplanationRecord,
        ListingRecord,
        ReadsRecord,
        RegressionNote,
        SearchRecord,
        StepRecord,
        StoreProgress,
    )
    from perftrail.model.subject import Merge, Revision, Subject


class Builder(Protocol):
    """Builds subjects, each in its own directory, and stores every outcome by its content key."""

    def key(self, subject: Subject, recipe: Recipe) -> str:
        """Return the content key of a build's inputs: tree, recipe, toolchain. Equal keys mean equal builds."""
        ...

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds."""
        ...

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Start building subjects in parallel; `build` then waits for each outcome.

        A builder without parallel builds does nothing here.
        """
        ...

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Build a subject in a clean directory, or return its existing build."""
        ...

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:
        """Return the content key of a subject relinked with a seed, from 1. Builds nothing."""
        ...

    @property
    def records_links(self) -> bool:
        """Whether builds of recipes with `pin` record their links, if they can."""
        ...

    def unpinned(self, prepared: Prepared, recipe: Recipe) -> str:
        """Return why recorded links cannot place the code of a benchmark's programs; empty if no reason is known."""
        ...

    def relink(
        self, subject: Subject, recipe: Recipe, built: Built, layouts: Sequence[int]
    ) -> Mapping[int, Built | Failure]:
        """Link the objects of a built subject again, once for each seed, by `relink` lines or as recorded.

        Return each as a separate build with the recipe's outputs only; the subject's own build does not change.
        Several seeds in one call share the cost of restoring the objects. After a failure, the result lacks the
        remaining seeds.
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
        """Run a benchmark's build lines against a built subject, in its own ``{out}``.

        `steps` and `env` have open placeholders. `sources` are the other sources that the lines or the command
        name, each at its revision. `files` are absolute paths of the study's files that the command uses: their
        content is part of the artefact.
        """
        ...

    def protect(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Protect the builds of subjects that are used later; may be called repeatedly."""
        ...

    def messages(self) -> tuple[str, ...]:
        """Return messages since the last call about work other than builds, for people."""
        ...

    def confirm(self, decisive: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Compare builds in reused trees with clean builds, and all `decisive` ones, on which an answer depends.

        Raises `StaleBuilds` if they differ, as `build` may; these builds are then discarded.
        """
        ...

    def benchmark_build_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        sources: Mapping[str, Revision] = ...,
    ) -> str:
        """Return the content key of a benchmark build, as `prepare` would build it. Builds nothing."""
        ...

    def check_out(self, subject: Subject, recipe: Recipe, directory: str) -> ManualBuild:
        """Check a subject out into a new directory below `directory` and repair it, as `build` does before its steps.

        Stored builds do not change. A failure is returned together with the incomplete tree.
        """
        ...

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        """Return the values of ``{build}``, ``{out}``, ``{study}`` and ``{cpus}`` for the benchmark's command."""
        ...


@runtime_checkable
class ObservingBuilder(Protocol):
    """A builder that can observe which files a build uses."""

    @property
    def can_observe(self) -> bool:
        """Whether the necessary tool is installed, and the builds are not in a sandbox."""
        ...

    def inputs_key(self, recipe: Recipe) -> str:
        """Return the content key of a build's inputs except its tree and its revision: recipe, files and tools."""
        ...

    def observe(
        self, subject: Subject, recipe: Recipe, benchmark_builds: Sequence[BenchmarkLines]
    ) -> BuildReads:
        """Build a subject and its benchmarks once more, and return the paths of its tree that they use."""
        ...


Job = TypeVar("Job")
Done = TypeVar("Done")
Done_co = TypeVar("Done_co", covariant=True)


class Pending(Protocol[Done_co]):
    """A job that was started."""

    def outcome(self) -> Done_co:
        """Wait for the outcome and return it; raises what the job raised. Call it once."""
        ...


class Engine(Protocol):
    """Performs jobs here or elsewhere, one after the other or in parallel.

    If other machines perform jobs, `perform` and the jobs must be values that can be sent. If a worker dies,
    its job is performed again; each outcome is returned once.
    """

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Start a job. An engine without parallel work performs it when its outcome is requested.

        A job need not be performed if its `Pending` is discarded. `outcome` raises `ClusterError` if no outcome is
        possible.
        """
        ...


class Starter(Protocol):
    """Starts one process at a time, and accounts for it and all its descendants."""

    def run(self, command: Command) -> Ran:
        """Start one process, wait for it, and account for it; no descendant survives.

        Raises `LauncherError` if the launcher itself fails, `KeyboardInterrupt` after killing the process tree.
        """
        ...


class Isolation(Protocol):
    """Decides where processes run: directly on this machine, or in a sandbox."""

    def sandboxed(self, phase: Phase, writable: Sequence[str]) -> AbstractContextManager[Starter]:
        """Yield a starter whose processes can write to these existing directories.

        Raises `SandboxError` if the sandbox is not available.
        """
        ...

    def visible_settings(self, phase: Phase) -> Sequence[object]:
        """Return the settings that can affect an outcome, for a content key; empty without a sandbox."""
        ...


class Watcher(Protocol):
    """Observes other load on the machine. Observations must be cheap: two surround each invocation."""

    def begin(self) -> None:
        """Start observing, directly before an invocation."""
        ...

    def end(self, own_cpu_seconds: float) -> Conditions:
        """Return the conditions of an invocation that used this CPU time; call once after `begin`."""
        ...

    def recent(self) -> float | None:
        """Return the CPUs that other processes used in the last half second; `None` if not observed that long.

        Repeated calls within 0.1 s collect the necessary observations.
        """
        ...

    def busiest(self) -> tuple[BusyProcess, ...]:
        """Return the other processes that use the most CPU time, the busiest first; may take a second."""
        ...


class Source(Protocol):
    """A program's history. It never changes the user's repository or checkout."""

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the study's revisions, or those of another range: oldest first, parents before children.

        Both ends belong to the range. A source may return what it read before, until `refresh`. Raises `SourceError`
        with the remedy if the history cannot be read.
        """
        ...

    def within(self, range: str) -> frozenset[str]:
        """Return the ids of all revisions of a range, which may have an open end (``..B``, ``A..``)."""
        ...

    def merge(self, revision: Revision) -> Merge | None:
        """Return the branches that a revision merged; `None` if it merged nothing new.

        Each branch follows first parents, back to what the trunk contains. A branch that the study links to the
        revision counts as merged.
        """
        ...

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return for each revision the paths that differ from the previous one in the sequence.

        Empty for the first revision, and if the source does not know the files.
        """
        ...

    def content(self, revision: Revision) -> str:
        """Return the content key of a revision's tree: equal keys mean equal trees. Needs no checkout."""
        ...

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Write a revision's whole tree into a directory that does not exist yet.

        The attempts are appended to the file `log`. Raises `CheckoutFailed`, which the caller records.
        """
        ...


@runtime_checkable
class RemarkingSource(Protocol):
    """A source that may correct a range; `remark` then explains it after `history`."""

    remark: str


@runtime_checkable
class PartialSource(Protocol):
    """A source that can ignore paths when it computes the content key of a tree."""

    def content_without(self, revision: Revision, globs: tuple[str, ...]) -> str:
        """Return the content key of a revision's tree without the paths that match globs."""
        ...


@runtime_checkable
class ListableSource(Protocol):
    """A source that can list a tree without writing it."""

    def files(self, revision: Revision) -> Mapping[str, TreeFile]:
        """Return every file of a revision's tree by its path."""
        ...


@runtime_checkable
class CachedSource(Protocol):
    """A source that answers from a cache, and updates it if something is missing."""

    def updated(self) -> str:
        """Return when the cache was updated: ISO 8601; empty if by this process, or never."""
        ...

    def update(self) -> None:
        """Update the cache before the next answer."""
        ...


@runtime_checkable
class FunctionSource(Protocol):
    """A source that knows which functions each revision changes."""

    def touched_functions(self, revisions: Sequence[Revision]) -> tuple[tuple[TouchedFile, ...], ...]:
        """Return for each revision the files that it changes relative to its parent, with names of functions.

        Empty if the changes cannot be read.
        """
        ...


@runtime_checkable
class EditableSource(Protocol):
    """A source with the user's checkout, which may contain uncommitted changes."""

    def edited(self) -> str:
        """Return the id of the revision whose checkout has uncommitted changes; empty without changes.

        The checkout's index decides: a file that was only touched may count as changed.
        """
        ...


@runtime_checkable
class GrowingSource(Protocol):
    """A source whose local copy can be updated while the original grows."""

    def refresh(self) -> None:
        """Fetch new revisions. Raises `SourceError` if the original cannot be reached."""
        ...


class Store(Protocol):
    """Stores every outcome durably before the call returns, and never changes one.

    One perftrail process at a time writes to a file, and one of each machine to a server. Reading needs no lock.
    """

    def add_machine(self, machine: Machine) -> None:
        """Store a machine's facts, once."""
        ...

    def machines(self) -> Mapping[str, Machine]:
        """Return every machine, by id."""
        ...

    def add_build(self, record: BuildRecord) -> None:
        """Store the outcome of a build; the last record of a key counts."""
        ...

    def build(self, key: str) -> BuildRecord | None:
        """Return the last record of a build, one of this machine if there is one; `None` if it was never tried."""
        ...

    def builds(self) -> Mapping[str, BuildRecord]:
        """Return the last record of every build, by key."""
        ...

    def subject_builds(self) -> Mapping[tuple[str, str], BuildRecord]:
        """Return the last build of every subject, by revision and variant."""
        ...

    def first_finished(self) -> Mapping[tuple[str, str, str], str]:
        """Return when each build of a subject was first stored (ISO 8601), by revision, variant and key.

        Later records of a build do not change it.
        """
        ...

    def add_runnable(self, runnable: Runnable, *, last: bool = False) -> None:
        """Store the revision, variant, benchmark, point and last origin of a runnable.

        With `last`, it moves to the end of the order: it is the current runnable of its cell.
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
        """Return every runnable, or those of one benchmark, in the order in which they were stored."""
        ...

    def revisions(self) -> frozenset[str]:
        """Return the ids of the revisions of all runnables."""
        ...

    def add(self, outcome: Outcome) -> None:
        """Store an outcome. Raises `StoreError` if its key exists."""
        ...

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Return the outcomes of runnables on a machine, by runnable: warm-ups first, then by ordinal."""
        ...

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Return the samples of runnables on a machine for some metrics; runnables that never ran are missing."""
        ...

    def open_search(self, record: SearchRecord) -> None:
        """Store the start of a search; an existing search does not change."""
        ...

    def close_search(self, key: str, machine: str, answer: Mapping[str, Json]) -> None:
        """Store a search's answer; a later answer to the same question replaces it."""
        ...

    def searches(self) -> Sequence[SearchRecord]:
        """Return every search, the latest last."""
        ...

    def add_step(self, key: str, machine: str, step: StepRecord) -> None:
        """Store a step of a search; a step with the same number is replaced, for example when a search resumes."""
        ...

    def steps(self, key: str, machine: str) -> Sequence[StepRecord]:
        """Return the steps of a search in order."""
        ...

    def add_comparison(self, record: ComparisonRecord) -> None:
        """Store the result of a comparison. Raises `StoreError` if the store does not know the machine."""
        ...

    def comparisons(self) -> Sequence[ComparisonRecord]:
        """Return the results of comparisons, the latest last."""
        ...

    def add_explanation(self, record: ExplanationRecord) -> None:
        """Store why a revision is faster or slower; the last record of a key counts."""
        ...

    def explanations(self) -> Sequence[ExplanationRecord]:
        """Return the last explanation of each key, in the order in which the keys were first stored."""
        ...

    def add_listing(self, record: ListingRecord) -> None:
        """Store the listing of a suite in one build; the last record of a key counts."""
        ...

    def listings(self) -> Sequence[ListingRecord]:
        """Return the last listing of each key, in the order in which the keys were first stored."""
        ...

    def add_build_reads(self, record: ReadsRecord) -> None:
        """Store the paths that an observed build or benchmark uses; the last record of a key counts."""
        ...

    def build_reads(self, recipe: str = "") -> Sequence[ReadsRecord]:
        """Return the last observation of each build with a recipe, or of all, in the order of the first ones."""
        ...

    def progress(self) -> StoreProgress:
        """Return how many rows the store contains; a different result means an addition. Called every second."""
        ...

    def recent(self, most: int) -> Sequence[tuple[Runnable, Outcome]]:
        """Return the last outcomes, newest first, each with its first runnable."""
        ...

    def notes(self) -> Sequence[RegressionNote]:
        """Return the notes about regressions, oldest first."""
        ...

    def add_note(self, note: RegressionNote) -> None:
        """Store a note about a regression; allowed while another perftrail process writes."""
        ...


__all__ = [
    "Builder",
    "CachedSource",
    "Done",
    "EditableSource",
    "Engine",
    "GrowingSource",
    "Isolation",
    "Job",
    "PartialSource",
    "Pending",
    "RemarkingSource",
    "Source",
    "Starter",
    "Store",
    "Watcher",
]
