"""A command that runs until it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from perftrail.cli import options
from perftrail.cli.interrupts import MESSAGE
from perftrail.cli.options import STOP_SIGNALS, Stop, stopped_like_ctrl_c, terminated_like_ctrl_c


@pytest.fixture(autouse=True)
def hangup_ends_a_process() -> Iterator[None]:
    """The tests themselves may run under nohup, which ignores SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_second_hangup_of_the_terminal_does_not_interrupt_the_cleanup() -> None:
    with stopped_like_ctrl_c():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)


def test_a_command_under_nohup_still_ignores_a_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with terminated_like_ctrl_c(), stopped_like_ctrl_c() as stop, stop.after_block():
        signal.raise_signal(signal.SIGHUP)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_stop_that_was_lost_in_a_callback_takes_effect_at_the_next_step(number: signal.Signals) -> None:
    with stopped_like_ctrl_c() as stop:
        stop.raise_if_requested()
        with suppress(KeyboardInterrupt):  # as Python does where it calls back
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            stop.raise_if_requested()


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_current_work_ends_before_the_stop(number: signal.Signals) -> None:
    ended = False
    with pytest.raises(KeyboardInterrupt), Stop().after_block():
        signal.raise_signal(number)
        ended = True
    assert ended


def test_a_stop_takes_effect_after_current_work_failed() -> None:
    stop = Stop()
    with suppress(OSError), stop.after_block():
        signal.raise_signal(signal.SIGTERM)
        raise OSError
    with pytest.raises(KeyboardInterrupt):
        stop.raise_if_requested()


def test_a_second_stop_interrupts_current_work() -> None:
    with pytest.raises(KeyboardInterrupt), Stop().after_block():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("it goes on")


def test_work_that_does_not_end_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "GRACE_SECONDS", 0.05)
    with pytest.raises(KeyboardInterrupt), Stop().after_block():
        signal.raise_signal(signal.SIGTERM)
        signal.sigtimedwait([], 60)
        pytest.fail("it goes on")


def test_signal_handlers_are_restored_afterwards() -> None:
    before = [signal.getsignal(number) for number in (*STOP_SIGNALS, signal.SIGALRM)]
    with stopped_like_ctrl_c() as stop, stop.after_block():
        pass
    assert [signal.getsignal(number) for number in (*STOP_SIGNALS, signal.SIGALRM)] == before


INTERRUPTED = """
import signal, time
from perftrail.cli import interrupts as module
interrupts = module.Interrupts()
interrupts.install()
def interrupt(): signal.raise_signal(signal.SIGINT)
"""
"""A process as the command line starts, before its imports."""


def interrupted(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script that interrupts itself; it must print no traceback."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED + script], capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "KeyboardInterrupt" not in done.stderr, done.stderr
    return done


def test_ctrl_c_during_the_imports_ends_the_process_with_the_code_of_an_interruption() -> None:
    done = interrupted("interrupt()\nprint('it goes on')")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{MESSAGE}\n")


def test_a_second_ctrl_c_does_not_interrupt_the_cleanup() -> None:
    done = interrupted(
        "interrupts.begin()\n"
        "try:\n"
        "    interrupt()\n"
        "except KeyboardInterrupt:\n"
        "    interrupt()\n"
        "    print('cleaned up')\n"
    )
    assert (done.returncode, done.stdout) == (0, "cleaned up\n")


def test_a_ctrl_c_long_after_the_first_ends_a_cleanup_that_hangs() -> None:
    done = interrupted(
        "module.GRACE_SECONDS = 0.0\n"
        "interrupts.begin()\n"
        "try:\n"
        "    interrupt()\n"
        "except KeyboardInterrupt:\n"
        "    interrupt()\n"
        "    print('it goes on')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{MESSAGE}\n")


def test_ctrl_c_while_the_process_exits_keeps_its_exit_code() -> None:
    done = interrupted(
        "import atexit, sys\n"
        "interrupts.begin()\n"
        "interrupts.end(3)\n"
        "atexit.register(interrupt)\n"
        "interrupt()\n"
        "sys.exit(3)\n"
    )
    assert (done.returncode, done.stderr) == (3, "")


LOST = """
class Late:
    def __del__(self): interrupt()
interrupts.begin()
try:
    Late()
    while True: pass
except KeyboardInterrupt:
    print('interrupted')
"""
"""A script whose interrupt Python loses, because it comes in a callback."""

SLOW_REPORT = """
set_timer = signal.setitimer
def slow(timer, seconds):
    signal.setitimer = set_timer
    set_timer(timer, seconds)
    until = time.monotonic() + 10 * seconds
    while time.monotonic() < until: pass
signal.setitimer = slow
"""
"""The time until the next delivery ends before the loss is reported completely, as on a busy machine."""

IN_THE_BACKGROUND = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
interrupts = module.Interrupts()
interrupts.install()
signal.signal(signal.SIGTERM, interrupts.handle)
def interrupt(): signal.raise_signal(signal.SIGTERM)
"""
"""A shell ignores Ctrl-C for the process, which SIGTERM stops."""


@pytest.mark.parametrize("before", ["", SLOW_REPORT, IN_THE_BACKGROUND], ids=["quiet", "busy", "background"])
def test_an_interrupt_that_python_loses_in_a_callback_is_delivered_again(before: str) -> None:
    done = interrupted(before + LOST)
    assert (done.returncode, done.stdout) == (0, "interrupted\n")


def test_a_command_in_the_background_still_ignores_ctrl_c() -> None:
    done = subprocess.run(
        [
            "sh",
            "-c",
            'trap "" INT; exec "$0" -c "$1"',
            sys.executable,
            f"{INTERRUPTED}interrupt()\nprint('goes on')",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "goes on\n")
