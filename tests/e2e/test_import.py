"""Samples of other tools are shown, reported, compared and exported, and are never pooled with perftrail's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from perftrail.cli.main import main
from tests.formats.fixtures import DATA


def perftrail(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(str(ended.value.code))


def write_nightly_results(directory: Path) -> list[str]:
    """Write hyperfine's results of ten nights; from the seventh on the command takes a fifth longer."""
    names = []
    for night in range(1, 11):
        level = 0.1 if night < 7 else 0.12
        times = [level * (1.0 + 0.002 * ((run * 7 + night * 3) % 5 - 2)) for run in range(10)]
        result = {"command": "tool --all <b>", "mean": level, "user": 0.01, "system": 0.01, "times": times}
        names.append(str(directory / f"night-{night}.json"))
        Path(names[-1]).write_text(json.dumps({"results": [result]}))
    return names


def test_a_series_of_results_shows_where_it_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = str(tmp_path / "study")
    assert perftrail("import", *write_nightly_results(tmp_path), "-o", study) == 0
    output = capsys.readouterr().out
    assert "10 revisions, 1 benchmark" in output
    assert "20 summary values among these: no samples, so no interval" in output
    assert perftrail("show", study, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["revision"] for row in rows] == [f"night-{night}" for night in range(1, 11)]
    assert [row["revision"] for row in rows if row["change"]] == ["night-7"]
    assert rows[0]["flags"] == []
    assert perftrail("show", study, "--metric", "user") == 0
    assert "summary, one value, no interval" in capsys.readouterr().out


def test_the_report_names_the_origin_of_imported_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = str(tmp_path / "study")
    assert perftrail("import", *write_nightly_results(tmp_path), "-o", study) == 0
    assert perftrail("report", study, "--format", "markdown") == 0
    output = capsys.readouterr().out
    assert "night-7 changed command.wall: 20 % more" in output
    assert "perftrail measured none of this" in output
    assert "10 files \\(hyperfine\\)" in output
    assert "perftrail run" not in output


def test_two_results_are_compared_without_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = write_nightly_results(tmp_path)
    study = str(tmp_path / "study")
    assert perftrail("import", names[0], names[9], "-o", study) == 0
    assert perftrail("report", study, "--format", "markdown") == 0
    output = capsys.readouterr().out
    assert "| subject | metric | effect | interval | values | verdict |" in output
    assert "| night-10 | command.wall | × 1.200 | 1.195 to 1.205 | 10 | worse |" in output
    assert "pairs" not in output


@pytest.mark.parametrize(
    ("files", "benchmark"),
    [
        (["asv"], "time_"),
        (["jmh"], ""),
        (["pyperf"], ""),
        (["go/count.txt"], "Sum"),
    ],
)
def test_results_of_real_tools_are_shown(
    files: list[str], benchmark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = str(tmp_path / "study")
    assert perftrail("import", *(str(DATA / file) for file in files), "-o", study, "--json") == 0
    imported = json.loads(capsys.readouterr().out)
    assert imported["values"] > 0
    assert any(benchmark in name for name in imported["benchmarks"])
    assert perftrail("show", study, "--json") == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", [("run",), ("find",)])
def test_an_imported_study_measures_nothing(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = str(tmp_path / "study")
    assert perftrail("import", *write_nightly_results(tmp_path)[:2], "-o", study) == 0
    assert perftrail(*words, study) == 2
    assert "imported from other tools" in capsys.readouterr().err


def test_an_export_of_several_revisions_needs_a_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = str(tmp_path / "study")
    assert perftrail("import", *write_nightly_results(tmp_path)[:2], "-o", study) == 0
    assert perftrail("export", study, "--format", "hyperfine") == 2
    assert "this format writes 2 files; name their directory with -o DIR" in capsys.readouterr().err
    assert perftrail("export", study, "--format", "hyperfine", "--only", "revision=night-1") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert len(result["times"]) == 10
    assert perftrail("export", study, "--format", "bmf", "-o", str(tmp_path / "out"), "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 2


def test_no_file_is_written_or_read_through_what_a_repository_may_contain_in_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, outside = tmp_path / "study", tmp_path / "outside"
    outside.mkdir()
    assert perftrail("import", *write_nightly_results(tmp_path)[:2], "-o", str(study)) == 0
    (tmp_path / "samples.csv").symlink_to(outside / "new")
    assert perftrail("export", str(study), "--format", "csv", "-o", str(tmp_path / "samples.csv")) == 2
    assert "t is a symbolic link" in capsys.readouterr().err
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "charts").symlink_to(outside)
    assert perftrail("report", str(study), "--format", "markdown", "-o", str(tmp_path / "page")) == 2
    assert "t is a symbolic link" in capsys.readouterr().err
    (tmp_path / "linked").symlink_to(outside)
    for words in (
        ("export", str(study), "--format", "csv", "-o"),
        ("report", str(study), "--format", "markdown", "-o"),
        ("import", str(tmp_path / "night-1.json"), "-o"),
    ):
        assert perftrail(*words, str(tmp_path / "linked")) in (1, 2)
        assert "t is a symbolic link" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "samples").symlink_to(outside)
    assert perftrail("import", str(tmp_path / "night-1.json"), "-o", str(tmp_path / "other")) == 1
    assert "t is a symbolic link" in capsys.readouterr().err
    os.mkfifo(tmp_path / "night-11.json")
    assert perftrail("import", str(tmp_path / "night-11.json"), "-o", str(study)) == 2
    assert "t is not a regular file" in capsys.readouterr().err
    assert not list(outside.iterdir())


def test_an_export_names_the_metrics_that_are_missing_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = str(tmp_path / "study")
    assert perftrail("import", write_nightly_results(tmp_path)[0], "-o", study) == 0
    for form, missing in (("lnt", "user and system"), ("bmf", "user and system")):
        capsys.readouterr()
        assert perftrail("export", study, "--format", form) == 0
        assert (
            capsys.readouterr().err
            == f"Missing in {form}: {missing}. The format csv contains every metric.\n"
        )
    for form in ("csv", "hyperfine"):
        assert perftrail("export", study, "--format", form) == 0
        assert capsys.readouterr().err == ""


def test_a_study_of_samples_has_no_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "perftrail.toml").write_text(
        '[source]\nkind = "samples"\nlocation = "*.json"\nformat = "hyperfin"\nrange = "a..b"\n'
        '[build]\nsteps = ["make"]\n'
    )
    assert perftrail("show", str(tmp_path)) == 2
    output = capsys.readouterr().err
    assert "5: source.range: does not apply to a samples source, only to git, fossil or release" in output
    assert "6: build: does not apply to imported samples; remove it" in output
    (tmp_path / "perftrail.toml").write_text(
        '[source]\nkind = "samples"\nlocation = "*.json"\nformat = "hyperfin"\n'
    )
    assert perftrail("show", str(tmp_path)) == 2
    assert '4: source.format: no format "hyperfin"; did you mean "hyperfine"?' in capsys.readouterr().err


