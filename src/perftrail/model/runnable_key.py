"""The content key of a runnable: everything that can affect its samples. Samples of another key are not reused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.build import ContentKeys
from perftrail.model.fixture import fixture_content
from perftrail.model.plan import command_line, run_environment, texts_with_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.build import Prepared
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision


def runnable_key(
    study: Study,
    cell: Cell,
    prepared: Prepared,
    *,
    other_contents: Mapping[str, str] | None = None,
    programs: Sequence[str] = (),
) -> str:
    """Return the content key of everything that can affect a cell's samples, and nothing else.

    The subject's artefact counts only if the command runs in the build, or mentions ``{build}``, also in its
    environment: files linked into the benchmark are part of the benchmark's artefact. `other_contents` maps each
    mentioned other source to its tree's content key. `programs` are the identities of the programs that the command
    starts from the search path. Files that it opens by itself do not count.
    """
    keys = RunnableKeys(study, cell, other_contents=other_contents, programs=programs)
    return keys.key(prepared, cell.subject.revision)


class RunnableKeys:
    """Content keys of one cell at many revisions, with fixed trees of other sources."""

    def __init__(
        self,
        study: Study,
        cell: Cell,
        *,
        other_contents: Mapping[str, str] | None = None,
        programs: Sequence[str] = (),
    ) -> None:
        benchmark = study.benchmarks[cell.benchmark]
        mentioned = " ".join(texts_with_files(study, cell))
        self._build = benchmark.directory is not None or "{build}" in mentioned
        self._revision = "{revision}" in mentioned
        fixture = fixture_content(study, benchmark)
        self._shared = ContentKeys(
            command_line(study, cell),
            benchmark.shell,
            benchmark.stdin,
            list(study.variants[cell.subject.variant].run.prefix),
            run_environment(study, cell),
            cell.point.as_dict(),
            benchmark.timeout_seconds,
            benchmark.memory_limit_bytes,
            _metrics_content(benchmark),
            # Absent for commands in an empty directory, so that their samples keep their keys.
            *([["directory", benchmark.directory]] if benchmark.directory is not None else []),
            # Absent without other sources, so that samples of studies with one source keep their keys.
            *([dict(other_contents)] if other_contents else []),
            # Absent without a fixture, so that samples of studies without one keep their keys.
            *([fixture, dict(study.variants[cell.subject.variant].run.parts)] if fixture else []),
            *([benchmark.server] if benchmark.server else []),
            *([["programs", *programs]] if programs else []),
            # Samples from a sandbox are not pooled with others.
            *(study.sandbox.visible_settings("run") if study.sandbox.always else []),
        )

    @property
    def content(self) -> str:
        """The content key of the command alone, without builds and revision."""
        return self._shared.key("")

    def key(self, prepared: Prepared, revision: Revision) -> str:
        """Return the content key of the cell at a revision."""
        return self._shared.key(
            prepared.built.artefact if self._build else "",
            prepared.artefact,
            revision.id if self._revision else "",
        )


def _metrics_content(benchmark: Benchmark) -> Mapping[str, list[str]]:
    content = {
        name: [
            metric.pattern,
            metric.pick or "last",
            *([metric.reads, metric.item, metric.item_metric] if metric.reads else []),
        ]
        for name, metric in benchmark.metrics.items()
    }
    return {**content, "counters": sorted(benchmark.counters)} if benchmark.counters else content
