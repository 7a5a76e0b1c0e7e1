"""`perftrail store`: count, copy, back up and delete samples."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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
from perftrail.model.wording import counted, escaped, quantity, quoted
from perftrail.opening import results_database
from perftrail.present.console import errors, output
from perftrail.present.output_settings import next_line
from perftrail.results_directory import DATABASE, RESULTS, target_of, verify
from perftrail.store import parse_server, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.store.backup import BackupContent
    from perftrail.store.copying import Copied
    from perftrail.store.upkeep import Compacted, Forgetting, Part, Statistics


@click.group("store", cls=Group)
def command() -> None:
    """Count, copy, back up, accept and delete samples.

    Samples are in a file in the study's directory, or in a PostgreSQL database that several machines share. STUDY or
    --store selects them.
    """


@command.command("stats", short_help="Count samples and disk space.")
@study_argument
@store_option
@json_option
def stats(study: str | None, store: str | None, as_json: bool) -> None:
    """Print the number of rows of each table, machine and benchmark, and the disk space."""
    from perftrail.store.upkeep import statistics

    selected = selected_store(study, store)
    content = statistics(selected.location)
    if as_json:
        print_json("store stats", asdict(content))
        return
    print_statistics(content)
    click.echo(next_line(f"perftrail store backup FILE{selected.options}    copy it into one file"))


@command.command("copy", short_help="Copy one store into another.")
@click.argument("source", metavar="A")
@click.argument("target", metavar="B")
@json_option
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy store A into store B. Each is a directory, a file, or postgresql://USER@HOST/DATABASE.

    Rows that B already has do not change. Repeat an interrupted copy to resume it. If B has a row of the same name with
    different content, perftrail prints it, copies everything else, and exits with 1.
    """
    from perftrail.store.copying import copy_store

    origin, destination = store_at(source), store_at(target)
    with progress("copied") as report:
        done = copy_store(origin.location, destination.location, on_progress=report)
    if as_json:
        print_json("store copy", {"from": origin.shown, "to": destination.shown, **done.as_json()})
    else:
        click.echo(f"{destination.shown}: {copied_words(done)}")
    done.refuse_differences(destination.shown)
    if not as_json:
        click.echo(next_line(f"perftrail store stats --store {destination.word}    count its content"))


@command.command("compact", short_help="Return unused disk space.")
@study_argument
@store_option
@json_option
def compact(study: str | None, store: str | None, as_json: bool) -> None:
    """Return unused disk space of a store to the system. Other commands wait before they write."""
    from perftrail.store.upkeep import compact as compact_store

    selected = selected_store(study, store)
    done = compact_store(selected.location)
    if as_json:
        print_json("store compact", asdict(done))
        return
    click.echo(compacted_words(done))
    click.echo(next_line(f"perftrail store stats{selected.options}    count its content"))


@command.command("backup", short_help="Copy a store into one file, also during a run.")
@click.argument("file", type=click.Path(path_type=Path))
@study_argument
@store_option
@json_option
def backup(file: Path, study: str | None, store: str | None, as_json: bool) -> None:
    """Write the present state of a store into FILE, also during a run.

    FILE is an SQLite file. It contains the number of its rows and their digest, with which restore checks it.
    """
    from perftrail.store.backup import backup as write_backup

    selected = selected_store(study, store)
    with progress("backed up") as report:
        content = write_backup(selected.location, file, on_progress=report)
    if as_json:
        print_json("store backup", content.as_json())
        return
    click.echo(f"{file}: {content_words(content)}")
    click.echo(next_line(f"perftrail store restore {shlex.quote(str(file))} --store DIRECTORY    restore it"))


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
    from perftrail.store.backup import restore as restore_backup

    selected = selected_store(study, store)
    with progress("restored") as report:
        content = restore_backup(file, selected.location, on_progress=report)
    if as_json:
        print_json("store restore", {"store": selected.shown, **content.as_json()})
        return
    click.echo(f"{selected.shown}: {content_words(content)}; identical to the backup")
    click.echo(next_line(f"perftrail show{selected.options}    print the samples"))


