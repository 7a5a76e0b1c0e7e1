"""Of many revisions, `show` reports scaling and growth of the most important ones, and states how many are left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.measure.session import Session
from perftrail.model.benchmark import Benchmark
from perftrail.model.json_data import Json
from perftrail.model.measurement import Machine
from perftrail.model.recipe import Variant
from perftrail.model.store_records import SearchRecord
from perftrail.model.study import FindPolicy, Invocations, MeasurePolicy
from perftrail.model.subject import Revision
from perftrail.present.growth import print_growth
from perftrail.present.report.data import read_report_data
from perftrail.present.report.report import make_report, report_of
from perftrail.present.scaling import print_scalings
from perftrail.present.tables import print_rows
from perftrail.results.changes import FEW, revisions_to_describe
from perftrail.results.growth import growth_along
from perftrail.results.scaling import processors
from perftrail.results.selection import Selection
from perftrail.results.show import show
from perftrail.stats.growth import Order
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter
from tests.measure.fake_session import MACHINE, a_session, a_study, drain

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.model.benchmark import Value
    from perftrail.model.process import Command, Ran

HISTORY = tuple(Revision(id=f"r{number}") for number in range(9))


def a_search(answer: dict[str, Json] | None) -> SearchRecord:
    return SearchRecord(key="k", machine=MACHINE.id, question={}, started="", answer=answer)


def measured(tmp_path: Path, revisions: int) -> Session:
    """A history whose benchmark takes half as long with two threads."""
    return along(tmp_path, revisions, {"threads": (1, 2)}, seconds=lambda value: 0.1 / value)


def along(
    tmp_path: Path,
    revisions: int,
    axis: dict[str, tuple[Value, ...]],
    *,
    seconds: Callable[[int], float],
    **changes: object,
) -> Session:
    """A history whose benchmark has one parameter and takes `seconds` of its value."""
    [name] = axis
    study = a_study(
        benchmarks={"work": Benchmark(command=f"{{build}}/work {{{name}}}", parameters=axis)},
        measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0),
        **changes,
    )
    starter = FakeStarter(seconds=lambda arguments: seconds(int(arguments[1])))
    session = a_session(study, tmp_path, source=FakeSource(revisions), starter=starter)
    drain(Run(session, Selection()).events())
    return replace(session, machine=Machine(id=MACHINE.id, facts={"logical_cpus": "4"}))


def test_few_revisions_are_all_reported() -> None:
    assert revisions_to_describe(HISTORY[:FEW], []) == HISTORY[:FEW]


def test_of_many_revisions_the_ends_and_culprits_are_reported_in_order_of_history() -> None:
    found: dict[str, Json] = {"changes": [{"revisions": ["r3", "r4"]}]}
    several: dict[str, Json] = {"metrics": [{"changes": []}, {"changes": [{"revisions": ["r6"]}]}]}
    searches = [
        a_search(None),
        a_search(found),
        a_search(several),
        a_search({"changes": [{"revisions": ["gone"]}]}),
    ]
    assert [each.id for each in revisions_to_describe(HISTORY, searches)] == ["r0", "r4", "r6", "r8"]


def test_show_says_that_it_tells_how_some_of_many_revisions_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = measured(tmp_path, 6)
    session.store.open_search(a_search({"changes": [{"revisions": ["r2"]}]}))
    shown = show(session)
    print_scalings(shown.scalings())
    output = capsys.readouterr().out
    titles = [line.split(": ")[1].split()[0] for line in output.splitlines() if line.startswith("Scaling of")]
    assert titles == ["r0", "r2", "r5"]
    assert output.endswith(
        "Scaling is described for 3 of 6 revisions: the first and the last that were measured and those that a search "
        "named; "
        "--json has every one.\n"
    )
    rows = shown.as_json()
    assert [row["revision"] for row in rows if row["scaling"]] == [f"r{number}" for number in range(6)]


def test_with_few_revisions_none_is_reported_as_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_scalings(show(measured(tmp_path, FEW)).scalings())
    output = capsys.readouterr().out
    assert output.count("Scaling of work.wall with threads") == FEW
    assert "revisions:" not in output


def grown(tmp_path: Path, revisions: int, **changes: object) -> Session:
    """A history whose benchmark takes time in proportion to a size."""
    return along(tmp_path, revisions, {"size": (10, 20, 40, 80)}, seconds=lambda size: 0.01 * size, **changes)


def test_show_says_that_it_tells_how_some_of_many_revisions_grow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = show(grown(tmp_path, 6))
    print_growth(shown.growths, shown.described_growths())
    output = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in output if "along size" in line} == {"r0", "r5"}
    assert output[-1] == (
        "  Growth is described for 2 of 6 revisions: the first and the last that were measured; --json has every one."
    )
    rows = shown.as_json()
    assert {row["revision"] for row in rows if row["growth"]} == {f"r{number}" for number in range(6)}


def test_of_few_revisions_all_growth_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = show(grown(tmp_path, FEW))
    print_growth(shown.growths, shown.described_growths())
    output = capsys.readouterr().out
    assert {line.split()[0] for line in output.splitlines() if "along size" in line} == {"r0", "r1", "r2"}
    assert "revisions:" not in output


def test_a_report_shows_the_growth_of_the_same_revisions_as_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = grown(tmp_path, 6)
    shown = show(session)
    print_growth(shown.growths, shown.described_growths())
    printed = [line.strip() for line in capsys.readouterr().out.splitlines() if " along size: " in line]
    page = make_report(session, tmp_path)
    in_dashboard = report_of(read_report_data(session, tmp_path))
    assert [each.name for each in in_dashboard.sections] == [each.name for each in page.sections]
    [section] = [each for each in page.sections if each.name == "growth"]
    assert section.paragraphs[:1] == (
        "Growth is described for 2 of 6 revisions: the first and the last that were measured.",
    )
    [table] = section.tables
    walls = [(who, line) for who, line in table.rows if "wall along size" in who]
    assert [who.split()[0] for who, _ in walls] == ["r0", "r5"]
    assert [f"{who}: {line}" for who, line in walls] == [line for line in printed if ".wall along" in line]


@dataclass
class CountingStarter(FakeStarter):
    """Takes more and more time for each instruction; the processor counts them."""

    def run(self, command: Command) -> Ran:
        size = float(command.arguments[1]) if len(command.arguments) > 1 else 1.0  # a trial of the counters
        found = super().run(replace(command, arguments=(command.arguments[0], str(int(size)))))
        return replace(found, counters={"instructions_user": 1e6 * size})


def test_a_curve_of_time_knows_how_the_instructions_of_its_command_grow(tmp_path: Path) -> None:
    axis: dict[str, tuple[Value, ...]] = {"size": (100, 1_000, 10_000, 100_000, 1_000_000)}
    timed = Benchmark(command="{build}/work {size}", parameters=axis)
    study = a_study(
        benchmarks={
            "timed": timed,
            "counted": replace(timed, counters=("instructions",)),
            "other": replace(timed, command="{build}/work {size} again"),
        },
        measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0),
    )
    starter = CountingStarter(seconds=lambda arguments: 1e-6 * float(arguments[1]) ** 1.5)
    session = a_session(study, tmp_path, source=FakeSource(1), starter=starter)
    drain(Run(session, Selection()).events())
    found = {(each.largest.benchmark, each.metric): each for each in show(session).growths.curves}
    work = found["timed", "wall"].work
    assert work is not None
    assert work.order is Order.LINEAR
    assert found["other", "wall"].work is None


def test_variants_are_compared_at_the_last_revision_whichever_are_reported(
    tmp_path: Path,
) -> None:
    session = grown(tmp_path, 6, variants={name: Variant(rebuild=False) for name in ("plain", "pooled")})
    shown = show(session)
    found = growth_along(session, shown.rows, choose=lambda revisions: revisions[:1])
    assert {each.subject.revision.id for each in found.curves} == {"r0"}
    assert [each.id for each in found.measured] == [f"r{number}" for number in range(6)]
    assert {each.first.subject.revision.id for each in found.variants} == {"r5"}
    assert len(found.variants) == len(shown.growths.variants) > 0


@pytest.mark.parametrize(
    ("facts", "cores"),
    [
        ({"logical_cpus": "16", "physical_cores": "8", "virtualisation": "none"}, 8),
        ({"logical_cpus": "16", "physical_cores": "16", "virtualisation": "none"}, 16),
        ({"logical_cpus": "16", "physical_cores": "8", "virtualisation": "kvm"}, 8),
        ({"logical_cpus": "16", "physical_cores": "16", "virtualisation": "kvm"}, None),
        ({"logical_cpus": "16", "virtualisation": "none"}, None),
        ({"logical_cpus": "16", "physical_cores": "8", "virtualisation": "none", "cpu_quota": "2.5"}, 2),
    ],
)
def test_cores_are_known_where_the_machine_shows_which_processors_share_one(
    facts: dict[str, str], cores: int | None
) -> None:
    assert processors(Machine(id=MACHINE.id, facts=facts)).cores == cores


def test_the_metrics_that_find_searches_are_shown(tmp_path: Path) -> None:
    study = replace(a_study(), find=FindPolicy(metric=("cpu", "peak_memory")))
    session = a_session(study, tmp_path, source=FakeSource(2), starter=FakeStarter(seconds=lambda _: 0.1))
    drain(Run(session, Selection()).events())
    assert {row.metric for row in show(session).rows} == {"cpu", "peak_memory"}
    assert {row.metric for row in show(session, metrics=["wall"]).rows} == {"wall"}
    assert {row.metric for row in read_report_data(session, tmp_path).rows} >= {"cpu", "peak_memory"}


def test_json_has_the_messages_and_marks_of_equal_builds_that_the_table_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = FakeSource(3, same_as={"r1": "r0"})
    session = a_session(
        a_study(measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0)),
        tmp_path,
        source=source,
        starter=FakeStarter(seconds=lambda _: 0.1),
        builder=FakeBuilder(source),
    )
    drain(Run(session, Selection()).events())
    shown = show(session)
    rows = shown.as_json()
    assert {(row["revision"], row["message"], row["same_build_as"]) for row in rows} == {
        ("r0", "change 0", None),
        ("r1", "change 1", "r0"),
        ("r2", "change 2", None),
    }
    print_rows(shown.rows)
    output = capsys.readouterr().out
    assert "same build as r0" in output
    assert all(row["message"] in output for row in rows)
