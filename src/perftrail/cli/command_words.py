"""The words after ``--``: a command to measure, and the options of a study of that command."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.errors import UsageError
from perftrail.model.wording import quoted
from perftrail.present.output_settings import as_started, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.model.benchmark import Value
    from perftrail.verbs.command_study import WrittenStudy

WORDS_KEY = "perftrail.words"


class WordsCommand(Command):
    """A command that reads the words after ``--`` as a command to measure."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the words after ``--`` separately, because click would mix them with the other arguments."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS_KEY] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the words of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND…]"]


def command_words() -> tuple[str, ...] | None:
    """Return the words after ``--`` of the present command line, `None` without ``--``."""
    words: tuple[str, ...] | None = click.get_current_context().meta.get(WORDS_KEY)
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOptions:
    """Options of a command after ``--``: its build, outputs, printed metrics and parameters."""

    build: tuple[str, ...]
    outputs: tuple[str, ...]
    patterns: tuple[str, ...]
    lists: tuple[tuple[str, str], ...]

    def study(self, path: str | None, *, range: str = "") -> str | None:
        """Return the path of the study to load: that of the command after ``--`` if there is one, else `path`.

        Raises `UsageError` if both are named, or if there are options without a command.
        """
        words = command_words()
        if words is None:
            self._refuse_alone()
            return path
        if path is not None:
            raise UsageError(
                f"{quoted(path)}: the command after -- is the study; remove this word, or the command"
            )
        from perftrail.verbs.command_study import CommandLine, write_command_study

        written = write_command_study(
            CommandLine(
                words=words,
                build=self.build,
                outputs=self.outputs,
                patterns=self.patterns,
                parameters=self._parameters(),
                range=range,
            ),
            Path.cwd(),
        )
        print_written(written)
        return str(written.file)

    def _refuse_alone(self) -> None:
        for option, given in (
            ("--build", self.build),
            ("--outputs", self.outputs),
            ("--pattern", self.patterns),
            ("-L", self.lists),
        ):
            if given:
                raise UsageError(
                    f"{option} is for a command after --, for example: -- ./bench parse; "
                    "a study file sets it for its own benchmarks"
                )

    def _parameters(self) -> dict[str, tuple[Value, ...]]:
        from perftrail.measure.trial import values_of
        from perftrail.model.expression import bare_value

        parameters: dict[str, tuple[Value, ...]] = {}
        for name, text in self.lists:
            if name in parameters:
                raise UsageError(f"-L {name}: parameter {quoted(name)} is set twice; use one -L for it")
            parameters[name] = tuple(map(bare_value, values_of(text)))
        return parameters


def command_line_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command after ``--``, combined as `line`."""

    @click.option(
        "--build",
        multiple=True,
        metavar="LINE",
        help="With a command after --: a shell line that builds a revision. May be repeated. [default: the words "
        "before the last &&, else the detected build]",
    )
    @click.option(
        "--outputs",
        multiple=True,
        metavar="FILE",
        help="With a command after --: a file that the command uses, * and ? allowed. Builds with equal outputs are "
        "measured once. May be repeated. [default: the whole tree]",
    )
    @click.option(
        "--pattern",
        "patterns",
        multiple=True,
        metavar="REGEX",
        help="With a command after --: a number that it prints, as the only group; (?P<NAME>…) names the metric. May "
        "be repeated. [default: measure the wall time]",
    )
    @click.option(
        "-L",
        "--parameter-list",
        "lists",
        nargs=2,
        multiple=True,
        metavar="NAME A,B,…",
        help="With a command after --: replace {NAME} by each value.",
    )
    @functools.wraps(function)
    def command(
        *arguments: object,
        build: tuple[str, ...],
        outputs: tuple[str, ...],
        patterns: tuple[str, ...],
        lists: tuple[tuple[str, str], ...],
        **others: object,
    ) -> None:
        line = LineOptions(build=build, outputs=outputs, patterns=patterns, lists=lists)
        function(*arguments, line=line, **others)

    return command


def print_written(written: WrittenStudy) -> None:
    """Print what was detected for a study without a file, and how to keep it."""
    from perftrail.verbs.command_study import KEEP

    kept = "no study file: this study is kept until the next command line"
    keep = f"{kept}; keep it as perftrail.toml with: {as_started(KEEP)}"
    for line in (written.detected, keep):
        if line:
            print_about_study(line)


def print_about_study(line: str) -> None:
    """Print on stderr which study a command uses although there is no study file."""
    from rich.text import Text

    from perftrail.present.console import errors

    if not settings.quiet:
        errors().print(Text(line, style="dim"), soft_wrap=True)
