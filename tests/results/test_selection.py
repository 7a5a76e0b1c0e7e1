"""The selection by `--only`: one pattern for each name, or for all names together."""

from __future__ import annotations

import pytest

from perftrail.errors import UsageError
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.json_data import Json
from perftrail.model.plan import Cell
from perftrail.model.store_records import SearchRecord
from perftrail.model.subject import Revision, Subject
from perftrail.results.changes import searched_targets
from perftrail.results.selection import Selection, metric_targets, select
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


def test_a_metric_selects_its_points_as_find_and_compare_name_them() -> None:
    parameters: dict[str, tuple[int, ...]] = {"threads": (1, 2)}
    study = a_study(
        benchmarks={
            name: Benchmark(command=f"{{build}}/{name}", parameters=parameters) for name in ("list", "dict")
        }
    )
    cells = {f"{name} {threads}": cell(name, threads) for name in ("list", "dict") for threads in (1, 2)}

    def selected(*metrics: str) -> set[str]:
        selection = Selection().at(metric_targets(study, metrics))
        return {name for name, each in cells.items() if selection.includes(each)}

    assert selected() == set(cells)
    assert selected("list.cpu[threads=2]") == {"list 2"}
    assert selected("list.cpu[threads=2]", "dict.wall") == {"list 2", "dict 1", "dict 2"}
    with pytest.raises(UsageError, match=r"--metric list\.cpus: no benchmark has"):
        metric_targets(study, ("list.cpus",))


def test_the_stored_answers_that_name_a_revision_select_their_points() -> None:
    study = a_study(benchmarks={"list": Benchmark(command="{build}/list", parameters={"threads": (1, 2, 4)})})

    def searched(key: str, *answers: dict[str, Json]) -> SearchRecord:
        answer: dict[str, Json] = {"metrics": list(answers)} if len(answers) > 1 else answers[0]
        return SearchRecord(key=key, machine="m", question={}, started="", answer=answer)

    def found(metric: str, *revisions: str, inside: Json = None) -> dict[str, Json]:
        return {
            "metric": metric,
            "variant": "plain",
            "changes": [{"revisions": list(revisions), "inside": inside}],
        }

    records = [
        searched("a", found("list.cpu[threads=1]", "culprit")),
        searched(
            "b",
            found("list.cpu[threads=2]", "merge", inside={"revisions": ["culprit"]}),
            found("list.wall[threads=4]", "other"),
        ),
        searched("c", found("gone.cpu", "culprit")),
    ]
    names = [each.name for each in searched_targets(study, records, "culprit")]
    assert names == ["list.cpu[threads=1]", "list.cpu[threads=2]"]
    assert searched_targets(study, records, "innocent") == ()
