"""Write exports to the terminal, a file or a directory; print what was imported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from perftrail.errors import NoAnswer, UsageError
from perftrail.file_tree import refuse_link, write_file
from perftrail.model.wording import counted, escaped, listed
from perftrail.present.html_page import WrittenFileJson
from perftrail.present.output_settings import next_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.verbs.import_ import Imported

_NEXT = {
    "asv": "Next: asv publish --config {path}/asv.conf.json    write its pages",
    "otava": "Next: cd {path} && otava analyze --config-file otava.yaml --since 1990-01-01 NAME"
    "    find the changes of test NAME",
    "bmf": "Next: bencher run --adapter json --file FILE    upload one file",
}
"""Next useful command of the tool that reads a format."""


MOST_LISTED = 8
"""Maximum number of written files that are listed."""


class ExportedJson(TypedDict):
    """The files of an export."""

    format: str
    files: list[WrittenFileJson]


def write_export(
    format_name: str, files: Mapping[str, bytes], output: str | None, *, quiet: bool
) -> list[WrittenFileJson]:
    """Write an export to its destination, and print the written files. Raises `UsageError` if that fails.

    `quiet`: the caller prints the files itself, as JSON.
    """
    if not files:
        raise NoAnswer(
            f"the format {format_name} cannot represent any of these samples; csv can represent all"
        )
    if output is None:
        if len(files) > 1 or quiet:
            raise UsageError(
                f"export: this format writes {len(files)} files; name their directory with -o DIR"
                if len(files) > 1
                else "export: --json lists written files; name their destination with -o PATH"
            )
        _print(*files.values())
        return []
    written = _write(files, Path(output))
    if not quiet:
        for path in written[:MOST_LISTED]:
            click.echo(f"{path}, {counted(path.stat().st_size, 'byte')}")
        if len(written) > MOST_LISTED:
            click.echo(f"and {counted(len(written) - MOST_LISTED, 'more file')}")
        if format_name in _NEXT:
            click.echo(_NEXT[format_name].format(path=output))
    return [{"file": str(path), "bytes": path.stat().st_size} for path in written]


def print_missing_metrics(format_name: str, metrics: Sequence[str]) -> None:
    """Print the metrics that are missing in the files of an export; nothing if there are none."""
    if names := list(dict.fromkeys(metrics)):
        click.echo(
            f"Missing in {format_name}: {listed(map(escaped, names), 'and')}. The format csv contains every metric.",
            err=True,
        )


def print_imported(imported: Imported) -> None:
    """Print the content of an imported study, which has no plan."""
    for line in (
        *imported.words(),
        next_line("perftrail show    the results; an imported study measures nothing"),
    ):
        click.echo(line)


def _print(content: bytes) -> None:
    if sys.stdout.isatty() and b"\0" in content:
        raise UsageError("export: this format is binary; write it to a file with -o FILE")
    sys.stdout.flush()
    sys.stdout.buffer.write(content)


def _write(files: Mapping[str, bytes], destination: Path) -> list[Path]:
    """Write one file to its own name or into a directory; several files into a directory."""
    single = len(files) == 1 and not destination.is_dir()
    paths = [destination] if single else [destination / name for name in files]
    try:
        if destination.is_dir():
            refuse_link(destination)
        for path, content in zip(paths, files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"-o {destination}: cannot be written: {reason}; name another file or directory"
        ) from error
    return paths