@command.command("forget", short_help="Delete old samples.")
@study_argument
@click.option(
    "--older-than",
    "age",
    metavar="AGE",
    required=True,
    help="Minimum age, for example 90d, 26w or 1y.",
)
@click.option("--yes", is_flag=True, help="Delete the samples. Without it, perftrail only counts them.")
@store_option
@json_option
def forget(study: str | None, age: str, yes: bool, store: str | None, as_json: bool) -> None:
    """Delete old samples permanently. Builds, searches and answers stay.

    Without --yes, perftrail deletes nothing. The next perftrail run repeats samples that the study's plan still needs.
    """
    from perftrail.store.upkeep import forget as delete_samples
    from perftrail.store.upkeep import preview_forget

    before = time_before(age)
    selected = selected_store(study, store)
    forgetting = (
        delete_samples(selected.location, before) if yes else preview_forget(selected.location, before)
    )
    if as_json:
        print_json("store forget", asdict(forgetting))
        return
    click.echo(forgotten_words(forgetting))
    if not forgetting.invocations:
        return
    click.echo(
        next_line(f"perftrail store compact{selected.options}    return the disk space")
        if yes
        else f"Delete them with --yes; to back them up before: perftrail store backup FILE{selected.options}"
    )


@command.command("accept", short_help="Accept a results directory as yours.")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
def accept(directory: Path | None) -> None:
    """Accept DIRECTORY as your own results, by default those of the nearest study.

    perftrail uses only results directories that it created for you on this machine. Accept one from another machine,
    a backup, a cache, another user or an older perftrail. A directory with links, or one that git tracks, is not
    accepted. A study's file or its directory names its results.
    """
    from perftrail.results_directory import accept as accept_directory
    from perftrail.studyfile import FILE_NAME, directory_of, find_upwards, no_study

    named = directory or find_upwards(".")
    if named is None:
        raise no_study(Path.cwd())
    path = Path(named).absolute()
    if path.suffix == ".toml" and not path.is_dir():
        results = directory_of(path) / RESULTS
    else:
        is_study = (path / FILE_NAME).is_file() or os.path.lexists(path / RESULTS)
        results = path / RESULTS if is_study else path
    if not os.path.lexists(results):
        click.echo(f"{results}: there are no results yet, so nothing was accepted")
        return
    accept_directory(results)
    click.echo(f"{results}: accepted")
    click.echo(next_line(f"perftrail store stats --store {shlex.quote(str(results))}    count its content"))


DAYS = {"d": 1, "w": 7, "y": 365}

AGE = re.compile(rf"([1-9][0-9]{{0,5}})\s*([{''.join(DAYS)}])")

KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStore:
    """A store of a command: its location, and the arguments that select it."""

    location: str
    options: str

    @property
    def shown(self) -> str:
        """The location without password."""
        return shown(self.location)

    @property
    def word(self) -> str:
        """The location as one word of a command."""
        path = Path(self.location)
        return shlex.quote(str(path.parent) if path.name == DATABASE else self.shown)


def selected_store(study: str | None, store: str | None) -> NamedStore:
    """Return the store that STUDY and --store select, by default the nearest study's.

    Raises `UsageError` for a study of imported samples, which has no store.
    """
    words = [*([] if study is None else [study]), *([] if store is None else ["--store", shown(store)])]
    options = "".join(f" {shlex.quote(word)}" for word in words)
    if study is None and store is not None:
        return NamedStore(location=store_at(store).location, options=options)
    loaded = load_study(study, to_read=True)
    if loaded.searched_source.kind == "samples":
        raise UsageError(
            f"{loaded.file}: its samples are imported from other tools and are in files, so it has no store"
        )
    return NamedStore(location=results_database(loaded, store), options=options)


