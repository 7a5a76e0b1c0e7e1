"""All revisions built in parallel, as with ``--jobs N``: before and after everything else of a run."""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING

from benchmarks.building.methods import compare

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.building.methods import PerftrailBuilds
    from perftrail.model.subject import Revision

GOAL = 10.0


class ParallelBuilds:
    """The time of parallel builds of all revisions, and how many output files differ from those of clean builds.

    With one job it builds nothing: the other builds of the run are one by one.
    """

    def __init__(self, jobs: int, revisions: Sequence[Revision], outputs: tuple[str, ...]) -> None:
        self.parallel_builds = jobs
        self._revisions = revisions
        self._outputs = outputs
        self._trees: dict[str, Path | None] = {}
        self.seconds: list[float] = []
        self.files = 0
        self.different = 0

    def build(self, perftrail: PerftrailBuilds) -> None:
        """Build all revisions. The second time, compare the outputs with those of the first."""
        if self.parallel_builds == 1:
            return
        seconds, trees = perftrail.build_in_parallel(self._revisions, self.parallel_builds)
        self.seconds.append(seconds)
        print(f"{self.parallel_builds} at once: {seconds:.1f} s", file=sys.stderr, flush=True)
        for revision, tree in zip(self._revisions, trees, strict=True):
            if revision.id in self._trees:
                self.compare(revision, tree)
            else:
                self._trees[revision.id] = tree

    def compare(self, revision: Revision, tree: Path | None) -> None:
        """Compare the outputs of a revision with those in another tree of the revision."""
        own = self._trees.get(revision.id)
        if own is not None and tree is not None:
            found = compare(own, tree, self._outputs)
            self.files += found.files
            self.different += found.other_content
        elif self._trees:
            self.different += (own is None) != (tree is None)

    def ratio(self, clean_seconds: float) -> float:
        """How many times less than clean builds it takes, in the mean of both times."""
        return clean_seconds / statistics.mean(self.seconds)

    def met(self, clean_seconds: float) -> bool:
        """Whether it is a tenth of the time, with every output equal."""
        return bool(self.seconds) and self.ratio(clean_seconds) >= GOAL and self.different == 0

    def text(self, clean_seconds: float) -> str:
        """Return the result as a line; empty with one job."""
        if not self.seconds:
            return ""
        times = ", ".join(f"{each:.1f} s" for each in self.seconds)
        return (
            f"{self.parallel_builds} at once: {times}; {self.ratio(clean_seconds):.1f} times less; "
            f"{self.different} of {self.files} compared files differ in what counts"
        )

    def section(self, clean_seconds: float) -> str:
        """Return the result as a section of the page; empty with one job."""
        if not self.seconds:
            return ""
        times = " and ".join(f"{each:.1f} s" for each in self.seconds)
        reached = "met" if self.met(clean_seconds) else "not met"
        return f"""
## {self.parallel_builds} parallel builds

With `--jobs {self.parallel_builds}`, the same revisions on empty directories took {times}. The two runs
were before and after all others, and include verifications. This is **{self.ratio(clean_seconds):.1f}
times faster** than clean builds one after the other. The goal of 10 is {reached}. Of {self.files}
compared output files, {self.different} differ in content. Parallel builds use idle CPUs; they do not
reduce the work. Each of the {self.parallel_builds} trees starts with a clean build and has its own
verifications.
"""
