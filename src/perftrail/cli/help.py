"""Help of every command: its purpose, its options, the common options, two examples and its documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.model.wording import page_address
from perftrail.present.output_settings import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMON = ("jobs", "engine", "along", "at", "retry_failed", "no_wait", "sandbox", "store")
AT_THE_END = ("as_json", "color", "quiet", "verbose", "help")
"""Common options, which help lists after the command's own."""

EXAMPLES: dict[str, Sequence[tuple[str, str]]] = {
    "init": (
        ("perftrail init", "write perftrail.toml for the program in this directory"),
        ("perftrail init ~/src/zlib -o zlib-study", "write the study into another directory"),
    ),
    "check": (
        ("perftrail check", "print the plan: builds, invocations, time"),
        ("perftrail check --try 5", "build and start five revisions, spread over the range"),
    ),
    "doctor": (
        ("perftrail doctor", "show what disturbs measurements here"),
        (
            "sudo perftrail doctor --fix -- perftrail run",
            "change this machine's settings, run, then restore them",
        ),
    ),
    "measure": (
        ("perftrail measure 'sort data.txt'", "measure one command"),
        (
            "perftrail measure 'gzip -k -f data' 'zstd -k -f data'",
            "compare two commands in interleaved pairs",
        ),
    ),
    "run": (
        ("perftrail run", "build and measure everything that the plan still needs"),
        ("perftrail run --only revision=v2.* --dry-run", "show the cost of a part of the plan"),
    ),
    "find": (
        ("perftrail find --metric wall", "find the revision that changed the wall time"),
        (
            "perftrail find --range v1.4..v1.6 --threshold 2%",
            "find changes of 2 % or more between two releases",
        ),
    ),
    "compare": (
        ("perftrail compare v1.5 HEAD", "compare two revisions"),
        ("perftrail compare main HEAD --fail-on slower --format github", "fail a CI job if HEAD is slower"),
    ),
    "watch": (
        ("perftrail watch --every 10min", "measure every new revision of the branch"),
        ("perftrail watch --once --notify mailto:perf@example.org", "check once, for example from cron"),
    ),
    "show": (
        ("perftrail show", "print every median with its interval, and the changes along the history"),
        ("perftrail show --search", "show the last search, step by step"),
    ),
    "publish": (
        ("perftrail publish -o pages", "add the results of the study here to the site in pages"),
        ("perftrail publish benchmarks -o pages/performance", "publish into a part of a site"),
    ),
    "report": (
        ("perftrail report -o report", "write report/index.html"),
        ("perftrail report --format markdown", "print the report as text, for an issue"),
    ),
    "serve": (
        ("perftrail serve", "show the study at http://127.0.0.1:8457"),
        ("perftrail serve ~/studies --port 9000", "show all studies of a directory"),
    ),
    "mcp": (
        ("perftrail mcp ~/studies", "let an agent read all studies of a directory"),
        ("perftrail mcp --allow-measuring", "let an agent also compare and search in this directory"),
    ),
    "explain": (
        (
            "perftrail explain 3f9c2ab",
            "compare a culprit with its parent: time, locks, system calls, functions",
        ),
        ("perftrail explain v1.6 --against v1.5", "compare two releases"),
    ),
    "backport": (
        ("perftrail backport 3f9c2ab --onto v1.4", "apply a fix to an old release, and measure it"),
        ("perftrail backport --patch fix.patch --onto v1.4", "measure a patch file"),
    ),
    "revert": (
        ("perftrail revert 3f9c2ab", "revert a culprit on the newest revision, and measure it"),
        ("perftrail revert 3f9c2ab --onto v2.0 --exclude ChangeLog", "on a release, without one file"),
    ),
    "export": (
        ("perftrail export -o samples.csv", "write every sample"),
        ("perftrail export --format hyperfine --only revision=v2.0", "print one release for another tool"),
    ),
    "import": (
        ("perftrail import results.json", "read results of another tool into ./imported"),
        ("perftrail import criterion/ --title 'Parser'", "read every result file of a directory"),
    ),
    "store": (
        ("perftrail store stats", "count samples and disk space"),
        ("perftrail store backup samples.db", "copy everything into one file, also during a run"),
    ),
    "build": (
        ("perftrail build v1.4", "build one revision; print its directory, or why it failed"),
        ("perftrail build v1.4 --shell", "open a shell where the recipe would run"),
    ),
    "bisect-step": (
        (
            "perftrail bisect-step v1.5 --metric cpu",
            "exit with 1 if the checked-out revision is slower than v1.5",
        ),
        (
            "perftrail bisect-step v1.5 ../study --threshold 5%",
            "with the study of another directory, and only changes of 5 % or more",
        ),
    ),
    "worker": (
        ("perftrail worker tcp://scheduler:8786", "build and measure for the clients of a scheduler"),
        (
            "perftrail worker tcp://scheduler:8786 --builds 4 --machine a1",
            "with four parallel builds, and under the name a1",
        ),
    ),
    "completion": (
        ("perftrail completion --install", "install completion for the shell of $SHELL"),
        ("perftrail completion fish", "print the script for fish"),
    ),
}
"""Two examples of each command with their effect."""