def store_at(name: str) -> NamedStore:
    """Return the store at an address or path: a file, a directory of results, or a directory of a study."""
    if (address := parse_server(name)) is not None:
        return NamedStore(location=address, options="")
    path = target_of(Path(name))
    candidates = (path / DATABASE, path / RESULTS / DATABASE)
    database = next((file for file in candidates if file.is_file()), None)
    if database is None and (path.is_dir() or (not path.exists() and path.suffix != ".db")):
        database = candidates[(path / "perftrail.toml").is_file()]
    if database is not None:
        verify(database.absolute().parent)
    return NamedStore(location=str((database or path).absolute()), options="")


def time_before(age: str) -> str:
    """Return the time that is an age ago, in the store's form. Raises `UsageError` for an invalid age."""
    match = AGE.fullmatch(age.strip())
    if match is None:
        raise UsageError(f"--older-than {quoted(age)} is not an age; write for example 90d, 26w or 1y")
    duration = timedelta(days=int(match[1]) * DAYS[match[2]])
    try:
        return (datetime.now(UTC) - duration).isoformat(timespec="milliseconds")
    except OverflowError as error:
        raise UsageError(f"--older-than {quoted(age)}: no sample can be that old") from error


@contextmanager
def progress(verb: str) -> Iterator[Callable[[int, int], None]]:
    """Show the number of copied invocations on a terminal, in a line that disappears at the end."""
    console = errors()
    if not console.is_terminal:
        yield lambda *_: None
        return
    with console.status("") as status:
        yield lambda done, total: status.update(Text(f"{verb} {done:,} of {total:,} invocations"))


def print_statistics(content: Statistics) -> None:
    """Print the content of a store: totals, and a table by machine and benchmark."""
    console = output()
    size = quantity(content.bytes, "B")
    console.print(
        Text(f"{content.store}: {KINDS[content.kind]}, schema {content.schema}, {size}", style="bold")
    )
    console.print(Text(_rows_words(content.rows)))
    _print_parts("machine", content.machines)
    _print_parts("benchmark", content.benchmarks)


def copied_words(done: Copied) -> str:
    """Return the numbers of rows that a copy added, and of rows that existed."""
    added = {kind: number for kind, number in done.added.items() if number}
    existing = {kind: number for kind, number in done.existing.items() if number}
    text = f"added {_kinds_words(added)}" if added else "added nothing"
    return f"{text}; {_kinds_words(existing)} existed already" if existing else text


def compacted_words(done: Compacted) -> str:
    """Return the old and new size of a store."""
    return (
        f"{done.store}: {quantity(done.after_bytes, 'B')}, {quantity(done.before_bytes, 'B')} before "
        f"({done.after_bytes:,} and {done.before_bytes:,} bytes)"
    )


def content_words(content: BackupContent) -> str:
    """Return the content of a backup."""
    rows = {kind: digest.rows for kind, digest in content.digests.items() if digest.rows}
    return (
        f"{_kinds_words(rows) if rows else 'nothing'}, {quantity(content.size_bytes, 'B')}, "
        f"written {content.made}"
    )


def forgotten_words(forgetting: Forgetting) -> str:
    """Return the deleted samples by machine, or the samples that --yes would delete."""
    if not forgetting.invocations:
        return f"{forgetting.store}: no samples from before {forgetting.before}"
    verb = "deleted" if forgetting.done else "would delete"
    invocations, values = counted(forgetting.invocations, "invocation"), counted(forgetting.values, "value")
    parts = (
        f"  machine {escaped(part.name)}: {part.invocations:,}, from {escaped(part.oldest)} to {escaped(part.newest)}"
        for part in forgetting.machines
    )
    return "\n".join(
        (f"{forgetting.store}: {verb} {invocations} with {values} from before {forgetting.before}", *parts)
    )


_TABLES = {
    "perftrail": "perftrail version",
    "regression_note": "note on a regression",
    "stands_for": "subject of a runnable",
}
"""The names of tables whose rows need another word."""


def _rows_words(rows: Mapping[str, int]) -> str:
    """Return the number of rows of each table, the largest first; without empty tables."""
    ordered = sorted(rows.items(), key=lambda row: (-row[1], row[0]))
    words = [f"{_TABLES.get(table, table)} {number:,}" for table, number in ordered if number]
    return "rows: " + (", ".join(words) or "none")


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
