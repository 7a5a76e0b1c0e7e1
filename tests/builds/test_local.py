"""The builder on a real project, with a real compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, InputChanged
from perftrail.model.build import Built, Failure
from perftrail.model.subject import Revision, Subject
from perftrail.process.launcher import Launcher, launcher_path
from tests.builds.subject_builder import MAKEFILE, PROGRAM, PROJECT, Project, recipe
from tests.fakes.source import InMemorySource
from tests.needs import needs

MAKE = recipe("make", outputs=("program",))


def output_of(program: Path) -> str:
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def test_a_subject_is_built_and_then_reused(project: Project) -> None:
    revision = project.commit()
    first = project.build(revision, MAKE)
    assert output_of(Path(first.directory) / "program") == "7"
    assert not first.reused
    again = project.build(revision, MAKE)
    assert again.reused
    assert (again.key, again.artefact, again.seconds) == (first.key, first.artefact, first.seconds)


def test_the_log_shows_each_line_with_its_time(project: Project) -> None:
    built = project.build(project.commit(), recipe("echo one; echo two >&2", "make"))
    log = Path(built.log).read_text()
    assert "$ echo one; echo two >&2\none\ntwo\n[done, " in log
    assert "$ make\n" in log
    assert log.count(" s]") == 2


def test_a_commit_that_only_changed_the_docs_gives_an_equal_artefact(project: Project) -> None:
    one = project.build(project.commit(), MAKE)
    docs = project.build(project.commit({**PROJECT, "README": "two\n"}), MAKE)
    faster = project.build(project.commit({**PROJECT, "program.c": PROGRAM.replace("7", "8")}), MAKE)
    assert one.key != docs.key
    assert one.artefact == docs.artefact != faster.artefact


def test_debug_information_in_archives_does_not_tell_builds_apart(project: Project) -> None:
    how = recipe("cc -g -c program.c", "ar cr libprogram.a program.o", outputs=("lib*.a",))
    one = project.build(project.commit(), how)
    docs = project.build(project.commit({**PROJECT, "README": "two\n"}), how)
    assert one.artefact == docs.artefact


def test_a_path_that_matters_when_a_program_runs_distinguishes_builds(project: Project) -> None:
    how = recipe("cc -Wl,-rpath,{build} -o program program.c", outputs=("program",))
    one = project.build(project.commit(), how)
    docs = project.build(project.commit({**PROJECT, "README": "two\n"}), how)
    assert one.artefact != docs.artefact


def test_without_outputs_the_artefact_is_the_content_that_was_built(project: Project) -> None:
    built = project.build(project.commit(), recipe("make"))
    assert built.artefact == built.key


def test_a_tree_that_came_back_is_not_built_twice(project: Project) -> None:
    first = project.commit()
    project.commit({**PROJECT, "README": "two\n"})
    reverted = project.commit()
    assert project.build(first, MAKE).key == project.build(reverted, MAKE).key
    assert project.build(reverted, MAKE).reused


def test_everything_that_may_change_a_build_changes_its_key(project: Project) -> None:
    builder, revision = project.builder(), project.commit()
    other = project.commit({**PROJECT, "README": "two\n"})
    subject, plain = Subject(revision=revision, variant="plain"), recipe("make -C .")
    (project.root / "fix.diff").write_text("one")
    keys = [
        builder.key(subject, plain),
        builder.key(Subject(revision=other, variant="plain"), plain),
        builder.key(subject, recipe("make -B")),
        builder.key(subject, recipe("make -C .", env={"CFLAGS": "-O3"})),
        builder.key(subject, recipe("make -C .", directory="src")),
        builder.key(subject, recipe("make -C .", outputs=("program",))),
        builder.key(subject, recipe("patch < {study}/fix.diff")),
        builder.key(subject, recipe("echo {revision}")),
        builder.key(Subject(revision=other, variant="plain"), recipe("echo {revision}")),
    ]
    (project.root / "fix.diff").write_text("two")
    keys.append(builder.key(subject, recipe("patch < {study}/fix.diff")))
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {32}
    assert builder.key(Subject(revision=revision, variant="other"), plain) == keys[0]


def test_another_compiler_is_another_key(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject(revision=project.commit(), variant="plain")
    before = project.builder().key(subject, recipe("./configure"))
    tools = project.root / "tools"
    tools.mkdir()
    (tools / "cc").write_text("#!/bin/sh\necho 'cc 99.9'\n")
    (tools / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert project.builder().key(subject, recipe("./configure")) != before


def test_a_build_whose_input_was_edited_meanwhile_is_discarded(project: Project) -> None:
    data = project.root / "data.txt"
    data.write_text("one")
    subject = Subject(revision=project.commit(), variant="plain")
    how = recipe("cp {study}/data.txt program; echo two >> {study}/data.txt", outputs=("program",))
    with pytest.raises(InputChanged, match=r"data\.txt: changed during a build"):
        project.builder().build(subject, how)
    data.write_text("one")
    assert not project.builder().is_built(project.builder().key(subject, how))


def test_the_first_error_is_quoted_and_not_the_last_line(project: Project) -> None:
    broken = project.commit({**PROJECT, "program.c": '#include "gone.h"\nint main(void) { return 0; }\n'})
    failure = project.failed(broken, recipe("make -k; echo 'a long tail of talk'; false"))
    assert failure.stage == "build"
    assert "gone.h: No such file or directory" in failure.message.splitlines()[0]
    assert "make: ***" in failure.message
    assert "tail of talk" not in failure.message
    assert "gone.h" in Path(failure.log).read_text()


def test_a_failed_build_leaves_its_log_and_nothing_else(project: Project) -> None:
    failure = project.failed(project.commit(), recipe("mkdir deep; touch deep/file; chmod 500 deep; exit 3"))
    assert failure.message == "exit code 3: mkdir deep; touch deep/file; chmod 500 deep; exit 3"
    assert Path(failure.log).is_file()
    assert [
        path.name
        for path in project.builds.iterdir()
        if path.name not in {"locks", "ccache", "sccache-wrapper"}
    ] == []


class Gone(InMemorySource):
    """A history whose trees are removed after it was listed."""

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        raise CheckoutFailed(f"{revision.id}: the index has no file for it any more")


def test_a_revision_that_cannot_be_checked_out_is_a_failure(project: Project) -> None:
    builder = project.builder(source=Gone([("1.0", PROJECT)]))
    failure = builder.build(Subject(revision=Revision(id="1.0"), variant="plain"), MAKE)
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.message) == ("checkout", "1.0: the index has no file for it any more")
    assert failure.message in Path(failure.log).read_text()


def test_outputs_that_match_nothing_are_a_failure(project: Project) -> None:
    failure = project.failed(project.commit(), recipe("make", outputs=("lib*.so", "bin/**")))
    assert (failure.stage, failure.message) == (
        "build",
        "outputs matched no file: lib*.so, bin/**; correct the recipe's outputs",
    )


def test_a_directory_that_a_revision_lacks_is_a_failure(project: Project) -> None:
    assert "no such directory" in project.failed(project.commit(), recipe("make", directory="unix")).message
    linked = project.commit({**PROJECT, "unix": "link:/tmp"})
    assert "no such directory" in project.failed(linked, recipe("touch here", directory="unix")).message


def test_a_step_runs_in_its_directory_with_unset_variables_refused(project: Project) -> None:
    revision = project.commit({**PROJECT, "unix/here": "x"})
    project.build(revision, recipe("test -f here", directory="unix"))
    assert "UNSET" in project.failed(revision, recipe("echo $UNSET_THING")).message
    assert "exit code 1" in project.failed(revision, recipe("false; touch went-on")).message


def test_the_environment_is_small_and_the_same_for_everybody(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLAGS", "-O0")
    monkeypatch.setenv("LD_PRELOAD_NOT", "x")
    # As in the container images of Rust: cargo does not start without it.
    monkeypatch.setenv("RUSTUP_HOME", "/opt/rust")
    built = project.build(
        project.commit(), recipe("env > seen; touch $TMPDIR/private", env={"WHERE": "{build}:{cpus}:${HOME}"})
    )
    lines = (Path(built.directory) / "seen").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert "CFLAGS" not in seen
    assert "LD_PRELOAD_NOT" not in seen
    assert seen["RUSTUP_HOME"] == "/opt/rust"
    assert seen["WHERE"] == f"{built.directory}:2:${{HOME}}"
    assert (seen["TZ"], seen["LC_ALL"]) == ("UTC", "C.UTF-8")
    assert seen["TMPDIR"].startswith(str(Path(built.directory).parent))
    assert not Path(seen["TMPDIR"]).exists()


def test_placeholders_are_single_words_whatever_their_value(tmp_path: Path) -> None:
    with Launcher() as launcher:
        project = Project(tmp_path / "it's $(touch pwned) `x`", launcher)
        built = project.build(
            project.commit(), recipe("cp {build}/program.c {build}/copy.c && echo {revision}")
        )
        assert (Path(built.directory) / "copy.c").read_text() == PROGRAM
    assert not list(tmp_path.rglob("pwned"))


def test_a_timeout_covers_all_steps_and_kills_the_whole_tree(project: Project) -> None:
    revision = project.commit()
    forks = "(setsid sh -c 'echo $$ > pid; while :; do sleep 100; done' &) ; while ! test -s pid; do :; done"
    how = recipe(f"cd {project.root}; {forks}", f"cd {project.root}; {forks}; sleep 100", timeout_seconds=1.5)
    failure = project.failed(revision, how)
    assert failure.stage == "build"
    assert failure.message.startswith("timed out after 1.5 s: ")
    assert 1.0 < failure.seconds < 10
    assert not Path(f"/proc/{(project.root / 'pid').read_text().strip()}").exists()


def test_a_killed_build_is_removed_and_repeated(project: Project) -> None:
    revision = project.commit()
    built = project.build(revision, MAKE)
    home = Path(built.directory).parent
    (home / "built.json").unlink()
    (home / "tree" / "program").write_text("half a program")
    (home / "tree" / "stray").write_text("left over")
    again = project.build(revision, MAKE)
    assert not again.reused
    assert again.artefact == built.artefact
    assert not (home / "tree" / "stray").exists()


KILLED = """
import sys
from pathlib import Path
from perftrail.process import Launcher
from perftrail.model.subject import Revision, Subject
from tests.builds.subject_builder import Project, recipe
root, fifo, revision, launcher = sys.argv[1:]
project = Project.__new__(Project)
project.root, project.launcher = Path(root), Launcher(Path(launcher))
project.repository = type("There", (), {"path": Path(root) / "repository"})
how = recipe(f"exec 3> {fifo}; echo started >&3; (setsid sleep 1000 &); sleep 1000")
project.try_build(Revision(id=revision), how)
"""


def test_a_build_dies_with_perftrail_however_it_dies(project: Project) -> None:
    revision, fifo = project.commit(), project.root / "fifo"
    os.mkfifo(fifo)
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED, project.root, fifo, revision.id, launcher_path()],
        cwd=Path(__file__).parents[2],
    )
    with fifo.open() as pipe:
        assert pipe.readline() == "started\n"
        killed.kill()
        began = time.monotonic()
        assert pipe.read() == ""  # the end of the file comes when the last writer is gone
        assert time.monotonic() - began < 2.0
    killed.wait()
    assert not project.build(revision, MAKE).reused


def test_a_truncated_marker_is_ignored(project: Project) -> None:
    revision = project.commit()
    built = project.build(revision, MAKE)
    (Path(built.directory).parent / "built.json").write_text('{"artefact": "abc", "sec')
    assert not project.build(revision, MAKE).reused


def test_two_builders_at_once_build_a_subject_once(project: Project) -> None:
    revision, how = project.commit(), recipe(f"echo made >> {project.root}/count; make", outputs=("program",))

    def make(_: int) -> Built | Failure:
        with Launcher() as own:
            return project.builder(launcher=own).build(Subject(revision=revision, variant="plain"), how)

    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(make, range(3)))
    assert (project.root / "count").read_text() == "made\n"
    assert sorted(outcome.reused for outcome in outcomes if isinstance(outcome, Built)) == [False, True, True]


@needs("/usr/lib/ccache/cc")
def test_ccache_is_used_and_reported_and_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = recipe("cc -g -O1 -c program.c", outputs=("program.o",))
    cached = project.build(project.commit(), how)
    assert "through ccache" in Path(cached.log).read_text()
    assert any((project.builds / "ccache").iterdir())
    docs = project.build(project.commit({**PROJECT, "README": "two\n"}), how)
    monkeypatch.setattr("perftrail.builds.build_runner.has_ccache", lambda: False)
    shutil.rmtree(Path(docs.directory).parent)
    plain = project.build(Revision(id=project.repository.git("rev-parse", "main")), how)
    assert "through ccache" not in Path(plain.log).read_text()
    assert cached.artefact == docs.artefact == plain.artefact


def test_a_missing_program_and_a_missing_header_are_both_reported(project: Project) -> None:
    assert "no-such-tool" in project.failed(project.commit(), recipe("no-such-tool --build")).message
    bad = project.commit({**PROJECT, "Makefile": MAKEFILE.replace("program.c", "programme.c")})
    assert "No rule to make target 'programme.c'" in project.failed(bad, recipe("make")).message


def test_a_path_in_the_tree_is_printed_as_its_name_alone(project: Project) -> None:
    broken = project.commit({**PROJECT, "lib/a.c": "this is no C\n"})
    failure = project.failed(broken, recipe("cc -c {build}/lib/a.c"))
    assert failure.message.startswith("lib/a.c:1:1: error: ")
    assert str(project.builds) in Path(failure.log).read_text()


DEEP = f'{sys.executable} -IS -c \'import os\nfor n in range(1200): os.mkdir("d" * 50); os.chdir("d" * 50)\''


def test_a_build_of_an_endless_tree_fails_and_leaves_nothing(project: Project) -> None:
    failure = project.failed(project.commit(), recipe(DEEP))
    assert failure.message == "its tree cannot be used: more than 500 levels of directories"
    assert not [path for path in project.builds.iterdir() if len(path.name) == 32]


DATED = Revision(id="", time="2024-03-01T01:30:00+02:00")


def test_a_recipe_may_use_the_revisions_date_in_utc(project: Project) -> None:
    revision = replace(DATED, id=project.commit().id)
    how = recipe("echo {date} > dates; echo $WHEN >> dates", env={"WHEN": "{date}"})
    built = project.build(revision, how)
    assert (Path(built.directory) / "dates").read_text() == "2024-02-29T23:30:00Z\n" * 2


def test_only_a_recipe_with_the_date_makes_builds_of_equal_trees_differ(project: Project) -> None:
    builder, id_ = project.builder(), project.commit().id
    early, same, late = (
        Subject(revision=Revision(id=id_, time=time), variant="plain")
        for time in (DATED.time, "2024-02-29T23:30:00Z", "2024-03-02T00:00:00Z")
    )
    dated, plain = recipe("echo {date}"), recipe("echo date")
    assert builder.key(early, plain) == builder.key(late, plain)
    assert builder.key(early, dated) == builder.key(same, dated) != builder.key(late, dated)
    assert builder.key(early, recipe(env={"WHEN": "{date}"})) != builder.key(
        late, recipe(env={"WHEN": "{date}"})
    )


def test_a_recipe_with_the_date_fails_for_a_revision_without_one(project: Project) -> None:
    failed = project.failed(Revision(id=project.commit().id), recipe("echo {date}"))
    assert failed.message == "its recipe uses {date}, but the revision has no date"
