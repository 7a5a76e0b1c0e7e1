"""Files that benchmarks open without their names in the study: observed with strace, and part of the samples' key.

perftrail observes each runnable after its first sample. While the contents of the files that it opened are the same,
the samples keep their key. Different contents are another state with another key, which is observed again, because
the benchmark may open other files in it. When the contents are restored, the earlier samples count again.
The rule and its limits are in docs/decisions/0045.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of_opened
from perftrail.builds.observing import OPENING_CALLS, observer
from perftrail.builds.opened_files import OpenedFiles, present_state
from perftrail.measure.events import BuilderMessage, now
from perftrail.model.build import Failure, content_key
from perftrail.model.plan import command_line, run_environment
from perftrail.model.store_records import ReadsRecord
from perftrail.model.suite import SuiteBenchmark
from perftrail.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perftrail.measure.events import Event
    from perftrail.model.plan import Cell
    from perftrail.model.reads import BuildReads
    from perftrail.model.study import Study
    from perftrail.ports import Store

NOTHING: Mapping[str, str] = MappingProxyType({})
"""One object for all runnables that open no other files than the first one of their benchmark."""

MOST_FAILURES = 3
"""After this number of observations that fail, a command observes nothing more: perhaps strace may not trace here."""

_REMEDY = (
    "perftrail does not measure again when a file changes that the study does not name: name every input"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """The opened files of a runnable, and its key without them."""

    unchanged: str
    files: OpenedFiles


class OpenedInputs:
    """The files that the benchmarks of a study open on a machine. Each state is computed once in a session.

    The first observed runnable of a benchmark has all of its files in one record; others have only what differs.
    """

    def __init__(self, study: Study, store: Store, *, machine: str) -> None:
        self._study = study
        self._store = store
        self._machine = machine
        self._shared: dict[tuple[object, ...], OpenedFiles] = {}
        self._known: dict[str, _Opened] = {}
        self._records: dict[str, Mapping[str, str]] | None = None
        self._failures = 0
        self._reported: set[object] = set()

    def key(self, cell: Cell, unchanged: str) -> str:
        """Return the content key of a runnable; `unchanged` is its key without the files that it opens by itself.

        Both are equal while these files are as they were first observed.
        """
        opened = self._opened(cell, unchanged)
        key = content_key(unchanged, "changes", *opened.changes) if opened.changes else unchanged
        self._known[key] = _Opened(unchanged=unchanged, files=opened)
        return key

    def files(self, runnable: str) -> tuple[str, ...]:
        """Return the known opened files of a runnable, by its key."""
        return self._known[runnable].files.files

    def _opened(self, cell: Cell, unchanged: str) -> OpenedFiles:
        shared = self._of_benchmark(cell)
        own = self._present(content_key(shared.key, unchanged))
        return OpenedFiles(
            key=own.key,
            files=(*shared.files, *own.files) if own.files else shared.files,
            changes=(*shared.changes, *own.changes),
            changed=shared.changed or own.changed,
            observed=own.observed,
        )

    def _name(self, cell: Cell) -> tuple[object, ...]:
        texts = {name: value for name, value in cell.point.as_dict().items() if isinstance(value, str)}
        return cell.benchmark, cell.subject.variant, tuple(sorted(texts.items()))

    def _of_benchmark(self, cell: Cell) -> OpenedFiles:
        """Return the opened files of the first observed cell among those that differ only in revision and numbers."""
        name = self._name(cell)
        if name not in self._shared:
            benchmark = self._study.benchmarks[cell.benchmark]
            sandbox = self._study.sandbox
            key = content_key(
                OPENING_CALLS,
                self._machine,
                *name,
                command_line(self._study, cell),
                benchmark.shell,
                benchmark.stdin,
                benchmark.directory,
                list(self._study.variants[cell.subject.variant].run.prefix),
                run_environment(self._study, cell),
                sandbox.visible_settings("run") if sandbox.always else [],
            )
            self._shared[name] = self._present(key)
        return self._shared[name]

    def _present(self, key: str) -> OpenedFiles:
        return present_state(key, self._observed, study=Path(self._study.directory))

    def _observed(self, key: str) -> Mapping[str, str] | None:
        if self._records is None:  # one query: a long history has an observation for each revision and point
            found = self._store.build_reads()
            self._records = {each.key: each.reads.outside or NOTHING for each in found}
        return self._records.get(key)

    def observe(
        self, cell: Cell, runnable: str, opened_files: Callable[[], BuildReads | Failure] | None
    ) -> Iterator[Event]:
        """Observe a runnable of a cell, by its key, unless its state was observed; report why that is not possible.

        `opened_files` starts it once more under strace, and returns the files that it opens, or why it failed. It is
        `None` if another machine starts the cell.
        """
        name = cell.benchmark
        state = self._known[runnable].files
        if state.observed:
            return
        if state.changed:
            yield from self._report(
                f"{name}: measured again, because {counted(len(state.changed), 'file')} that it opens changed, for "
                f"example {state.changed[0]}",
                once=(name, "changed"),
            )
        if opened_files is None:
            yield from self._report(
                f"cannot observe which files the benchmarks open on another machine: {_REMEDY}"
            )
        elif isinstance(self._study.benchmarks[name], SuiteBenchmark):
            yield from self._report(f"cannot observe which files the benchmarks of a suite open: {_REMEDY}")
        elif observer() is None:
            yield from self._report(
                f"cannot observe which files the benchmarks open without strace: {_REMEDY}, or install strace"
            )
        elif self._failures < MOST_FAILURES:
            yield from self._observe(cell, runnable, opened_files)

    def _observe(
        self, cell: Cell, runnable: str, opened_files: Callable[[], BuildReads | Failure]
    ) -> Iterator[Event]:
        name = cell.benchmark
        reads = opened_files()
        if isinstance(reads, Failure):
            self._failures += 1
            if self._failures == 1:
                yield from self._report(
                    f"cannot observe which files {name} opens, because it fails under strace ({reads.message}): "
                    f"{_REMEDY}"
                )
            return
        shared, state = self._of_benchmark(cell), self._known[runnable]
        before = self._observed(shared.key)
        if before is None:
            self._add(cell, shared.key, reads)
            before = reads.outside
            del self._shared[self._name(cell)]
        differing = {path: content for path, content in reads.outside.items() if before.get(path) != content}
        self._add(
            cell, state.files.key, replace(reads, outside=differing), runnable=runnable, shared=shared.key
        )
        self._known[runnable] = replace(state, files=self._opened(cell, state.unchanged))
        if reads.incomplete and not self._study.benchmarks[name].services:
            yield from self._report(
                f"cannot observe each file that {name} opens: {reads.incomplete}; {_REMEDY}",
                once=(name, "incomplete"),
            )

    def _add(self, cell: Cell, key: str, reads: BuildReads, *, runnable: str = "", shared: str = "") -> None:
        record = ReadsRecord(
            key=key,
            recipe=key,
            revision=cell.subject.revision.id,
            finished=now(),
            reads=reads,
            runnable=runnable,
            shared=shared,
        )
        self._store.add_build_reads(record)
        assert self._records is not None
        self._records[key] = reads.outside

    def _report(self, text: str, *, once: object = None) -> Iterator[Event]:
        if (once or text) not in self._reported:
            self._reported.add(once or text)
            yield BuilderMessage(text=text)


class ChangedFiles:
    """The files that stored runnables opened on this machine, and that are others now."""

    def __init__(self, store: Store, *, study: Path) -> None:
        found = store.build_reads()
        self._study = study
        self._contents = {each.key: each.reads.outside for each in found if each.reads.outside}
        self._records = {each.runnable: (each.shared, each.key) for each in found if each.runnable}
        self._first = cache(self._first_changed)

    def of(self, runnable: str) -> str:
        """Return the first changed file of a runnable, by its key; empty without one, and without an observation."""
        return next(filter(None, map(self._first, self._records.get(runnable, ()))), "")

    def _first_changed(self, record: str) -> str:
        contents = self._contents.get(record, NOTHING)
        return next(
            (path for path in sorted(contents) if content_of_opened(self._study / path) != contents[path]), ""
        )
