"""Layouts without a recipe, end to end: a program whose cost follows the address of a function that no commit changes.

Each commit adds code before that function which nothing calls, and one of them much. The cost is exact, so that these
tests need no clock.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import find_answer, perftrail, revisions
from tests.needs import needs
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["{steps}"]
outputs = [{outputs}]
{build}

[benchmark.work]
command = "{command}"
metrics = {{ cost = {{ pattern = 'cost ([0-9]+)' }} }}
{benchmark}

[measure]
warmups = 0

[find]
metric = "cost"
threshold = "1%"
"""
COMMITS = 6
LONG = 3
"""The commit that adds so much code that the function moves by more than a third of a page."""
SLOWER = 4
"""The commit that makes the program really slower, in histories where one does."""

MAIN = """\
#include <stdio.h>
unsigned long hot(unsigned long);
int main(void) {{ printf("cost %lu\\n", {base} + 20 * ((unsigned long)&hot % 4096 / 64)); return 0; }}
"""
MAKEFILE = "program: dead.o main.o hot.o\n\t$(CC) -o $@ dead.o main.o hot.o\n"


def history(directory: Path, *, slower: bool = False) -> Repository:
    repository = Repository(directory / "repository")
    dead = ""
    for number in range(COMMITS):
        long = "n ^= n << 3; n *= n; n ^= n >> 5;" * (100 if number == LONG else 1)
        dead += f"int dead{number}(int n) {{ {long} return n + {number}; }}\n"
        base = 11_000 if slower and number >= SLOWER else 10_000
        repository.commit(
            {
                "Makefile": MAKEFILE,
                "main.c": MAIN.format(base=base),
                "hot.c": "unsigned long hot(unsigned long n) { return n * 3 + 1; }\n",
                "dead.c": dead,
                "README": f"revision {number}\n",
            }
        )
    return repository


def study(
    directory: Path,
    repository: Repository,
    *,
    steps: str = "make",
    outputs: str = '"program"',
    build: str = "",
    command: str = "{build}/program",
    benchmark: str = "",
) -> Path:
    file = directory / "perftrail.toml"
    file.write_text(
        STUDY.format(
            location=repository.path,
            steps=steps,
            outputs=outputs,
            build=build,
            command=command,
            benchmark=benchmark,
        )
    )
    return file


def compared(file: Path, *options: str, expect: int = 0) -> dict[str, Any]:
    done = perftrail("compare", "HEAD~5", "HEAD", file, "--json", *options, expect=expect)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def row(file: Path, *options: str) -> dict[str, Any]:
    (only,) = compared(file, *options)["comparisons"]
    found: dict[str, Any] = only
    return found


def test_find_names_no_commit_that_only_moves_code(tmp_path: Path) -> None:
    file = study(tmp_path, history(tmp_path))
    answer = find_answer(file)
    assert (answer["verdict"], answer["pinned"], answer["unpinned"]) == ("none", True, "")
    assert answer["certificate"]["layouts"] > 1
    printed = perftrail("find", file).stdout
    assert f", layouts pinned, {answer['certificate']['layouts']} seeds," in printed
    as_linked = find_answer(file, "--as-linked")
    assert as_linked["verdict"] == "found"
    assert as_linked["pinned"] is False


@pytest.mark.long
def test_find_names_the_commit_that_changes_the_program(tmp_path: Path) -> None:
    repository = history(tmp_path, slower=True)
    answer = find_answer(study(tmp_path, repository))
    culprit = repository.git("rev-parse", f"HEAD~{COMMITS - 1 - SLOWER}").strip()
    assert revisions(answer) == [[culprit]]
    assert answer["pinned"] is True


def test_compare_pins_both_builds(tmp_path: Path) -> None:
    file = study(tmp_path, history(tmp_path))
    found = row(file)
    assert (found["verdict"], found["pinned"], found["layouts"] >= 9) == ("same", True, True)
    assert ", layouts pinned, " in perftrail("compare", "HEAD~5", "HEAD", file).stdout
    as_linked = row(file, "--as-linked")
    assert (as_linked["verdict"] in {"slower", "faster"}, as_linked["pinned"], as_linked["layouts"]) == (
        True,
        False,
        0,
    )


def test_a_study_can_turn_pinning_off(tmp_path: Path) -> None:
    found = row(study(tmp_path, history(tmp_path), build="pin = false"))
    assert (found["verdict"] in {"slower", "faster"}, found["pinned"], found["layouts"]) == (True, False, 0)


def test_a_build_that_cannot_be_pinned_is_compared_as_linked_and_says_why(tmp_path: Path) -> None:
    changed = "objcopy --add-section .extra=README --set-section-flags .extra=alloc,readonly program other"
    steps = f"make && {changed} && mv other program"
    gate = compared(study(tmp_path, history(tmp_path), steps=steps))
    assert gate["comparisons"][0]["layouts"] == 0
    (note,) = [each for each in gate["notes"] if "pinned" in each]
    assert note.startswith('work: layouts are not pinned: "program" was changed after its link (')


@pytest.mark.long
def test_a_search_that_cannot_pin_says_why(tmp_path: Path) -> None:
    file = study(tmp_path, history(tmp_path), build="incremental = true")
    done = perftrail("find", file)
    assert "Layouts are not pinned: " in done.stdout
    assert "links of builds in reused trees are not recorded" in done.stdout


