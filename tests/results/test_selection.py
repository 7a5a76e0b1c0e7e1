"""The selection by `--only`: one pattern for each name, or for all names together."""

from __future__ import annotations

import pytest

from perftrail.errors import UsageError
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.plan import Cell
from perftrail.model.subject import Revision, Subject
from perftrail.results.selection import Selection, select
from tests.measure.fake_session import a_study


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("benchmark=lits", '--only benchmark=lits: no benchmark "lits"; did you mean "list"?'),
        ("threads=3,5", '--only threads=3,5: no threads "3,5"; choose 1 or 2'),
        ("variant=plane", '--only variant=plane: no variant "plane"; did you mean "plain"?'),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(text: str, message: str) -> None:
    study = a_study(benchmarks={"list": Benchmark(command="{build}/list", parameters={"threads": (1, 2)})})
    with pytest.raises(UsageError) as refused:
        select(study, (text,))
    assert str(refused.value) == message
    assert select(study, ("threads=2,3", "benchmark=l*")).rules == (("threads", "2,3"), ("benchmark", "l*"))
