"""Run all cases with a goal: `python -m benchmarks.search rows`.

All strategies search the same histories; if the peers have fewer trials, they get the first of them. Finished results
are stored in --into, for each case one file of perftrail and one of the peers. They are computed again only after a
change of the case, the seed, the number of trials or the code.
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
from benchmarks.search.cases_with_goals import ROWS, chosen
from benchmarks.search.strategies import PEERS
from benchmarks.search.summary import Summary
from benchmarks.search.trials import run_trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.cases_with_goals import Cell, Row

HERE = Path(__file__).parent
SEARCH = Path(perftrail.search.__file__).parent
START_SECONDS = 2.0
"""The time of a case beyond its trials: new processes load the libraries, twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOptions:
    """The maximum number of trials of each case, the seed, and the number of processes."""

    trials: int | None
    seed: int
    processes: int

    def of(self, cell: Cell) -> tuple[int, int]:
        """Return the numbers of trials of perftrail and of the peers in a cell."""
        limit = self.trials if self.trials is not None else cell.trials
        return min(limit, cell.trials), min(limit, cell.peer_trials)


def main(arguments: Sequence[str]) -> None:
    """Run the rows, print their table, and write it into its page with --write."""
    options = _parser().parse_args(arguments)
    try:
        rows = chosen(options.only_row)
    except ValueError as error:
        _parser().error(str(error))
    campaign_options = CampaignOptions(trials=options.trials, seed=options.seed, processes=options.processes)
    _print_progress(f"about {seconds(rows, campaign_options) / 60:.0f} minutes without stored results")
    results = [
        (row, tuple(_cell(row, number, campaign_options, options.into) for number in range(len(row.cells))))
        for row in rows
    ]
    tables = page.tables(results, seed=campaign_options.seed)
    print(tables)
    if options.write:
        page.write(tables)


def seconds(rows: Sequence[Row], campaign_options: CampaignOptions) -> float:
    """Return the approximate seconds of the rows."""
    total = 0.0
    for cell in (cell for row in rows for cell in row.cells):
        own, peers = campaign_options.of(cell)
        total += (own * cell.seconds + peers * cell.peer_seconds) / campaign_options.processes + START_SECONDS
    return total


def _cell(row: Row, number: int, campaign_options: CampaignOptions, into: Path) -> page.Result:
    """Run one case, or return its stored results."""
    cell = row.cells[number]
    own, peers = campaign_options.of(cell)
    name = f"{row.name}-{number + 1}"
    done = _stored_summaries(cell, [cell.strategy], own, campaign_options, into / f"{name}-ours.json")
    done += _stored_summaries(cell, list(PEERS), peers, campaign_options, into / f"{name}-peers.json")
    return page.Result(
        label=cell.label,
        bound=fewest_runs(cell.settings),
        isolated=most_isolated(cell.settings),
        summaries=done,
    )


def _stored_summaries(
    cell: Cell, names: Sequence[str], trials: int, campaign_options: CampaignOptions, file: Path
) -> tuple[Summary, ...]:
    """Run strategies in a case and store the summaries, or return the stored ones."""
    key = {"settings": asdict(cell.settings), "names": names, "seed": campaign_options.seed, "trials": trials}
    key = json.loads(json.dumps(key | {"code": _code(names)}))
    stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if stored.get("key") != key:
        began = perf_counter()
        done = run_trials(cell.settings, campaign_options.seed, trials, names, campaign_options.processes)
        duration = perf_counter() - began
        stored = {"key": key, "seconds": duration, "summaries": [summary.as_json() for summary in done]}
        _replace(file, json.dumps(stored, indent=1))
        _print_progress(f"{file.stem}: {duration:.0f} s")
    return tuple(Summary(**summary) for summary in stored["summaries"])


def _code(names: Sequence[str]) -> str:
    """Return a digest of the code of the strategies, so results of older code are not reused."""
    simulated = [HERE / f"{name}.py" for name in ("simulator", "histories", "outcome", "summary", "trials")]
    files = [*simulated, *HERE.glob("strategies/*.py")]
    if not set(names) <= PEERS.keys():
        files += SEARCH.glob("*.py")
    digest = sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _replace(file: Path, text: str) -> None:
    """Write a file completely or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search rows", description=__doc__)
    add = parser.add_argument
    add("--only-row", action="append", metavar="NAME", help=f"of {', '.join(row.name for row in ROWS)}")
    add("--trials", type=int, help="maximum number of trials of each case")
    add("--seed", type=int, default=1)
    add("--processes", type=int, default=1)
    add("--into", type=Path, default=Path(".build/search-rows"), metavar="DIR", help="[.build/search-rows]")
    add("--write", action="store_true", help=f"write the tables into {page.PAGE.name}")
    return parser
