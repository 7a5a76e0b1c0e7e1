"""What `--only` chooses: of each name one pattern, of all names together."""

from __future__ import annotations

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.plan import Cell
from perftrail.model.subject import Revision, Subject
from perftrail.results.selection import Selection


def cell(benchmark: str, threads: int) -> Cell:
    subject = Subject(revision=Revision(id="r" * 40), variant="plain")
    return Cell(subject=subject, benchmark=benchmark, point=Point(values=(("threads", threads),)))


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ((), {"list 1", "list 2", "dict 1", "dict 2"}),
        ((("benchmark", "list"), ("benchmark", "dict")), {"list 1", "list 2", "dict 1", "dict 2"}),
        ((("benchmark", "list"), ("threads", "2")), {"list 2"}),
        ((("benchmark", "list"), ("benchmark", "d*"), ("threads", "1,3")), {"list 1", "dict 1"}),
        ((("benchmark", "string"),), set()),
    ],
)
def test_of_each_name_one_pattern_must_match(rules: tuple[tuple[str, str], ...], wanted: set[str]) -> None:
    cells = {f"{name} {threads}": cell(name, threads) for name in ("list", "dict") for threads in (1, 2)}
    assert {name for name, each in cells.items() if Selection(rules=rules).includes(each)} == wanted
