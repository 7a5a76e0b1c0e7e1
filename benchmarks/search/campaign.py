"""Run all cases that have a goal: `python -m benchmarks.search rows`.

All strategies search the same histories; where peers have fewer trials than ours, they have the first of them. What is
done is written to --into at once, ours and the peers' of each case apart, and is not run again unless the case, the
seed, the number of trials or the code that was run is another.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import perftrail.search
from benchmarks.search import page
from benchmarks.search.bound import fewest_runs, most_isolated
from benchmarks.search.rows import ROWS, chosen
from benchmarks.search.strategies import PEERS
from benchmarks.search.summary import Summary
from benchmarks.search.trials import run_trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.rows import Cell, Row

HERE = Path(__file__).parent
SEARCH = Path(perftrail.search.__file__).parent
START_SECONDS = 2.0
"""What a case takes beside its trials: fresh processes load the libraries, twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOptions:
    """How often, from which seed, by how many processes; `trials` caps those of each case."""

    trials: int | None
    seed: int
    processes: int

    def of(self, cell: Cell) -> tuple[int, int]:
        """Return how many trials ours and the peers have in a cell."""
        most = self.trials if self.trials is not None else cell.trials
        return min(most, cell.trials), min(most, cell.peer_trials)


def main(arguments: Sequence[str]) -> None:
    """Run the rows, print their table, and write it into the docs if that is asked for."""
    options = _parser().parse_args(arguments)
    try:
        rows = chosen(options.only_row)
    except ValueError as error:
        _parser().error(str(error))
    asked = CampaignOptions(trials=options.trials, seed=options.seed, processes=options.processes)
    _say(f"about {seconds(rows, asked) / 60:.0f} minutes if none of it is done yet")
    results = [
        (row, tuple(_cell(row, number, asked, options.into) for number in range(len(row.cells))))
        for row in rows
    ]
    tables = page.tables(results, seed=asked.seed)
    print(tables)
    if options.write:
        page.write(tables)


def seconds(rows: Sequence[Row], asked: CampaignOptions) -> float:
    """Return about how long the rows take."""
    total = 0.0
    for cell in (cell for row in rows for cell in row.cells):
        ours, peers = asked.of(cell)
        total += (ours * cell.seconds + peers * cell.peer_seconds) / asked.processes + START_SECONDS
    return total


def _cell(row: Row, number: int, asked: CampaignOptions, into: Path) -> page.Result:
    """Run one case, or take what is there of it."""
    cell = row.cells[number]
    ours, peers = asked.of(cell)
    name = f"{row.name}-{number + 1}"
    done = _done(cell, [cell.strategy], ours, asked, into / f"{name}-ours.json")
    done += _done(cell, list(PEERS), peers, asked, into / f"{name}-peers.json")
    return page.Result(
        label=cell.label,
        bound=fewest_runs(cell.settings),
        isolated=most_isolated(cell.settings),
        summaries=done,
    )


def _done(
    cell: Cell, names: Sequence[str], trials: int, asked: CampaignOptions, file: Path
) -> tuple[Summary, ...]:
    """Run some strategies in a case and keep what came of it, or take what is kept."""
    key = {"settings": asdict(cell.settings), "names": names, "seed": asked.seed, "trials": trials}
    key = json.loads(json.dumps(key | {"code": _code(names)}))
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if kept.get("key") != key:
        began = perf_counter()
        done = run_trials(cell.settings, asked.seed, trials, names, asked.processes)
        took = perf_counter() - began
        kept = {"key": key, "seconds": took, "summaries": [summary.as_json() for summary in done]}
        _replace(file, json.dumps(kept, indent=1))
        _say(f"{file.stem}: {took:.0f} s")
    return tuple(Summary(**summary) for summary in kept["summaries"])


def _code(names: Sequence[str]) -> str:
    """Name the code that some strategies run, so that values of older code are not taken for today's."""
    simulated = [HERE / f"{name}.py" for name in ("simulator", "histories", "outcome", "summary", "trials")]
    files = [*simulated, *HERE.glob("strategies/*.py")]
    if not set(names) <= PEERS.keys():
        files += SEARCH.glob("*.py")
    digest = sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _replace(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search rows", description=__doc__)
    add = parser.add_argument
    add("--only-row", action="append", metavar="NAME", help=f"of {', '.join(row.name for row in ROWS)}")
    add("--trials", type=int, help="at most so many trials of each case")
    add("--seed", type=int, default=1)
    add("--processes", type=int, default=1)
    add("--into", type=Path, default=Path(".build/search-rows"), metavar="DIR", help="[.build/search-rows]")
    add("--write", action="store_true", help=f"put the tables into {page.PAGE.name}")
    return parser