def test_an_import_that_was_killed_while_it_wrote_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, study = write_nightly_results(tmp_path), tmp_path / "study"
    write_bytes, written = Path.write_bytes, []

    def die_in_the_second(path: Path, content: bytes) -> int:
        written.append(path)
        if len(written) < 2:
            return write_bytes(path, content)
        write_bytes(path, content[: len(content) // 2])
        os._exit(9)

    process = os.fork()
    if process == 0:
        monkeypatch.setattr(Path, "write_bytes", die_in_the_second)
        try:
            perftrail("import", *names, "-o", str(study))
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9
    assert perftrail("import", *names, "-o", str(study)) == 0
    assert {path.name for path in study.iterdir()} == {"perftrail.toml", "samples"}
    for name in names:
        assert (study / "samples" / Path(name).name).read_bytes() == Path(name).read_bytes()


def test_the_files_that_a_result_names_are_imported_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert perftrail("import", str(DATA / "otava/otava.yaml"), "-o", str(tmp_path / "otava")) == 0
    assert "3 files added" in capsys.readouterr().out
    assert perftrail("show", str(tmp_path / "otava")) == 0
    # as Otava's own analysis of these tables
    output = capsys.readouterr().out
    assert "sort.latency: 20 % more" in output
    assert "sort.throughput: 10 % less" in output
    assert output.count("at c0003") == 2
    assert perftrail("import", str(DATA / "nvbench/out.json"), "-o", str(tmp_path / "nvbench")) == 0
    assert (tmp_path / "nvbench/samples/out.json-bin/1.bin").exists()
    capsys.readouterr()
    assert perftrail("show", str(tmp_path / "nvbench"), "--metric", "wall", "--json") == 0
    assert [row["count"] for row in json.loads(capsys.readouterr().out)] == [7, 5, 1]


def test_an_export_to_otava_is_imported_with_its_medians(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, exported = str(tmp_path / "study"), str(tmp_path / "exported")
    assert perftrail("import", *write_nightly_results(tmp_path), "-o", study) == 0
    assert perftrail("export", study, "--format", "otava", "-o", exported, "--metric", "wall") == 0
    assert perftrail("import", f"{exported}/otava.yaml", "-o", str(tmp_path / "again")) == 0
    capsys.readouterr()
    assert perftrail("show", str(tmp_path / "again"), "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["revision"] for row in rows if row["change"]] == ["night-7"]
    assert [row["estimate"]["value"] for row in rows] == pytest.approx([0.1] * 6 + [0.12] * 4, rel=1e-3)
