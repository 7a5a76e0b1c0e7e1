"""All revisions made by several hands, as ``--jobs N`` does: before and after everything else of a run."""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING

from benchmarks.building.loops import compare

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.building.loops import OurLoop
    from perftrail.model.subject import Revision

GOAL = 10.0


class AtOnce:
    """What so many hands took each time, and how many output files differ from those of a clean tree.

    With one hand nothing is made: that is what the revisions one by one are.
    """

    def __init__(self, hands: int, revisions: Sequence[Revision], outputs: tuple[str, ...]) -> None:
        self.parallel_builds = hands
        self._revisions = revisions
        self._outputs = outputs
        self._trees: dict[str, Path | None] = {}
        self.seconds: list[float] = []
        self.files = 0
        self.unlike = 0

    def make(self, ours: OurLoop) -> None:
        """Make all revisions; what came of them the first time is what the second is compared with."""
        if self.parallel_builds == 1:
            return
        seconds, trees = ours.make_at_once(self._revisions, self.parallel_builds)
        self.seconds.append(seconds)
        print(f"{self.parallel_builds} at once: {seconds:.1f} s", file=sys.stderr, flush=True)
        for revision, tree in zip(self._revisions, trees, strict=True):
            if revision.id in self._trees:
                self.compare(revision, tree)
            else:
                self._trees[revision.id] = tree

    def compare(self, revision: Revision, tree: Path | None) -> None:
        """Compare what the hands made of a revision with a tree of the same."""
        ours = self._trees.get(revision.id)
        if ours is not None and tree is not None:
            found = compare(ours, tree, self._outputs)
            self.files += found.files
            self.unlike += found.other_content
        elif self._trees:
            self.unlike += (ours is None) != (tree is None)

    def ratio(self, seed_seconds: float) -> float:
        """How many times less than the seed's loop it takes, in the mean of both times."""
        return seed_seconds / statistics.mean(self.seconds)

    def met(self, seed_seconds: float) -> bool:
        """Whether it is a tenth of the time, with every output equal."""
        return bool(self.seconds) and self.ratio(seed_seconds) >= GOAL and self.unlike == 0

    def text(self, seed_seconds: float) -> str:
        """What it came to, for whoever waits; empty with one hand."""
        if not self.seconds:
            return ""
        times = ", ".join(f"{each:.1f} s" for each in self.seconds)
        return (
            f"{self.parallel_builds} at once: {times}; {self.ratio(seed_seconds):.1f} times less; "
            f"{self.unlike} of {self.files} compared files differ in what counts"
        )

    def section(self, seed_seconds: float) -> str:
        """What it came to, as a section of the page; empty with one hand."""
        if not self.seconds:
            return ""
        times = " and ".join(f"{each:.1f} s" for each in self.seconds)
        reached = "met" if self.met(seed_seconds) else "not met"
        return f"""
## {self.parallel_builds} parallel builds

With `--jobs {self.parallel_builds}`, the same revisions on empty directories took {times}. The two runs
were before and after all others, and include verifications. This is **{self.ratio(seed_seconds):.1f}
times faster** than clean builds one after the other. The goal of 10 is {reached}. Of {self.files}
compared output files, {self.unlike} differ in content. Parallel builds use idle CPUs; they do not
reduce the work. Each of the {self.parallel_builds} trees starts with a clean build and has its own
verifications.
"""
