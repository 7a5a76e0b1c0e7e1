"""Opening a study from Python: a fast import, no effect on a running measurement, and clear errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import perftrail
from perftrail.errors import NoAnswer, StudyError, UsageError
from perftrail.results_directory import DATABASE
from perftrail.store import lock_for_writing, open_store
from perftrail.store.databases import to_write
from tests.notebook.example import write_study

TABLES = ("samples", "estimates", "changes", "comparisons", "answers")


def python(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


def files(directory: Path) -> dict[Path, bytes]:
    """Every file below a directory except the index of SQLite's journal, which readers write too."""
    return {
        file: file.read_bytes()
        for file in directory.rglob("*")
        if file.is_file() and not file.name.endswith("-shm")
    }


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = [
        "numpy",
        "pyarrow",
        "sqlalchemy",
        "scipy",
        "vl_convert",
        "click",
        "cattrs",
        "perftrail.studyfile",
    ]
    done = python(f"import sys, perftrail; print([name for name in {heavy} if name in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_without_pyarrow_the_remedy_is_reported(tmp_path: Path) -> None:
    write_study(tmp_path / "study")
    done = python(
        f"import sys; sys.modules['pyarrow'] = None; import perftrail; perftrail.open({str(tmp_path / 'study')!r})"
    )
    assert done.stderr.splitlines()[-1] == (
        "perftrail.errors.UsageError: perftrail.open needs PyArrow: pip install 'perftrail[notebook]'"
    )


def test_a_study_that_was_not_measured_has_empty_tables_and_stays_untouched(tmp_path: Path) -> None:
    write_study(tmp_path / "study")
    before = files(tmp_path)
    study = perftrail.open(tmp_path / "study")
    assert [getattr(study, name)().num_rows for name in TABLES] == [0] * len(TABLES)
    assert study.charts() == {}
    with pytest.raises(NoAnswer, match="perftrail run"):
        study.chart()
    assert files(tmp_path) == before
    assert not study.results.exists()


def test_an_empty_table_has_the_columns_of_a_full_one(measured: Path, tmp_path: Path) -> None:
    write_study(tmp_path / "study")
    full, empty = perftrail.open(measured), perftrail.open(tmp_path / "study")
    for name in TABLES:
        assert getattr(empty, name)().schema.equals(getattr(full, name)().schema), name


def test_a_file_with_mistakes_reports_each_with_its_line(tmp_path: Path) -> None:
    write_study(tmp_path / "study")
    file = tmp_path / "study" / "perftrail.toml"
    file.write_text(file.read_text().replace("rebuild = false", "rebuilt = false").replace("15", '"x"'))
    with pytest.raises(StudyError, match=r"perftrail.toml:10: variants.far.rebuilt: .*did you mean"):
        perftrail.open(file)


def test_results_may_live_elsewhere(measured: Path, tmp_path: Path) -> None:
    write_study(tmp_path / "study")
    study = perftrail.open(tmp_path / "study", store=measured / ".perftrail")
    assert study.results == measured / ".perftrail"
    assert study.answers().num_rows == 0


def test_looking_neither_waits_for_a_writer_nor_changes_anything(measured: Path) -> None:
    database = str(measured / ".perftrail" / DATABASE)
    with lock_for_writing(database, wait=False), open_store(database, access="write") as store:
        rows = perftrail.open(measured).samples().num_rows
        [runnable, *_] = store.runnables()
        before = files(measured)
        writer = to_write(database)
        with writer.writing.begin():  # a transaction that is under way, as of a measurement
            assert perftrail.open(measured).samples().num_rows == rows
            assert perftrail.open(measured).estimates().num_rows == 8
        assert files(measured) == before
        writer.close()
        store.add_runnable(runnable)


@pytest.mark.parametrize("name", ["samples", "estimates", "changes"])
def test_an_unknown_metric_is_refused_with_the_near_miss(measured: Path, name: str) -> None:
    with pytest.raises(UsageError, match='no metric "wal"; did you mean "wall"'):
        getattr(perftrail.open(measured), name)(metrics=["wal"])


def test_one_name_is_no_list_of_names(measured: Path) -> None:
    with pytest.raises(UsageError, match=r"\['wall'\] for one"):
        perftrail.open(measured).samples(metrics="wall")
