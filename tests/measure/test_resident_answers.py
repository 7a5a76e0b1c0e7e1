"""Answers of resident processes are untrusted: odd ones are failures of an invocation."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

import pytest

from perftrail.measure.resident import Answer, ResidentProcess


def answer_of(line: str) -> Answer:
    """Return what perftrail reads from a process that answers with this line."""
    responses, written = os.pipe2(os.O_NONBLOCK)
    with ExitStack() as stack:
        for number in (responses, written):
            stack.callback(os.close, number)
        os.write(written, f"{line}\n".encode())
        process = ResidentProcess(
            seed=1,
            _stack=ExitStack(),
            _thread=threading.Thread(),
            _ended=[],
            _requests=written,
            _responses=responses,
        )
        return process.ask("measure", timeout_seconds=5.0)


@pytest.mark.parametrize("line", ["[" * 5000, '{"cpu": 1' + "0" * 5000 + "}", "1.2.3", "[1, 2, 3]"])
def test_an_answer_that_is_no_json_object_is_a_failure(line: str) -> None:
    assert answer_of(line).failure.startswith("its answer is not ")


@pytest.mark.parametrize("cpu", ["1" + "0" * 400, "NaN", "1e999", "true", '"1"', "-1", "null", "[]"])
def test_an_odd_cpu_time_is_not_used(cpu: str) -> None:
    answer = answer_of(f'{{"cpu": {cpu}, "output": "x"}}')
    assert (answer.output, answer.failure, answer.ran.cpu_seconds) == ("x", "", 0.0)


def test_a_cpu_time_is_that_of_the_request() -> None:
    assert answer_of('{"cpu": 0.5}').ran.cpu_seconds == 0.5
