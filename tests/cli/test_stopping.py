"""A command that runs until it is stopped."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from perftrail.cli import options
from perftrail.cli.options import STOP_SIGNALS, Stop, stopped_like_ctrl_c


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
