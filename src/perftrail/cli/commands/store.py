"""`perftrail store`: look after what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import click

from perftrail.cli.options import json_option, store_option, study_argument


@click.group("store")
def command() -> None:
    """Look after what was measured: how much there is, copies, backups, and what may go.

    What was measured lives in a file beside the study, or in a PostgreSQL server's database, which several machines
    share. STUDY or --store says which is meant.
    """


@command.command("stats", short_help="Say how much there is, and what room it takes.")
@study_argument
@store_option
@json_option
def stats(study: str | None, store: str | None, as_json: bool) -> None:
    """Say what a store holds, by table, machine and benchmark, and what room it takes."""
    from perftrail.cli.store_words import named, print_statistics
    from perftrail.store.upkeep import statistics

    meant = named(study, store)
    found = statistics(meant.location)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=1))
        return
    print_statistics(found)
    click.echo(f"perftrail store backup FILE{meant.again} keeps a copy of it")


@command.command("copy", short_help="Copy one store into another.")
@click.argument("source", metavar="A")
@click.argument("target", metavar="B")
@json_option
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy what store A holds into store B, either of them a directory, a file, or postgresql://USER@HOST/DATABASE.

    What B holds already is left as it is; nothing of it is lost. The same again goes on where it was cut short, and
    changes nothing once all is there. Exits 1 when B holds something else under the name of something in A, and
    says what; all else is copied then.
    """
    from perftrail.cli.store_words import copied_words, placed, progress
    from perftrail.store.copying import copy_store

    one, other = placed(source), placed(target)
    with progress("copied") as tell:
        done = copy_store(one.location, other.location, tell=tell)
    if as_json:
        click.echo(json.dumps({"from": one.shown, "to": other.shown, **done.as_json()}, indent=1))
    else:
        click.echo(f"{other.shown}: {copied_words(done)}")
    done.refuse_differences(other.shown)
    if not as_json:
        click.echo(f"perftrail store stats --store {other.word} says what is there now")


@command.command("compact", short_help="Give the room back that is not needed.")
@study_argument
@store_option
@json_option
def compact(study: str | None, store: str | None, as_json: bool) -> None:
    """Give the room back that a store does not need any more; whoever writes to it has to wait meanwhile."""
    from perftrail.cli.store_words import compacted_words, named
    from perftrail.store.upkeep import compact as make_compact

    meant = named(study, store)
    done = make_compact(meant.location)
    if as_json:
        click.echo(json.dumps(done.as_json(), indent=1))
        return
    click.echo(compacted_words(done))
    click.echo(f"perftrail store stats{meant.again} says what it holds")


@command.command("backup", short_help="Write all of it into one file, while a run goes on.")
@click.argument("file", type=click.Path(path_type=Path))
@study_argument
@store_option
@json_option
def backup(file: Path, study: str | None, store: str | None, as_json: bool) -> None:
    """Write what a store holds at this moment into FILE; a run that writes to it is not disturbed.

    FILE is an SQLite file, whatever the store is in. It notes how many rows it has and their digest, by which a
    restore knows that nothing is missing.
    """
    from perftrail.cli.store_words import named, noted_words, progress, quoted_path
    from perftrail.store.backup import backup as write_backup

    meant = named(study, store)
    with progress("backed up") as tell:
        noted = write_backup(meant.location, file, tell=tell)
    if as_json:
        click.echo(json.dumps(noted.as_json(), indent=1))
        return
    click.echo(f"{file}: {noted_words(noted)}")
    click.echo(f"perftrail store restore {quoted_path(file)} --store DIR brings it back")


@command.command("restore", short_help="Bring a backup back, once it was found to be whole.")
@click.argument("file", type=click.Path(path_type=Path))
@study_argument
@store_option
@json_option
def restore(file: Path, study: str | None, store: str | None, as_json: bool) -> None:
    """Bring a backup back where nothing is kept yet, once it was found to be whole.

    The file's own structure is checked, the version of its schema, and that it holds the rows that it noted, by number
    and by digest, before anything is changed; what was restored is checked again. Exits 1 when any of this fails.
    """
    from perftrail.cli.store_words import named, noted_words, progress
    from perftrail.store.backup import restore as bring_back

    meant = named(study, store)
    with progress("restored") as tell:
        noted = bring_back(file, meant.location, tell=tell)
    if as_json:
        click.echo(json.dumps({"store": meant.shown, **noted.as_json()}, indent=1))
        return
    click.echo(f"{meant.shown}: {noted_words(noted)}, all as the backup noted")
    click.echo(f"perftrail show{meant.again} shows it")


@command.command("forget", short_help="Take old samples away, on explicit order.")
@study_argument
@click.option(
    "--older-than", "age", metavar="AGE", required=True, help="What was measured before: 90d, 26w or 1y ago."
)
@click.option("--yes", is_flag=True, help="Do it; without it, only say what would go.")
@store_option
@json_option
def forget(study: str | None, age: str, yes: bool, store: str | None, as_json: bool) -> None:
    """Take away, for good, samples that were measured long ago; builds, searches and their answers stay.

    Nothing is taken away without --yes. What still belongs to the study's plan is measured anew by the next
    perftrail run.
    """
    from perftrail.cli.store_words import forgotten_words, moment_before, named
    from perftrail.store.upkeep import forget as take_away
    from perftrail.store.upkeep import to_forget

    before = moment_before(age)
    meant = named(study, store)
    gone = take_away(meant.location, before) if yes else to_forget(meant.location, before)
    if as_json:
        click.echo(json.dumps(gone.as_json(), indent=1))
        return
    click.echo(forgotten_words(gone))
    if not gone.invocations:
        return
    click.echo(
        f"perftrail store compact{meant.again} gives the room back"
        if yes
        else f"add --yes to do it; perftrail store backup FILE{meant.again} keeps a copy first"
    )
