"""`perftrail doctor`: disturbances of measurements on this machine, and the smallest detectable change."""

from __future__ import annotations

import os
import signal
import sys

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option
from perftrail.errors import UsageError
from perftrail.present.output_settings import settings


@click.command(
    "doctor",
    cls=Command,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.option(
    "--quick", is_flag=True, help="Only read settings, and do not measure the noise of this machine."
)
@click.option(
    "--fix",
    is_flag=True,
    help="Change settings while COMMAND runs, or until Ctrl-C, and then restore them. Needs root.",
)
@json_option
@click.argument("arguments", metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED)
def command(quick: bool, fix: bool, as_json: bool, arguments: tuple[str, ...]) -> None:
    """Show what disturbs measurements on this machine, the cost, and the remedy.

    With --fix -- COMMAND, perftrail sets CPU frequency, turbo, NUMA balancing, the NMI watchdog and swapping for
    measuring, runs COMMAND and exits with its code. It restores all settings, even if it is killed.
    """
    if arguments and not fix:
        raise UsageError(
            "a COMMAND needs --fix, which changes settings while it runs: perftrail doctor --fix -- COMMAND"
        )
    if arguments:
        raise click.exceptions.Exit(_run_fixed(arguments))
    if fix:
        _fix_until_interrupted(quick=quick, as_json=as_json)
    else:
        _examine(quick=quick, as_json=as_json)


def _examine(*, quick: bool, as_json: bool) -> None:
    from perftrail.present.doctor import checking_status, print_report
    from perftrail.studyfile.reading import find_upwards
    from perftrail.verbs.doctor import examine, first_time

    first_time()
    with checking_status(quick=quick):
        report = examine(quick=quick)
    if as_json:
        print_json("doctor", report.as_json())
    else:
        print_report(report, has_study=find_upwards(".") is not None)


def print_at_first_run() -> None:
    """Print the state of this machine in one line, before its first measurement on a terminal, and never again.

    Takes a second once. Prints nothing with --json or --quiet, and in CI.
    """
    as_json = click.get_current_context().params.get("as_json", False)
    if as_json or settings.quiet or os.environ.get("CI") or not sys.stderr.isatty():
        return
    from rich.text import Text

    from perftrail.present.console import errors
    from perftrail.present.doctor import checking_status, first_run_line
    from perftrail.verbs.doctor import examine, first_time

    if first_time():
        with checking_status(quick=True):
            report = examine(quick=True)
        errors().print(Text(first_run_line(report), style="dim"), soft_wrap=True)


def _run_fixed(arguments: tuple[str, ...]) -> int:
    from perftrail.present.doctor import print_restored, print_setting_changes
    from perftrail.process.machine.settings import run_attached
    from perftrail.verbs.doctor import changed_settings

    with changed_settings() as changes:
        print_setting_changes(changes, until="until the command ends")
        code = run_attached(arguments)
    print_restored(changes)
    return code


def _fix_until_interrupted(*, quick: bool, as_json: bool) -> None:
    from perftrail.present.doctor import checking_status, print_report, print_restored, print_setting_changes
    from perftrail.studyfile.reading import find_upwards
    from perftrail.verbs.doctor import changed_settings, examine

    with changed_settings() as changes:
        print_setting_changes(changes, until="until Ctrl-C")
        with checking_status(quick=quick):
            report = examine(quick=quick, changed=changes)
        if as_json:
            print_json("doctor", report.as_json())
        else:
            print_report(report, has_study=find_upwards(".") is not None)
        if changes:
            _wait_for_signal()
    print_restored(changes)


def _wait_for_signal() -> None:
    """Wait for Ctrl-C, SIGTERM or SIGHUP."""
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    signal.sigwait(signals)