@pytest.mark.long
def test_without_a_study_the_whole_tree_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = history(tmp_path)
    monkeypatch.chdir(repository.path)
    words = (
        "compare",
        "HEAD~5",
        "HEAD",
        "--json",
        "--build",
        "make",
        "--pattern",
        "cost ([0-9]+)",
        "--",
        "./program",
    )
    (found,) = json.loads(perftrail(*words).stdout)["comparisons"]
    assert (found["verdict"], found["pinned"]) == ("same", True)


WHOLE = "{build}/main.c -Wl,--whole-archive {build}/libx.a -Wl,--no-whole-archive"


@pytest.mark.long
def test_a_library_that_the_benchmark_links_is_pinned(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        history(tmp_path),
        steps="make && ar rc libx.a dead.o hot.o",
        outputs='"libx.a", "main.c"',
        command="{out}/bench",
        benchmark=f'build = ["cc {WHOLE} -o {{out}}/bench"]',
    )
    found = row(file)
    assert (found["verdict"], found["pinned"]) == ("same", True)


@needs_sandbox
@pytest.mark.long
def test_links_in_a_sandbox_are_pinned(tmp_path: Path) -> None:
    found = row(study(tmp_path, history(tmp_path)), "--sandbox")
    assert (found["verdict"], found["pinned"]) == ("same", True)


@needs("cmake", "ninja")
@pytest.mark.long
def test_a_shared_library_of_cmake_is_pinned(tmp_path: Path) -> None:
    repository = history(tmp_path)
    lists = (
        "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_library(hot SHARED dead.c hot.c)\n"
        "add_executable(program main.c)\ntarget_link_libraries(program hot)\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(lists)
    file = study(
        tmp_path,
        repository,
        steps="cmake -G Ninja -B out -DCMAKE_BUILD_TYPE=Release && cmake --build out",
        outputs='"out/program", "out/libhot.so"',
        build='overlay = { "CMakeLists.txt" = "CMakeLists.txt" }',
        command="{build}/out/program",
    )
    found = row(file)
    assert (found["verdict"], found["pinned"]) == ("same", True)


LINKER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    char path[4096];
    snprintf(path, sizeof path, "%s/script", getenv("TMPDIR"));
    for (int i = 1; i < count; i++)
        if (strcmp(words[i], "--verbose") == 0) {
            symlink("VICTIM", path);
            puts("==================================================\n"
                 "  .text :\n  {\n    *(.text.unlikely)\n"
                 "==================================================");
            return 0;
        }
    if (fork() == 0)
        execv("LINKER", words);
    wait(NULL);
    return 0;
}
"""


@needs_sandbox
def test_a_linker_of_the_build_cannot_lead_perftrail_out_of_the_sandbox(tmp_path: Path) -> None:
    repository, victim = Repository(tmp_path / "repository"), tmp_path / "victim"
    linker = LINKER.replace("VICTIM", str(victim)).replace("LINKER", str(shutil.which("ld")))
    for number in range(COMMITS):
        main = f'#include <stdio.h>\nint main(void) {{ puts("cost 10{number}"); return 0; }}\n'
        repository.commit({"linker.c": linker, "main.c": main})
    steps = "mkdir own && cc -o own/ld linker.c && cc -c main.c && cc -o program main.o -Bown/"
    found = row(study(tmp_path, repository, steps=steps), "--sandbox")
    assert found["pinned"] is False
    assert not victim.is_symlink()
    assert not victim.exists()


def test_a_layout_has_the_other_files_of_its_build(tmp_path: Path) -> None:
    command = "sh -c 'cd {build}/empty && cat {build}/data && {build}/program'"
    found = row(
        study(tmp_path, history(tmp_path), steps="make && echo 3 > data && mkdir empty", command=command)
    )
    assert (found["verdict"], found["pinned"]) == ("same", True)


@pytest.mark.long
def test_a_program_that_is_no_output_is_measured_as_linked(tmp_path: Path) -> None:
    steps = "make && cp program other"
    gate = compared(study(tmp_path, history(tmp_path), steps=steps, command="{build}/other"))
    assert gate["comparisons"][0]["pinned"] is False
    assert any('"other" is used, but it is not among build.outputs' in each for each in gate["notes"])


def test_a_program_that_fails_in_layouts_is_measured_as_linked(tmp_path: Path) -> None:
    steps = "make && sha256sum program > sum"
    command = "sh -c 'cd {build} && sha256sum -c sum && ./program'"
    file = study(tmp_path, history(tmp_path, slower=True), steps=steps, command=command)
    gate = compared(file)
    assert (gate["comparisons"][0]["verdict"], gate["comparisons"][0]["pinned"]) == ("slower", False)
    assert any("fails in a layout: " in each for each in gate["notes"])
    answer = json.loads(start("find", file, "--json").stdout)
    assert (answer["pinned"], answer["failures"]) == (False, [])
    assert "fails in a layout: " in answer["unpinned"]


def test_a_program_that_a_script_starts_is_not_called_pinned(tmp_path: Path) -> None:
    steps = "make && mkdir bin && cp program bin/real && printf 'exec $(dirname $0)/bin/real' > run"
    file = study(tmp_path, history(tmp_path), steps=steps, command="sh {build}/run")
    gate = compared(file)
    assert (gate["comparisons"][0]["verdict"], gate["comparisons"][0]["pinned"]) == ("slower", False)
    assert any("fails in a layout: " in each for each in gate["notes"])
