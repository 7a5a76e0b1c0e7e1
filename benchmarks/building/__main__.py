"""``python -m benchmarks.building REPOSITORY RANGE --step LINE … --output GLOB …``: both ways in one run.

Each revision is made in both ways, one after the other, the first in turn; every output is compared.
With ``--jobs N`` all are made N at once as well, before and after that.
Nothing of the repository is kept here: its recipe is given on the command line.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.building.at_once import AtOnce
from benchmarks.building.loops import OurLoop, SeedLoop, compare
from benchmarks.building.page import PAGE, Row, page, summary
from perftrail.model.build import Recipe
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from perftrail.model.subject import Revision


def main() -> int:
    """Measure, print, and say by the exit code whether every artefact was equal and the goal was met."""
    asked = _asked()
    recipe = Recipe(
        directory=asked.directory,
        steps=tuple(asked.step),
        env=dict(pair.split("=", 1) for pair in asked.env),
        outputs=tuple(asked.output),
        incremental=True,
    )
    repository = Path(asked.repository).resolve()
    with tempfile.TemporaryDirectory(dir=asked.scratch) as scratch, Launcher() as launcher:
        ours = OurLoop(repository, recipe, Path(scratch, "ours"), launcher)
        seed = SeedLoop(repository, recipe, Path(scratch, "seed"), launcher)
        revisions = ours.source.history(asked.range)
        at_once = AtOnce(asked.jobs, revisions, recipe.outputs)
        at_once.make(OurLoop(repository, recipe, Path(scratch, "before"), launcher))
        rows: list[Row] = []
        try:
            for number, revision in enumerate(revisions):
                rows.append(_row(revision, seed, ours, recipe, first=seed if number % 2 == 0 else ours))
                at_once.compare(revision, rows[-1].seed.tree)
                print(rows[-1].line(), file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print(f"stopped after {len(rows)} of {len(revisions)} revisions", file=sys.stderr)
        confirming = ours.confirm()
        at_once.make(OurLoop(repository, recipe, Path(scratch, "after"), launcher))
    found = summary(rows, confirming)
    print(found.text())
    print(at_once.text(found.seed_seconds))
    if asked.write:
        named = f"{rows[0].revision[:10]}..{rows[-1].revision[:10]}"
        PAGE.write_text(page(asked.name or repository.name, named, rows, found, at_once, recipe=recipe))
    return 0 if found.met or at_once.met(found.seed_seconds) else 1


def _row(
    revision: Revision, seed: SeedLoop, ours: OurLoop, recipe: Recipe, *, first: SeedLoop | OurLoop
) -> Row:
    if first is seed:
        old, new = seed.make(revision), ours.make(revision)
    else:
        new, old = ours.make(revision), seed.make(revision)
    same = compare(old.tree, new.tree, recipe.outputs) if old.tree and new.tree else None
    return Row(revision=revision.id, seed=old, ours=new, compared=same, load=os.getloadavg()[0])


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.building", description=__doc__)
    parser.add_argument("repository", help="a git repository on this machine")
    parser.add_argument("range", help="A..B, both ends included")
    parser.add_argument("--step", action="append", required=True, help="a shell line of the recipe")
    parser.add_argument("--output", action="append", required=True, help="files that count, as in a study")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--directory", default=".", help="where the lines run, below the revision's root")
    parser.add_argument(
        "--jobs", type=int, default=1, help="make all at once as well, with N parallel builds"
    )
    parser.add_argument("--name", help="how the page calls the project")
    parser.add_argument("--scratch", help="where to build; a directory on a disk with room")
    parser.add_argument("--write", action="store_true", help=f"write the page {PAGE.name}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
