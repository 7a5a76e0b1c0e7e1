"""Lines around invocations, services and placement: what a study file may say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.model.service import Placement, Readiness
from tests.studyfile.studies import SMALL, complaints, read

SERVED = (
    SMALL
    + """\
services = ["db", "proxy"]
setup = ["load --port {port.proxy} --rows {rows}"]
prepare = ["sync"]
conclude = ["sync"]
cleanup = ["rm -rf {data.db}/more"]
measure = "server"
drop_caches = true
cpus = "0,2-3"
nice = -3
numa = 1
parameters = { rows = [1, 2] }

[service.db]
command = "server --data {data} --port {port}"

[service.proxy]
command = "proxy {port} {port.db}"
ready = { port = 8080 }
timeout = "5s"
restart = "each"
cpus = 1
"""
)


def test_a_fixture_is_read(tmp_path: Path) -> None:
    study = read(tmp_path, SERVED)
    benchmark = study.benchmarks["it"]
    assert benchmark.services == ("db", "proxy")
    assert benchmark.setup == ("load --port {port.proxy} --rows {rows}",)
    assert benchmark.placement == Placement(cpus=(0, 2, 3), nice=-3, numa=(1,))
    assert list(benchmark.measured)[:3] == ["wall", "cpu", "peak_memory_tree"]
    assert study.services["db"].readiness == Readiness(port="{port}")
    assert study.services["proxy"].ready == Readiness(port=8080)
    assert study.services["proxy"].cpus == (1,)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('["db", "proxy"]', '["db", "proxi"]', 'no service "proxi"; did you mean "proxy"?'),
        ('["db", "proxy"]', '["db", "db"]', '"db" occurs twice; remove one of them'),
        ("{port.proxy}", "{port}", "unknown placeholder {port}; "),
        ("rows = [1, 2]", '"port.db" = [1]', '"port.db" is not a valid name here'),
        ('cpus = "0,2-3"', 'cpus = "all"', '"all" is not a list of numbers; write numbers and ranges'),
        ('cpus = "0,2-3"', 'cpus = "3-2"', '"3-2" has a range that ends before it begins: 3-2'),
        ("nice = -3", "nice = 20", "20 is out of range; write a number between -21 and 20"),
        ("ready = { port = 8080 }", "ready = { port = 80800 }", '"80800" is not a port; write 1 to 65535'),
        (
            "ready = { port = 8080 }",
            'ready = { line = "(" }',
            '"(" is not a regular expression: missing ), unterminated subpattern at position 0',
        ),
        (
            "ready = { port = 8080 }",
            'ready = { line = "a", command = "b" }',
            "has line and command; write only one of them",
        ),
        (
            'command = "proxy {port} {port.db}"\nready = { port = 8080 }',
            'command = "proxy"',
            "missing: how to notice that the service is ready",
        ),
        ('timeout = "5s"', 'stop = "SIGSTOPP"', '"SIGSTOPP" is not a signal; write, for example, SIGTERM'),
        ('["sync"]\nconclude', '["sync {there}"]\nconclude', "unknown placeholder {there}; "),
        ("drop_caches = true", 'counters = ["locks"]', '"locks" is counted in the command'),
        (
            'services = ["db", "proxy"]',
            "services = []",
            '"server" needs services, whose processes it measures',
        ),
    ],
)
def test_a_fixture_that_cannot_run_is_refused(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert SERVED.count(old) == 1
    found = complaints(tmp_path, SERVED.replace(old, new))
    assert any(complaint in each for each in found), found
