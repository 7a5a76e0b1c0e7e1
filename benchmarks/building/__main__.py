"""``python -m benchmarks.building REPOSITORY RANGE --step LINE … --output GLOB …``: both ways in one run.

Each revision is built in both ways, which alternate in being first; all outputs are compared. With ``--jobs N``, all
revisions are also built with N parallel builds, before and after that. The recipe is given on the command line.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.building.methods import CleanBuilds, PerftrailBuilds, compare
from benchmarks.building.page import PAGE, Row, page, summary
from benchmarks.building.parallel import ParallelBuilds
from perftrail.model.build import Recipe
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from perftrail.model.subject import Revision


def main() -> int:
    """Measure and print. The exit code is 0 if all outputs are equal and the goal is met."""
    options = _options()
    recipe = Recipe(
        directory=options.directory,
        steps=tuple(options.step),
        env=dict(pair.split("=", 1) for pair in options.env),
        outputs=tuple(options.output),
        incremental=True,
    )
    repository = Path(options.repository).resolve()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch, Launcher() as launcher:
        perftrail = PerftrailBuilds(repository, recipe, Path(scratch, "perftrail"), launcher)
        clean = CleanBuilds(repository, recipe, Path(scratch, "clean"), launcher)
        revisions = perftrail.source.history(options.range)
        parallel = ParallelBuilds(options.jobs, revisions, recipe.outputs)
        parallel.build(PerftrailBuilds(repository, recipe, Path(scratch, "before"), launcher))
        rows: list[Row] = []
        try:
            for number, revision in enumerate(revisions):
                rows.append(
                    _row(revision, clean, perftrail, recipe, first=clean if number % 2 == 0 else perftrail)
                )
                parallel.compare(revision, rows[-1].clean.tree)
                print(rows[-1].line(), file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print(f"stopped after {len(rows)} of {len(revisions)} revisions", file=sys.stderr)
        confirming = perftrail.confirm()
        parallel.build(PerftrailBuilds(repository, recipe, Path(scratch, "after"), launcher))
    found = summary(rows, confirming)
    print(found.text())
    print(parallel.text(found.clean_seconds))
    if options.write:
        range_ = f"{rows[0].revision[:10]}..{rows[-1].revision[:10]}"
        PAGE.write_text(page(options.name or repository.name, range_, rows, found, parallel, recipe=recipe))
    return 0 if found.met or parallel.met(found.clean_seconds) else 1


def _row(
    revision: Revision,
    clean: CleanBuilds,
    perftrail: PerftrailBuilds,
    recipe: Recipe,
    *,
    first: CleanBuilds | PerftrailBuilds,
) -> Row:
    if first is clean:
        old, new = clean.build(revision), perftrail.build(revision)
    else:
        new, old = perftrail.build(revision), clean.build(revision)
    comparison = compare(old.tree, new.tree, recipe.outputs) if old.tree and new.tree else None
    return Row(revision=revision.id, clean=old, perftrail=new, compared=comparison, load=os.getloadavg()[0])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.building", description=__doc__)
    parser.add_argument("repository", help="a git repository on this machine")
    parser.add_argument("range", help="A..B, both ends included")
    parser.add_argument("--step", action="append", required=True, help="a shell line of the recipe")
    parser.add_argument("--output", action="append", required=True, help="files that count, as in a study")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--directory", default=".", help="where the lines run, below the root of the revision"
    )
    parser.add_argument("--jobs", type=int, default=1, help="also build all revisions with N parallel builds")
    parser.add_argument("--name", help="name of the project on the page")
    parser.add_argument("--scratch", help="where to build: a directory on a disk with space")
    parser.add_argument("--write", action="store_true", help=f"write the page {PAGE.name}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
