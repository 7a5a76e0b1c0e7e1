"""Searches find the culprit in a history with repaired and with skipped revisions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.printing import find_answer, perftrail, perftrail_here, revisions
from tests.e2e.terminal import build_shell, run_from_pipe
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

COMMITS = 15
CULPRIT = 9
WITH_OLD_HEADER, DEFINED_TWICE, BROKEN = range(3), range(3, 6), range(11, 13)

MAKEFILE = "CFLAGS ?= -O1\nwork: work.c list.c list.h\n\t$(CC) $(CFLAGS) -Iinclude -o $@ work.c list.c\n"
MAIN = """\
/* {number} */
{include}#include <stdio.h>
#include "list.h"
{error}int main(void) {{ printf("cost {cost}\\n"); return the_list; }}
"""
STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["make work"]
pin = false
outputs = ["work"]

[benchmark.work]
command = "{{build}}/work"
metrics = {{ cost = {{ pattern = 'cost ([0-9]+)' }} }}

[measure]
warmups = 0

[find]
metric = "cost"
"""
REPAIRS = """
[[build.when]]
range = "..{last_old}"
overlay = {{ "compat/limits.h" = "include/oldsys/limits.h" }}

[[build.when]]
range = "{first_twice}..{last_twice}"
patch = ["fixes/one-list.patch"]

[[source.skip]]
range = "{first_broken}..{last_broken}"
reason = "never compiled"
"""
ONE_LIST = """\
--- list.h
+++ list.h
@@ -1 +1 @@
-int the_list;
+extern int the_list;
--- list.c
+++ list.c
@@ -1 +1,2 @@
 #include "list.h"
+int the_list;
"""


def files(number: int) -> dict[str, str]:
    header = "#include <oldsys/limits.h>\n" if number in WITH_OLD_HEADER else ""
    twice = number in DEFINED_TWICE
    return {
        "Makefile": MAKEFILE,
        "work.c": MAIN.format(
            number=number,
            include=header,
            error="this never compiled\n" if number in BROKEN else "",
            cost=100 if number < CULPRIT else 130,
        ),
        "list.h": "int the_list;\n" if twice else "extern int the_list;\n",
        "list.c": '#include "list.h"\n' + ("" if twice else "int the_list;\n"),
    }


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, list[str]]:
    repository = Repository(tmp_path_factory.mktemp("history") / "repository")
    ids = [repository.commit(files(number), subject=f"change {number}") for number in range(COMMITS)]
    return repository, ids


@pytest.fixture
def study(commits: tuple[Repository, list[str]], tmp_path: Path) -> Path:
    """A study without eras, next to the files that the repairs need."""
    (tmp_path / "compat").mkdir()
    (tmp_path / "compat/limits.h").write_text("#define OLD 1\n")
    (tmp_path / "fixes").mkdir()
    (tmp_path / "fixes/one-list.patch").write_text(ONE_LIST)
    (tmp_path / "perftrail.toml").write_text(STUDY.format(location=commits[0].path))
    return tmp_path


def add_repairs(study: Path, ids: list[str]) -> None:
    text = REPAIRS.format(
        last_old=ids[WITH_OLD_HEADER[-1]],
        first_twice=ids[DEFINED_TWICE[0]],
        last_twice=ids[DEFINED_TWICE[-1]],
        first_broken=ids[BROKEN[0]],
        last_broken=ids[BROKEN[-1]],
    )
    with (study / "perftrail.toml").open("a") as file:
        file.write(text)


