"""An export that is imported again has the same content, unless the format does not store it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perftrail import studyfile
from perftrail.errors import NoAnswer, SourceError, UsageError
from perftrail.formats import tidy_csv
from perftrail.formats.document import FileContext
from perftrail.formats.exports import FORMATS, write
from perftrail.model.exchange import Series
from perftrail.model.measurement import Outcome
from perftrail.results.rows import Row, rows
from perftrail.results.samples import samples_view
from perftrail.verbs import export
from perftrail.verbs.export import exported, with_shown_metrics
from perftrail.verbs.import_ import import_files
from tests.fakes.memory_store import MemoryStore

TABLE = """\
revision,variant,benchmark,threads,kind,metric,value,unit,invocation,started,machine,flags,label,time,better
v1,plain,mt,1,a,wall,0.1234567890123,s,0,2026-01-02T00:00:00+00:00,quiet,,,2026-01-01T00:00:00+00:00,lower
v1,plain,mt,1,a,wall,0.125,s,1,2026-01-02T00:00:01+00:00,quiet,,,2026-01-01T00:00:00+00:00,lower
v1,plain,mt,1,a,peak_memory,1048576.0,B,0,2026-01-02T00:00:00+00:00,quiet,,,2026-01-01T00:00:00+00:00,lower
v1,plain,mt,2,b c,wall,0.3,s,0,2026-01-02T00:00:00+00:00,quiet,,,2026-01-01T00:00:00+00:00,lower
v1,plain,mt,2,b c,rate,7.0,1/s,0,2026-01-02T00:00:00+00:00,quiet,,,2026-01-01T00:00:00+00:00,higher
v1,pooled,mt,1,a,wall,0.2,s,0,2026-01-02T00:00:00+00:00,quiet,,,2026-01-01T00:00:00+00:00,lower
v2,plain,mt,1,a,wall,0.5,s,0,2026-02-02T00:00:00+00:00,quiet,,,2026-02-01T00:00:00+00:00,lower
v2,plain,other,,,wall,1e-09,s,0,2026-02-02T00:00:00+00:00,quiet,,,2026-02-01T00:00:00+00:00,lower
"""

Held = Mapping[tuple[str, ...], tuple[float, ...]]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "mine.csv").write_text(TABLE)
    import_files([tmp_path / "mine.csv"], tmp_path / "study")
    return tmp_path / "study"


def files(study: Path, format: str) -> Mapping[str, bytes]:
    view = samples_view(studyfile.load(str(study)))
    samples = exported(view)
    if FORMATS[format].metrics == "shown":
        samples = with_shown_metrics(samples, view)
    return write(format, samples, view.study)


def again(study: Path, format: str, target: Path, *, directory: bool = True) -> Path:
    """Export a study, and import the file as another one."""
    written = target / f"written-{format}"
    for name, content in files(study, format).items():
        (written / name).parent.mkdir(parents=True, exist_ok=True)
        (written / name).write_bytes(content)
    chosen = [written] if directory else sorted(written.iterdir())
    import_files(chosen, target / f"again-{format}")
    return target / f"again-{format}"


def held(study: Path) -> Held:
    return {
        (
            str(each.subject),
            each.benchmark,
            str(each.point),
            each.metric,
            each.unit,
            each.better,
            each.machine,
            each.subject.revision.time,
        ): each.numbers
        for each in exported(samples_view(studyfile.load(str(study))))
    }


def flagged(study: Path) -> dict[tuple[str, float], tuple[str, ...]]:
    return {
        (each.metric, value.value): value.flags
        for each in exported(samples_view(studyfile.load(str(study))))
        for value in each.values
    }


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_what_is_a_mean_of_others_stays_marked_as_one(tmp_path: Path, format: str) -> None:
    result = {"command": "tool", "mean": 0.2, "user": 0.05, "system": 0.01, "times": [0.1, 0.3]}
    (tmp_path / "night.json").write_text(json.dumps({"results": [result]}))
    import_files([tmp_path / "night.json"], tmp_path / "study")
    before = flagged(tmp_path / "study")
    assert before == {
        ("wall", 0.1): (),
        ("wall", 0.3): (),
        ("user", 0.05): ("summary",),
        ("system", 0.01): ("summary",),
    }
    assert flagged(again(tmp_path / "study", format, tmp_path)) == before


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_tables_keep_everything(study: Path, tmp_path: Path, format: str) -> None:
    before = held(study)
    assert len(before) == 7
    assert held(again(study, format, tmp_path)) == before


def test_hyperfine_keeps_the_times_and_the_memory(study: Path, tmp_path: Path) -> None:
    found = held(again(study, "hyperfine", tmp_path))
    times = {(key[0], key[2]): values for key, values in found.items() if key[3] == "wall"}
    assert times == {
        ("v1 (mt)", "threads=1 kind=a"): (0.1234567890123, 0.125),
        ("v1 (mt)", "threads=2 kind=b c"): (0.3,),
        ("v1 (mt (pooled))", "threads=1 kind=a"): (0.2,),
        ("v2 (mt)", "threads=1 kind=a"): (0.5,),
        ("v2 (other)", "threads= kind="): (1e-09,),
    }
    assert [values for key, values in found.items() if key[3] == "peak_memory"] == [(1048576.0,)]


def test_asv_keeps_every_digit_of_every_value(study: Path, tmp_path: Path) -> None:
    found = held(again(study, "asv", tmp_path))
    assert sorted(values for values in found.values()) == sorted(
        values for key, values in held(study).items() if key[3] in ("wall", "rate")
    )
    assert {key[4] for key in found} == {"s", "1/s"}


def test_bmf_contains_medians_and_bounds_only_where_there_are_samples(study: Path) -> None:
    found = json.loads(files(study, "bmf")["v1.json"])
    assert found["mt threads=1 kind=a"]["wall (s)"] == {
        "value": pytest.approx(0.12422839450615),
        "lower_value": 0.1234567890123,
        "upper_value": 0.125,
    }
    assert found["mt threads=2 kind=b c"]["wall (s)"] == {"value": 0.3}


def test_what_is_better_big_is_apart_for_the_github_action(study: Path) -> None:
    written = files(study, "github-action-benchmark")
    assert [each["name"] for each in json.loads(written["v1.bigger-is-better.json"])] == [
        "mt threads=2 kind=b c rate"
    ]
    smaller = json.loads(written["v1.smaller-is-better.json"])
    assert {"name", "unit", "value", "extra"} <= set(smaller[0])
    assert "range" in smaller[0]
    assert "range" not in smaller[1]


def test_lnt_has_time_and_memory_of_each_benchmark(study: Path) -> None:
    found = json.loads(files(study, "lnt")["v1.json"])
    assert found["format_version"] == "2"
    assert found["run"]["start_time"] == "2026-01-01T00:00:00"
    assert found["tests"][0] == {
        "name": "mt threads=1 kind=a",
        "execution_time": [0.1234567890123, 0.125],
        "mem_bytes": [1048576.0],
    }


def test_otava_has_a_table_for_each_metric_in_the_order_of_the_history(study: Path) -> None:
    written = files(study, "otava")
    assert written["mt-threads-1-kind-a-wall.csv"].decode().splitlines() == [
        "time,commit,value",
        "2026-01-01T00:00:00+00:00,v1,0.12422839450615",
        "2026-02-01T00:00:00+00:00,v2,0.5",
    ]
    assert set(written) > {"otava.yaml"}


def test_a_file_is_never_written_over_by_another_of_its_name(study: Path, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "mine.csv").write_text(TABLE.replace("0.5", "0.6"))
    with pytest.raises(UsageError, match="exists with other content"):
        import_files([tmp_path / "else" / "mine.csv"], study)


def test_files_are_added_to_a_study_that_is_there(study: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text(TABLE.replace("v2", "v3").replace("2026-02", "2026-03"))
    begun = import_files([tmp_path / "more.csv"], study)
    assert (begun.added, begun.revisions) == (("more.csv",), ("v1", "v2", "v3"))
    assert import_files([tmp_path / "more.csv"], study).added == ()


def test_a_file_that_no_tool_wrote_is_refused_before_anything_is_copied(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear all,\n")
    with pytest.raises(SourceError, match=r"letter\.txt: unknown format"):
        import_files([tmp_path / "letter.txt"], tmp_path / "study")
    assert not (tmp_path / "study").exists()


def everything(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in directory.rglob("*")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TABLE.replace("0.125", "fast"), 'line 3: value: "fast" is not a finite number'),
        (TABLE.replace(",wall,0.5,s,", ",wall,0.5,ms,"), "in two units"),
    ],
)
def test_nothing_is_left_of_an_import_that_fails(
    study: Path, tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "one.csv").write_text(TABLE.replace("v2", "v3"))
    (tmp_path / "wrong" / "two.csv").write_text(text)
    before = everything(tmp_path)
    for target in (study, tmp_path / "fresh" / "study"):
        with pytest.raises(SourceError, match=expected):
            import_files([tmp_path / "wrong" / "one.csv", tmp_path / "wrong" / "two.csv"], target)
        assert everything(tmp_path) == before


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []

    def counted(content: bytes, context: FileContext) -> tuple[Series, ...]:
        lengths.append(len(content))
        return read(content, context)

    read = tidy_csv.read
    monkeypatch.setattr(tidy_csv, "read", counted)
    (tmp_path / "mine.csv").write_text(TABLE)
    import_files([tmp_path / "mine.csv"], tmp_path / "study")
    assert lengths == [len(TABLE)]


def test_the_content_is_that_of_any_store(study: Path) -> None:
    view = samples_view(studyfile.load(str(study)))
    machine, runnables = view.machine.id, view.store.runnables()
    keys = [each.key for each in runnables]
    kept = MemoryStore()
    kept.add_machine(view.machine)
    for runnable in runnables:
        kept.add_runnable(runnable)
    for outcomes in view.store.outcomes(keys, machine).values():
        kept.add_all(outcomes)
    for metrics in ([], ["wall"], ["rate", "wall", "peak_memory"]):
        assert view.store.samples(keys, machine, metrics) == kept.samples(keys, machine, metrics)
    assert view.store.revisions() == kept.revisions() == {"v1", "v2"}
    assert view.store.samples(keys, "another", ["wall"]) == {}
    assert set(view.store.outcomes(keys, "another").values()) == {()}


def test_a_metric_has_rows_only_where_it_was_measured(study: Path) -> None:
    view = samples_view(studyfile.load(str(study)))

    def memory(found: Sequence[Row]) -> list[str]:
        return [f"{row.subject} {row.point}" for row in found if row.metric == "peak_memory"]

    assert memory(rows(view, optional=("peak_memory",))) == ["v1 threads=1 kind=a"]
    assert len(memory(rows(view, metrics=("peak_memory",)))) == 5


def test_a_choice_that_fits_nothing_has_no_export(study: Path) -> None:
    view = samples_view(studyfile.load(str(study)))
    with pytest.raises(NoAnswer, match="no sample matches"):
        exported(view, only=["revision=v9"])
    with pytest.raises(UsageError, match='no metric "wal"; did you mean "wall"'):
        exported(view, metrics=["wal"])


def test_the_outcomes_of_few_cells_are_in_memory_at_a_time(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = samples_view(studyfile.load(str(study)))
    whole = exported(view)
    read: list[int] = []
    outcomes = type(view.store).outcomes

    def counted(store: Any, runnables: Sequence[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        read.append(len(runnables))
        return outcomes(store, runnables, machine)

    monkeypatch.setattr(type(view.store), "outcomes", counted)
    monkeypatch.setattr(export, "CELLS_AT_ONCE", 2)
    assert exported(view) == whole
    assert max(read) == 2
