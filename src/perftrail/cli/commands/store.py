"""`perftrail store`: count, copy, back up and delete samples."""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from perftrail.cli.help import Group
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option, load_study, store_option, study_argument
from perftrail.errors import UsageError
from perftrail.model.wording import escaped, quantity, quoted
from perftrail.opening import DATABASE, RESULTS, results_database
from perftrail.present.console import errors, output
from perftrail.store import server_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.store.backup import BackupContent
    from perftrail.store.copying import Copied
    from perftrail.store.upkeep import Compacted, Forgetting, Part, Statistics


@click.group("store", cls=Group)
def command() -> None:
    """Count, copy, back up and delete samples.

    Samples are in a file in the study's directory, or in a PostgreSQL database that several machines share. STUDY or
    --store selects them.
    """


@command.command("stats", short_help="Count samples and disk space.")
@study_argument
@store_option
@json_option
def stats(study: str | None, store: str | None, as_json: bool) -> None:
    """Print the number of rows by table, machine and benchmark, and the disk space."""
    from perftrail.store.upkeep import statistics

    meant = named(study, store)
    found = statistics(meant.location)
    if as_json:
        print_json("store stats", found.as_json())
        return
    print_statistics(found)
    click.echo(f"perftrail store backup FILE{meant.again} copies it")


@command.command("copy", short_help="Copy one store into another.")
@click.argument("source", metavar="A")
@click.argument("target", metavar="B")
@json_option
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy store A into store B. Each is a directory, a file, or postgresql://USER@HOST/DATABASE.

    Rows that B already has stay as they are. An interrupted copy resumes when it is repeated. Exits with 1 if B has
    different content under a name of A, and prints which; everything else is copied.
    """
    from perftrail.store.copying import copy_store

    one, other = placed(source), placed(target)
    with progress("copied") as tell:
        done = copy_store(one.location, other.location, tell=tell)
    if as_json:
        print_json("store copy", {"from": one.shown, "to": other.shown, **done.as_json()})
    else:
        click.echo(f"{other.shown}: {copied_words(done)}")
    done.refuse_differences(other.shown)
    if not as_json:
        click.echo(f"perftrail store stats --store {other.word} prints what it contains now")


@command.command("compact", short_help="Return unused disk space.")
@study_argument
@store_option
@json_option
def compact(study: str | None, store: str | None, as_json: bool) -> None:
    """Return unused disk space of a store. Writers wait until it is done."""
    from perftrail.store.upkeep import compact as make_compact

    meant = named(study, store)
    done = make_compact(meant.location)
    if as_json:
        print_json("store compact", done.as_json())
        return
    click.echo(compacted_words(done))
    click.echo(f"perftrail store stats{meant.again} prints what it contains")


@command.command("backup", short_help="Copy a store into one file, also during a run.")
@click.argument("file", type=click.Path(path_type=Path))
@study_argument
@store_option
@json_option
def backup(file: Path, study: str | None, store: str | None, as_json: bool) -> None:
    """Write the present state of a store into FILE, also during a run.

    FILE is an SQLite file. It contains its number of rows and their digest, so that restore can check it.
    """
    from perftrail.store.backup import backup as write_backup

    meant = named(study, store)
    with progress("backed up") as tell:
        noted = write_backup(meant.location, file, tell=tell)
    if as_json:
        print_json("store backup", noted.as_json())
        return
    click.echo(f"{file}: {noted_words(noted)}")
    click.echo(f"perftrail store restore {quoted_path(file)} --store DIR restores it")


@command.command("restore", short_help="Restore a backup after checking it.")
@click.argument("file", type=click.Path(path_type=Path))
@study_argument
@store_option
@json_option
def restore(file: Path, study: str | None, store: str | None, as_json: bool) -> None:
    """Restore a backup into an empty store.

    perftrail first checks the file's structure, schema version, number of rows and digest, and then the restored
    store. Exits with 1 if a check fails.
    """
    from perftrail.store.backup import restore as bring_back

    meant = named(study, store)
    with progress("restored") as tell:
        noted = bring_back(file, meant.location, tell=tell)
    if as_json:
        print_json("store restore", {"store": meant.shown, **noted.as_json()})
        return
    click.echo(f"{meant.shown}: {noted_words(noted)}, all as the backup noted")
    click.echo(f"perftrail show{meant.again} shows the samples")


@command.command("forget", short_help="Delete old samples.")
@study_argument
@click.option("--older-than", "age", metavar="AGE", required=True, help="Age of the samples: 90d, 26w or 1y.")
@click.option("--yes", is_flag=True, help="Delete. Without it, only print what would be deleted.")
@store_option
@json_option
def forget(study: str | None, age: str, yes: bool, store: str | None, as_json: bool) -> None:
    """Delete old samples for good. Builds, searches and answers stay.

    Without --yes, nothing is deleted. The next perftrail run measures again what the study's plan still needs.
    """
    from perftrail.store.upkeep import forget as take_away
    from perftrail.store.upkeep import to_forget

    before = moment_before(age)
    meant = named(study, store)
    gone = take_away(meant.location, before) if yes else to_forget(meant.location, before)
    if as_json:
        print_json("store forget", gone.as_json())
        return
    click.echo(forgotten_words(gone))
    if not gone.invocations:
        return
    click.echo(
        f"perftrail store compact{meant.again} returns the disk space"
        if yes
        else f"add --yes to delete them; to keep a copy first: perftrail store backup FILE{meant.again}"
    )


DAYS = {"d": 1, "w": 7, "y": 365}

AGE = re.compile(rf"([1-9][0-9]{{0,5}})\s*([{''.join(DAYS)}])")

KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStore:
    """A store of a command: its location, and the words that name it."""

    location: str
    again: str

    @property
    def shown(self) -> str:
        """The location without password."""
        return shown(self.location)

    @property
    def word(self) -> str:
        """The location as one word of a command."""
        place = Path(self.location)
        return shlex.quote(str(place.parent) if place.name == DATABASE else self.shown)


def named(study: str | None, store: str | None) -> NamedStore:
    """Return the store of a command's STUDY and --store, or of the nearest study.

    Raises `UsageError` for a study of other tools' samples, which has no store.
    """
    words = [*([] if study is None else [study]), *([] if store is None else ["--store", shown(store)])]
    again = "".join(f" {shlex.quote(word)}" for word in words)
    if study is None and store is not None:
        return NamedStore(location=placed(store).location, again=again)
    loaded = load_study(study, to_read=True)
    if loaded.searched_source.kind == "samples":
        raise UsageError(
            f"{loaded.file}: its samples were taken by other tools and are in files, not in a store"
        )
    return NamedStore(location=results_database(loaded, store), again=again)


def placed(word: str) -> NamedStore:
    """Return the store that a word names: an address, a file, a directory of results or of a study."""
    if (address := server_of(word)) is not None:
        return NamedStore(location=address, again="")
    path = Path(word)
    places = (path / DATABASE, path / RESULTS / DATABASE)
    there = next((place for place in places if place.is_file()), None)
    if there is None and (path.is_dir() or (not path.exists() and path.suffix != ".db")):
        there = places[(path / "perftrail.toml").is_file()]
    return NamedStore(location=str((there or path).absolute()), again="")


def moment_before(age: str) -> str:
    """Return the time that is an age ago, in the store's form. Raises `UsageError` for an invalid age."""
    found = AGE.fullmatch(age.strip())
    if found is None:
        raise UsageError(f"--older-than {quoted(age)}: not an age; write days, weeks or years: 90d, 26w, 1y")
    back = timedelta(days=int(found[1]) * DAYS[found[2]])
    try:
        return (datetime.now(UTC) - back).isoformat(timespec="milliseconds")
    except OverflowError as error:
        raise UsageError(f"--older-than {quoted(age)}: nothing is that old") from error