def test_the_culprit_is_found_beyond_repaired_and_skipped_revisions(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    ids = commits[1]
    add_repairs(study, ids)
    report = json.loads(perftrail("check", study, "--try", "7", "--json").stdout)
    assert (report["usable"], report["failures"]) == (7, [])
    assert [each["revision"] for each in report["plan"]["skipped_revisions"]] == ids[11:13]
    answer = find_answer(study)
    assert (answer["verdict"], revisions(answer)) == ("found", [[ids[CULPRIT]]])
    assert not set(answer["unbuildable"]) - set(ids[11:13])
    shown = perftrail_here("show", study).stdout
    assert f"skipped 2 revisions, {ids[11][:10]} to {ids[12][:10]}: never compiled" in shown


def test_the_beginning_of_a_failure_is_a_range_across_skipped_revisions(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    ids = commits[1]
    with (study / "perftrail.toml").open("a") as file:
        file.write(
            f'\n[[source.skip]]\nrevision = "{ids[1]}"\nreason = "not here"\n'
            f'[[source.skip]]\nrange = "{ids[3]}..{ids[12]}"\nreason = "all these"\n'
        )
    answer = find_answer(study, "--metric", "works")
    assert (answer["verdict"], revisions(answer)) == ("range", [ids[3:14]])
    assert {each["stage"] for each in answer["failures"]} == {"build"}


def test_check_try_suggests_lines_that_repair_the_study(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    ids = commits[1]
    output = perftrail("check", study, "--try", str(COMMITS)).stdout
    assert f'    range = "..{ids[2][:10]}"\n    overlay = {{ "compat/oldsys/limits.h" = ' in output
    assert f'    range = "{ids[3][:10]}..{ids[5][:10]}"\n    env = {{ CFLAGS = "-O2 -fcommon" }}' in output
    report = json.loads(perftrail("check", study, "--try", str(COMMITS), "--json").stdout)
    text = (study / "perftrail.toml").read_text()
    for failure in report["failures"]:
        text += "\n" + failure["remedies"][0 if "multiple" in failure["line"] else -1] + "\n"
    (study / "perftrail.toml").write_text(text)
    again = json.loads(perftrail("check", study, "--try", str(COMMITS), "--json").stdout)
    assert again["failures"] == []
    assert len(again["tried"]) == COMMITS - len(WITH_OLD_HEADER) - len(BROKEN)


def test_a_run_and_a_plan_print_the_log_excerpts_of_failed_builds(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    ids = commits[1]
    output = perftrail("run", study, "--only", f"revision={ids[0]}", expect=1).stdout
    lines = [
        "build: work.c:2:10: fatal error: oldsys/limits.h: No such file or directory (log: ",
        "make: ***",
    ]
    assert all(line in output for line in lines)
    for command in ("check", "show"):
        shown = perftrail_here(command, study, expect=int(command == "show")).stdout
        assert (
            "1 failure at build: work.c:2:10: fatal error: oldsys/limits.h: No such file or directory"
            in shown
        )
        assert "log: " in shown


def test_one_revision_is_built_and_reported_with_its_failures(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    ids = commits[1]
    built = json.loads(perftrail("build", ids[8][:12], study, "--json").stdout)
    assert (built["revision"], built["succeeded"], built["known"]) == (ids[8], True, False)
    assert (Path(built["directory"]) / "work").exists()
    assert Path(built["log"]).is_file()
    assert json.loads(perftrail("build", ids[8], study, "--json").stdout)["known"]
    failed = json.loads(perftrail("build", ids[0], study, "--json", expect=1).stdout)
    assert failed["failure"]["stage"] == "build"
    assert "oldsys/limits.h" in failed["failure"]["message"].splitlines()[0]
    add_repairs(study, ids)
    output = perftrail("build", ids[0], study).stdout
    assert output.startswith(f"{ids[0][:10]} “change 0” was built in ")
    skipped = perftrail("build", ids[12], study, expect=1).stdout
    assert "  work.c:4:1: error: unknown type name" in skipped
    assert "never compiled; other commands skip this revision" in skipped
    assert "no revision" in perftrail_here("build", "v9", study, expect=2).stderr


def test_commands_from_a_pipe_run_a_recipe_and_do_not_change_the_store(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    ids = commits[1]
    perftrail("build", ids[8], study)
    before = snapshot(study)
    script = "test ! -e work || exit 9\nmake work && ./work\necho $LC_ALL $TZ ${PERFTRAIL_TEST-unset}\npwd\n"
    done = run_from_pipe(study, ids[8], script)
    assert done.returncode == 0
    *printed, directory = done.stdout.splitlines()
    assert printed[-2:] == ["cost 100", "C.UTF-8 UTC unset"]
    assert "steps        1  make work" in done.stderr
    assert not Path(directory).exists()
    assert snapshot(study) == before
    assert run_from_pipe(study, ids[0], "make work").returncode == 1
    steps = run_from_pipe(study, ids[8], 'sh "$(dirname "$PWD")/steps.sh" && ./work')
    assert (steps.returncode, steps.stdout.splitlines()[-1]) == (0, "cost 100")


def test_a_shell_without_commands_or_a_terminal_is_refused(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    assert "needs a terminal" in perftrail("build", commits[1][8], study, "--shell", expect=2).stderr
    assert "--json" in perftrail_here("build", commits[1][8], study, "--shell", "--json", expect=2).stderr


def test_a_shell_on_a_terminal_shows_the_steps_and_removes_its_files(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    with build_shell(study, commits[1][0]) as terminal:
        assert "make work" in terminal.read_until("perftrail$ ")
        terminal.type("make work\n")
        assert "oldsys/limits.h: No such file" in terminal.read_until("perftrail$ ")
        terminal.type("mkdir -p include/oldsys && touch include/oldsys/limits.h && make work && ./work\n")
        assert "cost 100" in terminal.read_until("cost 100")
        terminal.type("sleep 60\n")
        time.sleep(0.3)
        terminal.type("\x03")
        terminal.type("echo still $((40 + 2))\n")
        terminal.read_until("still 42")
        terminal.type("exit\n")
        assert terminal.exit_code() == 0
    assert not (study / ".perftrail/shells").exists()


def test_closing_the_terminal_ends_the_shell_and_removes_its_tree(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    with build_shell(study, commits[1][8]) as terminal:
        terminal.read_until("perftrail$ ")
        terminal.type("sleep 98765 &\n")
        terminal.read_until("perftrail$ ")
        os.kill(terminal.child, signal.SIGHUP)
        assert terminal.exit_code() == 130
    assert not (study / ".perftrail/shells").exists()
    assert "sleep 98765" not in running_processes()


def test_the_next_shell_removes_the_files_of_a_killed_one(
    study: Path, commits: tuple[Repository, list[str]]
) -> None:
    leftover = study / ".perftrail/shells/1"
    with build_shell(study, commits[1][8]) as terminal:
        terminal.read_until("perftrail$ ")
        (leftover / "tree/mine").touch()
        with build_shell(study, commits[1][8]) as second:
            second.read_until("perftrail$ ")
            assert (study / ".perftrail/shells/2/tree").is_dir()
            os.kill(terminal.child, signal.SIGKILL)
            terminal.exit_code()
            assert (leftover / "tree/mine").exists()
            second.type("exit\n")
            assert second.exit_code() == 0
    assert run_from_pipe(study, commits[1][8], "test ! -e mine").returncode == 0
    assert not leftover.exists()


def snapshot(study: Path) -> dict[str, bytes]:
    """Return the content of every file of the builds and logs."""
    root = study / ".perftrail"
    return {
        str(path.relative_to(root)): path.read_bytes()
        for below in ("builds", "logs")
        for path in sorted((root / below).rglob("*"))
        if path.is_file() and not path.is_symlink() and not {"ccache", "locks"} & set(path.parts)
    }


def running_processes() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
