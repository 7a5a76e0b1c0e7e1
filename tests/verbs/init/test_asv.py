"""Translation of asv's configuration: with a real repository, and hostile or damaged files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.errors import StudyError, UsageError
from perftrail.formats.commented_json import NotJson, parse
from perftrail.model.study import Study
from perftrail.verbs.init.asv import AsvStudy, write_asv_study
from tests.sources.repositories import Repository

OWN = f"3.{sys.version_info.minor}"

CONFIGURATION = """\
{
    // comments, a trailing comma and a text in single quotes
    "version": 1,
    'project': "demo",
    "repo": "repository", /* next to
                             this file */
    "benchmark_dir": "bench",
%s
}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    repository = Repository(tmp_path / "repository")
    repository.commit({"setup.py": "from setuptools import setup\nsetup(name='demo')\n"})
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").write_text("def track_it(): return 1\n")
    return tmp_path


@pytest.fixture
def with_uv(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path_factory.mktemp("programs")
    (programs / "uv").write_text("#!/bin/sh\n")
    (programs / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


@pytest.fixture
def without_uv(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path_factory.mktemp("programs")
    for name in ("git", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))


@pytest.fixture
def with_python(
    without_uv: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This Python, and as pyenv has it, a program for another version that does not run."""
    programs = tmp_path_factory.mktemp("pythons")
    (programs / f"python{OWN}").symlink_to(sys.executable)
    (programs / "python2.1").write_text("#!/bin/sh\necho 'python2.1: command not found' >&2\nexit 127\n")
    (programs / "python2.1").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


def translated(place: Path, more: str = "") -> tuple[Study, AsvStudy]:
    (place / "asv.conf.json").write_text(CONFIGURATION % more)
    written = write_asv_study(place / "asv.conf.json", output=None, force=True)
    return studyfile.load(str(written.file)), written


def mistakes(place: Path, more: str) -> list[str]:
    (place / "asv.conf.json").write_text(CONFIGURATION % more)
    with pytest.raises(StudyError) as raised:
        write_asv_study(place / "asv.conf.json", output=None, force=True)
    assert not (place / "perftrail.toml").exists()
    return [f"{each.line}: {each.key}: {each.message}" for each in raised.value.mistakes]


@pytest.mark.usefixtures("with_uv")
def test_a_configuration_becomes_a_study_with_packages_of_the_commits_date(place: Path) -> None:
    study, _ = translated(place, '"pythons": ["3.11"], "matrix": {"numpy": ["1.20"], "pip+scipy": [""]},')
    assert study.source.location == str(place / "repository")
    environment, packages, project, runner, suite = study.build.steps
    assert environment == "uv venv --quiet --python 3.11 {build}/perftrail-env"
    assert packages.endswith("--exclude-newer {date} numpy==1.20 scipy")
    assert project.endswith("--exclude-newer {date} {build}")
    assert runner.endswith("asv_runner")
    assert "{date}" not in runner
    assert suite.endswith("cp -R {study}/bench {build}/perftrail-asv/")
    assert study.suites["asv"].program == ("perftrail-env/bin/python",)
    assert study.suites["asv"].path == "perftrail-asv/bench"
    assert study.suites["asv"].timeout_seconds == 60


@pytest.mark.usefixtures("without_uv")
@pytest.mark.parametrize(("python", "dated"), [("3.12", True), ("3.8", False), ("pypy3.9", False)])
def test_pip_installs_packages_of_the_date_where_it_can(place: Path, python: str, dated: bool) -> None:
    study, written = translated(place, f'"pythons": ["{python}"],')
    assert f"{python} -m venv {{build}}/perftrail-env" in study.build.steps[0]
    assert any("--uploaded-prior-to {date}" in step for step in study.build.steps) == dated
    assert any("install uv" in note for note in written.notes) != dated


@pytest.mark.usefixtures("with_uv")
def test_each_combination_of_the_matrix_becomes_a_variant(place: Path) -> None:
    more = """"pythons": ["3.11", "3.12"], "matrix": {
        "req": {"numpy": ["1.20", null]},
        "env": {"FLAGS": ["-O2"]},
        "env_nobuild": {"THREADS": ["1", "2"]}},"""
    study, _ = translated(place, more)
    assert len(study.variants) == 8
    variant = study.variants["py3.11-numpy1.20-FLAGS-O2-THREADS1"]
    assert variant.build.env == {
        "PERFTRAIL_PYTHON": "3.11",
        "PERFTRAIL_REQUIREMENTS": "numpy==1.20",
        "FLAGS": "-O2",
    }
    assert variant.run.env == {"FLAGS": "-O2", "THREADS": "1"}
    assert study.variants["py3.12-FLAGS-O2-THREADS2"].build.env["PERFTRAIL_REQUIREMENTS"] == ""


def test_a_matrix_of_many_combinations_is_a_mistake_at_once(place: Path) -> None:
    matrix = {f"p{axis}": [str(value) for value in range(30)] for axis in range(8)}
    with pytest.raises(StudyError, match="matrix: has more than 64 combinations"):
        translated(place, f'"matrix": {json.dumps(matrix)}')


@pytest.mark.usefixtures("with_uv")
def test_commands_are_translated_and_run(place: Path, tmp_path: Path) -> None:
    more = """"pythons": ["3.11"],
        "build_command": ["return-code=any false",
            "X='$(touch hacked)' sh -c 'echo \\"$X\\" > \\"{build_cache_dir}/x.whl\\"'"],
        "install_command": ["in-dir={env_dir} cp {wheel_file} installed", "return-code=3 sh -c 'exit 3'"],"""
    study, _ = translated(place, more)
    build = tmp_path / "a build"
    (build / "perftrail-env").mkdir(parents=True)
    for step in study.build.steps[1:5]:
        line = step.replace("{build}", f"'{build}'").replace("{date}", "2024-01-01")
        subprocess.run(["sh", "-euc", line], check=True, cwd=build)
    assert (build / "perftrail-env" / "installed").read_text() == "$(touch hacked)\n"
    assert not list(build.rglob("hacked"))


@pytest.mark.usefixtures("with_uv")
def test_keys_without_a_translation_become_comments_with_the_reason(place: Path) -> None:
    _, written = translated(
        place, '"html_dir": "html", "htlm_dir": 1, "regressions_thresholds": {".*": 0.02},'
    )
    text = written.file.read_text()
    assert "# html_dir: only for asv's pages" in text
    assert '# "htlm_dir" (line 8): perftrail does not know this key; did you mean "html_dir"?' in text
    assert "threshold = 0.02" in text


@pytest.mark.usefixtures("with_uv")
def test_all_mistakes_are_reported_with_their_lines(place: Path) -> None:
    more = """\
    "pythons": ["3.11; rm -rf /", 3],
    "environment_type": "vritualenv",
    "build_command": ["python {bild_dir}", "'"],
    "matrix": {"-e": ["."], "numpy": ["$(x)"]},
    "dvcs": "hg",
    "install_timeout": -1"""
    found = mistakes(place, more)
    assert found == sorted(found, key=lambda each: int(each.split(":")[0]))
    for expected in (
        '8: pythons: "3.11; rm -rf /" is not a version of Python, for example 3.12',
        "8: pythons: must be a text in quotes",
        '9: environment_type: "vritualenv" is not known; did you mean "virtualenv"?',
        '10: build_command: "{bild_dir}": asv has no such name; did you mean "build_dir"?',
        "10: build_command: cannot be split into words: no closing quotation",
        '11: matrix.req.-e: "-e" is not the name of a package',
        '11: matrix.req.numpy: "$(x)" is not a version',
        "12: dvcs: perftrail reads git, not Mercurial",
        "13: install_timeout: must be a number of seconds above 0",
    ):
        assert any(each.startswith(expected) for each in found), (expected, found)


@pytest.mark.usefixtures("with_python")
def test_without_condas_program_and_the_matrixs_python_a_virtual_environment_of_this_python_is_used(
    place: Path,
) -> None:
    more = '"environment_type": "rattler", "pythons": ["2.1", "2.2"], "matrix": {"numpy": [], "scipy": []}'
    study, written = translated(place, more)
    (variant,) = study.variants
    assert variant == f"py{OWN}-numpy-scipy"
    assert study.variants[variant].build.env == {
        "PERFTRAIL_PYTHON": OWN,
        "PERFTRAIL_REQUIREMENTS": "numpy scipy",
    }
    assert " -m venv " in study.build.steps[0]
    notes = [each for each in written.notes if "install uv" not in each]
    assert notes == [
        'no micromamba, mamba or conda for environment_type "rattler": the study uses virtualenv',
        f"Python 2.1 or 2.2 is not installed here, or does not run; the study uses {OWN}",
    ]
    assert f"# {notes[0]}" in written.file.read_text()


@pytest.mark.usefixtures("with_python")
def test_a_python_that_does_not_run_is_not_installed(place: Path) -> None:
    study, written = translated(place, f'"pythons": ["{OWN}", "2.1"]')
    assert list(study.variants) == [f"py{OWN}"]
    assert "# python2.1 is not installed here, or does not run" in written.file.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "must be an object"),
        (b"{", "asv.conf.json:1: asv: is not valid JSON: the file ends without }"),
        (b'{\n"repo" "."}', 'asv.conf.json:2: asv: is not valid JSON: there must be a colon after "repo"'),
        (b'{"repo": \xff}', "is not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (1 << 20) + b"{}", "is larger than 1 MiB"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "asv.conf.json").write_bytes(content)
    with pytest.raises((UsageError, StudyError)) as raised:
        write_asv_study(tmp_path / "asv.conf.json", output=None, force=False)
    assert message in str(raised.value)


def test_json_may_have_comments_but_no_name_twice() -> None:
    document = parse(b"{a: [1, -2.5e3, true, null, 'it\\'s \"x\"',], /* c */ \"//\": '/*'} // end")
    assert isinstance(document.value, dict)
    values = document.value["a"].value
    assert isinstance(values, tuple)
    assert [each.value for each in values] == [1, -2500.0, True, None, 'it\'s "x"']
    assert document.value["//"].value == "/*"
    with pytest.raises(NotJson, match='"a" occurs twice'):
        parse(b'{"a": 1, "a": 2}')
    assert parse(json.dumps("\u2028 é\n").encode()).value == "\u2028 é\n"