@contextmanager
def progress(verb: str) -> Iterator[Callable[[int, int], None]]:
    """Show the number of copied invocations on a terminal, in a line that disappears at the end."""
    console = errors()
    if not console.is_terminal:
        yield lambda *_: None
        return
    with console.status("") as status:
        yield lambda done, total: status.update(Text(f"{verb} {done:,} of {total:,} invocations"))


def print_statistics(found: Statistics) -> None:
    """Print the content of a store: totals, and a table by machine and benchmark."""
    console = output()
    size = quantity(found.size_bytes, "B")
    console.print(Text(f"{found.where}: {KINDS[found.kind]}, schema {found.schema}, {size}", style="bold"))
    console.print(Text(_rows_words(found.rows)))
    _print_parts("machine", found.machines)
    _print_parts("benchmark", found.benchmarks)


def copied_words(done: Copied) -> str:
    """Return how much a copy added, and how much existed."""
    added = {kind: number for kind, number in done.added.items() if number}
    there = {kind: number for kind, number in done.there.items() if number}
    said = f"{_kinds_words(added)} added" if added else "nothing was missing"
    return f"{said}; {_kinds_words(there)} were there" if there else said


def compacted_words(done: Compacted) -> str:
    """Return the old and new size of a store."""
    return (
        f"{done.where}: {quantity(done.after_bytes, 'B')}, before {quantity(done.before_bytes, 'B')} "
        f"({done.after_bytes:,} and {done.before_bytes:,} bytes)"
    )


def noted_words(noted: BackupContent) -> str:
    """Return the content of a backup."""
    rows = {kind: digest.rows for kind, digest in noted.digests.items() if digest.rows}
    return f"{_kinds_words(rows) if rows else 'nothing'}, {quantity(noted.size_bytes, 'B')}, of {noted.made}"


def forgotten_words(gone: Forgetting) -> str:
    """Yield what was deleted, or would be, by machine."""
    if not gone.invocations:
        return f"{gone.where}: nothing was measured before {gone.before}"
    verb = "were taken away" if gone.done else "would be taken away"
    what = f"{gone.invocations:,} invocations with {gone.values:,} values from before {gone.before}"
    parts = (
        f"  machine {escaped(part.name)}: {part.invocations:,}, from {escaped(part.oldest)} to {escaped(part.newest)}"
        for part in gone.machines
    )
    return "\n".join((f"{gone.where}: {what} {verb}", *parts))


def quoted_path(file: Path) -> str:
    """Return a file's name as one word of a command."""
    return shlex.quote(str(file))


def _rows_words(rows: Mapping[str, int]) -> str:
    """Return the number of rows of each table, the largest first."""
    ordered = sorted(rows.items(), key=lambda row: (-row[1], row[0]))
    return "rows: " + ", ".join(f"{table} {number:,}" for table, number in ordered)


def _kinds_words(rows: Mapping[str, int]) -> str:
    return ", ".join(
        f"{number:,} {kind if number != 1 else _singular(kind)}" for kind, number in rows.items()
    )


def _singular(kind: str) -> str:
    """Return the singular of a table's name.

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
        times = (escaped(part.oldest[:19]), escaped(part.newest[:19]))
        table.add_row(Text(escaped(part.name)), *(f"{number:,}" for number in numbers), *map(Text, times))
    output().print()
    output().print(table)
