"""A first study of a real directory: its history, its file, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.errors import UsageError
from perftrail.model.study import Study
from perftrail.present.plan import print_first_study
from perftrail.verbs.init.draft import SourceDraft, StudyDraft
from perftrail.verbs.init.start import FirstStudy, write_first_study
from perftrail.verbs.init.study_text import study_text
from tests.needs import needs
from tests.sources.repositories import Repository
from tests.verbs.init.projects import MAIN_C, PROJECTS, Project

MAKE = PROJECTS[0].files


def begun(
    directory: Path, *, output: Path | None = None, system: str | None = None
) -> tuple[FirstStudy, Study]:
    first_study = write_first_study(directory, output=output or directory, system=system, force=False)
    return first_study, studyfile.load(str(first_study.file))


def fossil(directory: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory.parent), "USER": "a"}
    subprocess.run(["fossil", *words], cwd=directory, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.system)
def test_what_is_written_can_be_read_and_has_a_comment_on_every_choice(
    project: Project, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit(project.files)
    first_study, study = begun(repository.path)
    assert next(iter(study.benchmarks.values())).command == project.command
    assert study.find.metric is not None
    lines = [line.strip() for line in first_study.file.read_text().splitlines()]
    for line, before in zip(lines[1:], lines, strict=False):
        if " = " in line and not line.startswith(("#", "title", "kind", "env")) and not line.endswith("["):
            assert before.startswith("#"), line


def test_the_range_begins_at_the_last_release(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    commits = [repository.commit({**MAKE, "n": str(number)}) for number in range(12)]
    repository.tag("v1.0", commits[3])
    first_study, study = begun(repository.path)
    assert (study.source.kind, study.source.range) == ("git", "v1.0..HEAD")
    assert first_study.draft.source.revisions == 9


def test_a_release_that_was_just_made_is_searched_from_the_one_before(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    commits = [repository.commit({**MAKE, "n": str(number)}) for number in range(12)]
    repository.tag("v1.0", commits[2])
    repository.tag("v1.1", commits[-1])
    assert begun(repository.path)[1].source.range == "v1.0..HEAD"


def test_without_a_release_it_is_the_newest_fifty(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit(MAKE)
    commit = "commit refs/heads/main\ncommitter A <a@example.invalid> {} +0000\ndata 0\n{}\n"
    stream = (
        commit.format(1_700_001_000 + each, "" if each else "from refs/heads/main^0") for each in range(54)
    )
    repository.git("fast-import", "--quiet", stdin="".join(stream).encode())
    first_study, study = begun(repository.path)
    assert study.source.range == f"{repository.git('rev-parse', 'HEAD~49')}..HEAD"
    assert first_study.draft.source.revisions == 50


def test_a_tag_with_a_hostile_name_is_named_by_its_commit(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    commits = [repository.commit({**MAKE, "n": str(number)}) for number in range(8)]
    repository.tag('--upload-pack="$(touch)"', commits[1])
    assert begun(repository.path)[1].source.range == f"{commits[1]}..HEAD"


def test_a_repository_without_a_commit_gets_a_study_and_the_remedy(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    for name, text in MAKE.items():
        (repository.path / name).write_text(text)
    first_study, study = begun(repository.path)
    assert study.build.steps == ("make -j{cpus}",)
    assert any("commit" in trouble for trouble in first_study.draft.source.troubles)


def test_a_shallow_clone_gets_a_study_and_the_remedy(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "whole")
    for number in range(3):
        repository.commit({**MAKE, "n": str(number)})
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "tiny"))
    first_study, _ = begun(tmp_path / "tiny")
    assert any("git fetch --unshallow" in trouble for trouble in first_study.draft.source.troubles)


def test_without_a_history_the_files_as_they_are_are_studied(tmp_path: Path) -> None:
    for name, text in MAKE.items():
        (tmp_path / name).write_text(text)
    first_study, study = begun(tmp_path)
    assert study.source.kind == "directory"
    assert first_study.draft.source.revisions == 1


def test_what_is_not_committed_is_not_studied(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit(MAKE)
    (repository.path / "CMakeLists.txt").write_text("add_executable(a a.c)")
    first_study, _ = begun(repository.path)
    assert first_study.as_json()["build"] is not None
    assert first_study.draft.build is not None
    assert first_study.draft.build.system == "make"


def test_a_source_that_is_called_as_its_program_is_asked_what_that_knows(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "small")
    repository.commit({"Makefile": "tiny: src/tiny.c\n\tcc -o $@ src/tiny.c\n", "src/tiny.c": MAIN_C})
    _, study = begun(repository.path)
    assert next(iter(study.benchmarks.values())).command == "{build}/tiny --version"


def test_a_directory_inside_a_repository_is_built_there(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "all")
    repository.commit({f"parts/tiny/{name}": text for name, text in MAKE.items()})
    inside = repository.path / "parts" / "tiny"
    inside.mkdir(parents=True)
    _, study = begun(inside)
    assert study.build.directory == "parts/tiny"
    assert study.build.outputs == ("parts/tiny/tiny",)


@needs("fossil")
def test_a_checkout_of_fossil_leads_to_its_history(tmp_path: Path) -> None:
    checkout = tmp_path / "tiny"
    checkout.mkdir()
    fossil(checkout, "new", "--date-override", "2024-01-01T00:00:00", "../tiny.fossil")
    fossil(checkout, "open", "../tiny.fossil")
    for name, text in MAKE.items():
        (checkout / name).write_text(text)
    for number in range(7):
        (checkout / "NOTES").write_text("note\n" * (number + 1))
        fossil(checkout, "add", ".")
        tag = ("--tag", "v1.0") if number == 1 else ()
        fossil(checkout, "commit", "-m", "change", "--date-override", f"2024-01-0{number + 2}T00:00:00", *tag)
    (checkout / "CMakeLists.txt").write_text("add_executable(a a.c)")
    first_study, study = begun(checkout)
    assert (study.source.kind, first_study.draft.source.revisions) == ("fossil", 6)
    assert study.build.steps == ("make -j{cpus}",)


def test_submodules_need_no_step_of_their_own(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit({**MAKE, ".gitmodules": '[submodule "a"]\npath = a\nurl = https://example.invalid/a\n'})
    assert begun(repository.path)[1].build.steps == ("make -j{cpus}",)


def test_a_study_elsewhere_leads_back_to_the_program(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "a:b -c")
    repository.commit(MAKE)
    _, study = begun(repository.path, output=tmp_path / "studies" / "one.toml")
    assert Path(study.source.location) == repository.path
    assert study.file == str(tmp_path / "studies" / "one.toml")


def test_hostile_names_are_text_in_the_file(tmp_path: Path) -> None:
    name = '"]\n[build]\nsteps = ["touch pwned"]\n#\u202e\x1b[31m'
    repository = Repository(tmp_path / name)
    repository.commit({name: "", **MAKE})
    first_study, study = begun(repository.path)
    assert name in study.title
    assert study.build.steps == ("make -j{cpus}",)
    assert "\x1b" not in first_study.file.read_text()
    assert "\u202e" not in first_study.file.read_text()


def test_a_study_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        write_first_study(tmp_path, output=tmp_path, system=None, force=False)
    assert (tmp_path / "perftrail.toml").read_text() == "mine"
    write_first_study(tmp_path, output=tmp_path, system=None, force=True)
    assert tomllib.loads((tmp_path / "perftrail.toml").read_text())["benchmark"]


def test_a_build_system_can_be_chosen_and_what_is_not_there_is_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit({**MAKE, **PROJECTS[3].files})
    first_study, study = begun(repository.path, system="make")
    assert study.build.steps == ("make -j{cpus}",)
    assert [other.system for other in first_study.draft.others] == ["cmake"]
    for wrong, reported in (("cargo", "it uses cmake and make"), ("cmkae", "cmake")):
        with pytest.raises(UsageError, match=reported):
            write_first_study(repository.path, output=tmp_path, system=wrong, force=True)


def test_of_two_that_fit_the_one_whose_tools_are_here_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit({**MAKE, **PROJECTS[3].files})
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "make"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    assert begun(repository.path)[1].build.steps == ("make -j{cpus}",)


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_first_study(tmp_path, output=tmp_path / "file" / "below", system=None, force=False)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        write_first_study(tmp_path / "nowhere", output=tmp_path, system=None, force=False)


@pytest.mark.parametrize(("load", "metric"), [(0.2, "wall"), (1.9, "cpu")])
def test_on_a_busy_machine_cpu_time_is_proposed_with_the_reason(load: float, metric: str) -> None:
    source = SourceDraft(kind="directory", location=".", revisions=1)
    draft = StudyDraft(name="tiny", directory="", source=source, build=None, load=load, cpus=2)
    text = study_text(draft)
    assert tomllib.loads(text)["find"]["metric"] == metric
    assert ("# cpu: this machine is busy (load 1.9 on 2 CPUs)" in text) == (metric == "cpu")


def printed(begun: FirstStudy, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_first_study(begun)
    return capsys.readouterr().out.splitlines()


def test_a_placeholder_is_replaced_before_the_study_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README").write_text("nothing to build\n", encoding="utf-8")
    first, _ = begun(tmp_path)
    line = first.file.read_text(encoding="utf-8").splitlines().index('command = "test -e {build}"') + 1
    lines = printed(first, capsys)
    assert "benchmark    a placeholder: it only shows that the tree exists" in lines
    assert lines[-1] == (
        f"Next: write [build] and the command of {first.file}:{line} (benchmark.start.command), "
        f"then perftrail check {first.file}"
    )
    assert first.as_json()["to_do"] == first.to_do


def test_a_complete_study_is_checked_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make = "all: bench\nbench: bench.c\n\tcc -o bench bench.c\n"
    repository = Repository(tmp_path / "tiny")
    repository.commit({"Makefile": make, "bench.c": MAIN_C})
    first, _ = begun(repository.path)
    assert first.to_do == ""
    assert printed(first, capsys)[-1] == f"Next: perftrail check {first.file}"


def test_missing_tools_are_a_note_for_people_and_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit({"Cargo.toml": '[package]\nname = "tiny"\n', "src/main.rs": "fn main() {}\n"})
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    first, _ = begun(repository.path)
    [note] = [each for each in first.notes if "cargo" in each]
    assert note.startswith("not installed here: cargo")
    assert f"note         {note}" in printed(first, capsys)
    assert note in first.as_json()["notes"]


@pytest.mark.parametrize("kind", ["git", "directory"])
def test_the_draft_of_a_cargo_project_names_its_outputs_and_what_affects_no_build(
    kind: str, tmp_path: Path
) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "word-freq"\nedition = "2021"\n',
        "src/main.rs": "fn main() {}\n",
        "README.md": "words\n",
    }
    if kind == "git":
        Repository(tmp_path / "words").commit(files)
    else:
        for name, text in files.items():
            (tmp_path / "words" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "words" / name).write_text(text)
    first_study, study = begun(tmp_path / "words")
    assert study.build.outputs == ("target/release/word-freq",)
    assert study.build.unaffected_by == (("*.md",) if kind == "git" else ())
    text = first_study.file.read_text()
    assert (
        "# cargo compiles none of these: perftrail builds revisions that differ only in them" in text
    ) == (kind == "git")


PYTHON_PROJECT = '[project]\nname = "sums"\nversion = "1"\n'


@pytest.mark.parametrize(
    ("files", "kind", "path", "program"),
    [
        (
            {
                "pyproject.toml": PYTHON_PROJECT,
                "sums.py": "",
                "tests/test_a.py": "def test_sum(benchmark):\n    benchmark(sum, range(9))\n",
                "tests/deep/test_b.py": "class TestB:\n    def test_b(self, benchmark):\n        benchmark(sum, [])\n",
                "tests/test_c.py": "def test_c():\n    pass\n",
            },
            "pytest-benchmark",
            "tests",
            (),
        ),
        (
            {
                "pyproject.toml": PYTHON_PROJECT,
                "sums.py": "",
                "asv.conf.json": '{\n // where\n "benchmark_dir": "speed"\n}\n',
                "speed/all.py": "def time_all():\n    sum(range(9))\n",
            },
            "asv",
            "speed",
            (),
        ),
        (
            {
                "go.mod": "module example.com/sums\n",
                "deep/sums_test.go": "package deep\n\nfunc BenchmarkSum(b *testing.B) {}\n",
            },
            "go",
            "",
            ("perftrail-bench/**/*.test",),
        ),
        (
            {
                "CMakeLists.txt": "project(sums)\nfind_package(benchmark REQUIRED)\n"
                "add_executable(sums_bench sums.cc)\ntarget_link_libraries(sums_bench benchmark::benchmark_main)\n",
                "sums.cc": "",
            },
            "google-benchmark",
            "",
            ("build/bin/sums_bench",),
        ),
    ],
)
def test_the_suite_of_a_project_is_found(
    tmp_path: Path, files: dict[str, str], kind: str, path: str, program: tuple[str, ...]
) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit(files)
    first_study, study = begun(repository.path)
    assert not study.benchmarks
    [suite] = study.suites.values()
    assert (suite.kind, suite.path, suite.program) == (kind, path, program)
    assert first_study.to_do == ""
    assert first_study.as_json()["suite"] == kind