PAGES = {
    "init": "how-to/first-study.md",
    "check": "how-to/first-study.md",
    "doctor": "how-to/trustworthy-numbers.md",
    "measure": "how-to/measure.md",
    "run": "how-to/first-study.md",
    "find": "how-to/find.md",
    "compare": "how-to/ci.md",
    "watch": "how-to/watch.md",
    "show": "how-to/first-study.md",
    "publish": "how-to/publish.md",
    "report": "how-to/report.md",
    "serve": "how-to/dashboard.md",
    "mcp": "how-to/agents.md",
    "explain": "how-to/explain.md",
    "backport": "how-to/backport.md",
    "revert": "how-to/backport.md",
    "export": "how-to/other-tools.md",
    "import": "how-to/other-tools.md",
    "store": "how-to/backup.md",
    "build": "how-to/old-revisions.md",
    "bisect-step": "how-to/git.md",
    "worker": "how-to/many-machines.md",
    "completion": "install.md",
}
"""The page in docs/ about each command."""


class Command(click.Command):
    """A command with ``--color``, and with a complete help."""

    def __init__(self, *arguments: object, **attributes: object) -> None:
        super().__init__(*arguments, **attributes)  # type: ignore[arg-type] # click's own parameters
        self.params.append(
            click.Option(
                ["--color"],
                type=click.Choice(["auto", "always", "never"]),
                default="auto",
                show_default=True,
                expose_value=False,
                callback=_set_color,
                help="When to use colours.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the common ones."""
        own: list[tuple[str, str]] = []
        common: dict[str, tuple[str, str]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            name = "help" if "--help" in param.opts else param.name or ""
            if record is not None and name in (*COMMON, *AT_THE_END):
                common[name] = record
            elif record is not None:
                own.append(record)
        if own:
            with formatter.section("Options"):
                formatter.write_dl(own)
        with formatter.section("Common options"):
            formatter.write_dl([common[name] for name in (*COMMON, *AT_THE_END) if name in common])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the examples and the documentation."""
        write_examples(self.name or "", formatter)


class Group(click.Group):
    """A group of commands with examples."""

    command_class = Command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the examples and the documentation."""
        write_examples(self.name or "", formatter)


def write_examples(name: str, formatter: click.HelpFormatter) -> None:
    """Write two examples of a command with their effect, and its page in the documentation."""
    if name in EXAMPLES:
        with formatter.section("Examples"):
            for line, meaning in EXAMPLES[name]:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
                formatter.write(f"{'':>{formatter.current_indent + 4}}{meaning}\n")
    if name in PAGES:
        formatter.write(f"\nDocumentation: {page_address(PAGES[name])}\n")


def _set_color(_ctx: click.Context, _param: click.Parameter, value: str) -> None:
    settings.color = value


def quiet_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add --quiet and --verbose to a command with progress."""
    for decorator in (
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            expose_value=False,
            callback=_set_verbose,
            help="Print a line for each build and each invocation.",
        ),
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            expose_value=False,
            callback=_set_quiet,
            help="Print warnings and the answer, but no progress.",
        ),
    ):
        function = decorator(function)
    return function


def _set_quiet(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    settings.quiet = value


def _set_verbose(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    settings.verbose = value
