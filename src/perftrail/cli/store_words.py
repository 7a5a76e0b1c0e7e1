"""Which store a command means, and what was done to it in words."""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from perftrail.cli.console import output
from perftrail.cli.options import load_study
from perftrail.cli.speech import plain
from perftrail.errors import UsageError
from perftrail.model.quantity import quantity
from perftrail.model.wording import quoted
from perftrail.store import server_of, shown
from perftrail.workflows.opening import DATABASE, RESULTS, results_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.store.backup import Noted
    from perftrail.store.copying import Copied
    from perftrail.store.upkeep import Compacted, Forgetting, Part, Statistics

DAYS = {"d": 1, "w": 7, "y": 365}

AGE = re.compile(rf"([1-9][0-9]{{0,5}})\s*([{''.join(DAYS)}])")

KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """A store that a command means: where it is, how that is written, and the words that name it again."""

    location: str
    again: str

    @property
    def shown(self) -> str:
        """Where it is, without password."""
        return shown(self.location)

    @property
    def word(self) -> str:
        """Where it is, as one word of a command."""
        place = Path(self.location)
        return shlex.quote(str(place.parent) if place.name == DATABASE else self.shown)


def named(study: str | None, store: str | None) -> Meant:
    """Give the store that a command's STUDY and --store mean, or that of the nearest study upwards.

    Raises `UsageError` for a study whose samples other tools took: they are in no store.
    """
    words = [*([] if study is None else [study]), *([] if store is None else ["--store", shown(store)])]
    again = "".join(f" {shlex.quote(word)}" for word in words)
    if study is None and store is not None:
        return Meant(location=placed(store).location, again=again)
    loaded = load_study(study)
    if loaded.walked.kind == "samples":
        raise UsageError(
            f"{loaded.file}: its samples were taken by other tools and are in files, not in a store"
        )
    return Meant(location=results_database(loaded, store), again=again)


def placed(word: str) -> Meant:
    """Give the store that a word means: an address, a file, a directory of results or of a study."""
    if (address := server_of(word)) is not None:
        return Meant(location=address, again="")
    path = Path(word)
    places = (path / DATABASE, path / RESULTS / DATABASE)
    there = next((place for place in places if place.is_file()), None)
    if there is None and (path.is_dir() or (not path.exists() and path.suffix != ".db")):
        there = places[(path / "perftrail.toml").is_file()]
    return Meant(location=str((there or path).absolute()), again="")


def moment_before(age: str) -> str:
    """Give the moment that lies an age back, as the store writes times of day. Raises `UsageError` for no age."""
    found = AGE.fullmatch(age.strip())
    if found is None:
        raise UsageError(f"--older-than {quoted(age)}: is no age; write days, weeks or years: 90d, 26w, 1y")
    back = timedelta(days=int(found[1]) * DAYS[found[2]])
    try:
        return (datetime.now(UTC) - back).isoformat(timespec="milliseconds")
    except OverflowError as error:
        raise UsageError(f"--older-than {quoted(age)}: nothing is that old") from error


@contextmanager
def progress(verb: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how many invocations are done, in a line that is gone at the end."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda *_: None
        return
    with console.status("") as status:
        yield lambda done, total: status.update(Text(f"{verb} {done:,} of {total:,} invocations"))


def print_statistics(found: Statistics) -> None:
    """Print what a store holds: a line of it all, and a table by machine and by benchmark."""
    console = output()
    size = quantity(found.size_bytes, "B")
    console.print(Text(f"{found.where}: {KINDS[found.kind]}, schema {found.schema}, {size}", style="bold"))
    console.print(Text(_rows_words(found.rows)))
    _print_parts("machine", found.machines)
    _print_parts("benchmark", found.benchmarks)


def copied_words(done: Copied) -> str:
    """Say how much a copy added and how much was there."""
    added = {kind: number for kind, number in done.added.items() if number}
    there = {kind: number for kind, number in done.there.items() if number}
    said = f"{_kinds_words(added)} added" if added else "nothing was missing"
    return f"{said}; {_kinds_words(there)} were there" if there else said


def compacted_words(done: Compacted) -> str:
    """Say how large a store was and is."""
    return (
        f"{done.where}: {quantity(done.after_bytes, 'B')}, before {quantity(done.before_bytes, 'B')} "
        f"({done.after_bytes:,} and {done.before_bytes:,} bytes)"
    )


def noted_words(noted: Noted) -> str:
    """Say what a backup holds."""
    rows = {kind: digest.rows for kind, digest in noted.digests.items() if digest.rows}
    return f"{_kinds_words(rows) if rows else 'nothing'}, {quantity(noted.size_bytes, 'B')}, of {noted.made}"


def forgotten_words(gone: Forgetting) -> str:
    """Say what went, or would go, machine by machine."""
    if not gone.invocations:
        return f"{gone.where}: nothing was measured before {gone.before}"
    verb = "were taken away" if gone.done else "would be taken away"
    what = f"{gone.invocations:,} invocations with {gone.values:,} values from before {gone.before}"
    parts = (
        f"  machine {plain(part.name)}: {part.invocations:,}, from {plain(part.oldest)} to {plain(part.newest)}"
        for part in gone.machines
    )
    return "\n".join((f"{gone.where}: {what} {verb}", *parts))


def quoted_path(file: Path) -> str:
    """Write a file's name as one word of a command."""
    return shlex.quote(str(file))


def _rows_words(rows: Mapping[str, int]) -> str:
    """Say how many rows each table has, the largest first."""
    ordered = sorted(rows.items(), key=lambda row: (-row[1], row[0]))
    return "rows: " + ", ".join(f"{table} {number:,}" for table, number in ordered)


def _kinds_words(rows: Mapping[str, int]) -> str:
    return ", ".join(
        f"{number:,} {kind if number != 1 else _singular(kind)}" for kind, number in rows.items()
    )


def _singular(kind: str) -> str:
    """Give one of a kind of rows.

    >>> _singular("searches"), _singular("steps")
    ('search', 'step')
    """
    return kind.removesuffix("es") if kind.endswith("ches") else kind.removesuffix("s")


def _print_parts(kind: str, parts: Sequence[Part]) -> None:
    if not parts:
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(kind, no_wrap=True)
    for name in ("invocations", "samples", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("first", "last"):
        table.add_column(name, no_wrap=True)
    for part in parts:
        numbers = (part.invocations, part.samples, part.failures)
        times = (plain(part.oldest[:19]), plain(part.newest[:19]))
        table.add_row(Text(plain(part.name)), *(f"{number:,}" for number in numbers), *map(Text, times))
    output().print()
    output().print(table)
