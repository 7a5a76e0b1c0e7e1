"""Incremental builds in the tree of an earlier revision, with real make and gcc."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.builds.builder import LocalBuilder
from perftrail.builds.incremental import (
    FIRST_CHECK,
    RAREST_CHECK,
    TreeState,
    listing,
    read_state,
    update_tree,
    write_state,
)
from perftrail.errors import StaleBuilds
from perftrail.file_tree import exclusive_lock
from perftrail.model.build import Built, Recipe
from perftrail.model.subject import Revision, Subject
from perftrail.process.launcher import Launcher
from tests.builds.subject_builder import Project, recipe
from tests.sources.repositories import Repository

RIGHT = """\
all: program
program: main.o part.o
\t$(CC) -o $@ main.o part.o
main.o: main.c number.h
part.o: part.c number.h
"""
"""A makefile that names all dependencies of its objects."""

STALE = RIGHT.replace(" number.h", "")
"""A makefile that lacks the dependency on the header, a common mistake."""

FILES = {
    "Makefile": RIGHT,
    "main.c": '#include <stdio.h>\n#include "number.h"\nint part(void);\n'
    'int main(void) { printf("%d\\n", N + part()); return 0; }\n',
    "part.c": '#include "number.h"\nint part(void) { return N; }\n',
    "number.h": "#define N 1\n",
    "README": "one\n",
}
INCREMENTAL = replace(recipe("make", outputs=("program",)), incremental=True)


def build(project: Project | LocalBuilder, revision: Revision, how: Recipe = INCREMENTAL) -> Built:
    """Build a subject, with a new builder each time unless one is given."""
    builder = project.builder() if isinstance(project, Project) else project
    outcome = builder.build(Subject(revision=revision, variant="plain"), how)
    assert isinstance(outcome, Built), outcome
    return outcome


def output_of(built: Built) -> str:
    program = Path(built.directory) / "program"
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def compiled(built: Built) -> int:
    """How many objects were compiled for a build."""
    return Path(built.log).read_text().count(" -c ")


def test_only_what_changed_is_compiled_and_the_artefact_is_that_of_a_clean_build(project: Project) -> None:
    first = build(project, project.commit(FILES))
    changed = project.commit({**FILES, "part.c": FILES["part.c"].replace("N", "N + 1")})
    second = build(project, changed)
    assert (compiled(first), compiled(second)) == (2, 1)
    assert (output_of(first), output_of(second)) == ("2", "3")
    clean = build(project, changed, replace(INCREMENTAL, incremental=False))
    assert second.artefact == clean.artefact != first.artefact
    assert (Path(second.directory, "program").read_bytes()) == Path(clean.directory, "program").read_bytes()


def test_a_revision_that_only_changed_the_docs_is_the_same_artefact_on_disk(project: Project) -> None:
    first = build(project, project.commit(FILES))
    docs = build(project, project.commit({**FILES, "README": "two\n"}))
    assert compiled(docs) == 0
    assert docs.artefact == first.artefact
    assert Path(docs.directory).resolve() == Path(first.directory).resolve()


def test_a_build_stays_as_it_is_when_a_later_revision_is_built_in_its_tree(project: Project) -> None:
    first = build(project, project.commit(FILES))
    build(project, project.commit({**FILES, "number.h": "#define N 5\n"}))
    assert output_of(first) == "2"
    again = build(project.builder(), Revision(id=project.repository.git("rev-parse", "HEAD~1").strip()))
    assert again.reused
    assert output_of(again) == "2"


def test_going_back_and_forth_gives_each_revision_its_own(project: Project) -> None:
    one = project.commit(FILES)
    two = project.commit({**FILES, "number.h": "#define N 2\n", "extra/new.h": "\n"})
    three = project.commit({name: text for name, text in FILES.items() if name != "README"})
    assert [output_of(build(project, each)) for each in (two, one, three)] == ["4", "2", "2"]


def test_stale_objects_are_found_reported_and_discarded(project: Project) -> None:
    stale = {**FILES, "Makefile": STALE}
    one, two = project.commit(stale), project.commit({**stale, "number.h": "#define N 4\n"})
    builder = project.builder()
    build(builder, one)
    wrong = build(builder, two)
    assert output_of(wrong) == "2"
    with pytest.raises(StaleBuilds) as taken_back:
        builder.confirm()
    assert taken_back.value.keys == (wrong.key,)
    (message,) = builder.messages()
    assert message.startswith("incremental builds are off")
    assert "program" in message
    right = build(project, two)
    assert not right.reused
    assert output_of(right) == "8"
    assert "used tree" not in Path(right.log).read_text()
    assert build(project, one).reused


def test_the_last_build_of_a_tree_is_checked_while_another_worker_looks_at_the_tree(project: Project) -> None:
    stale = {**FILES, "Makefile": STALE}
    one, two = project.commit(stale), project.commit({**stale, "number.h": "#define N 4\n"})
    first, second = project.builder(), project.builder()
    build(first, one)
    wrong = build(second, two)
    [lock] = project.root.rglob("locks/*-0.lock")
    with ThreadPoolExecutor(1) as workers:
        with exclusive_lock(lock):
            checking = workers.submit(second.confirm)
            wait([checking], timeout=0.3)
        with pytest.raises(StaleBuilds) as taken_back:
            checking.result()
    assert taken_back.value.keys == (wrong.key,)


@pytest.mark.parametrize("gap", [3, pytest.param(FIRST_CHECK, marks=pytest.mark.long)])
def test_one_in_many_builds_is_checked_by_default(project: Project, gap: int) -> None:
    stale = {**FILES, "Makefile": STALE}
    revisions = [project.commit({**stale, "number.h": f"#define N {number}\n"}) for number in range(gap + 1)]
    builder = project.builder()
    built = [build(builder, revisions[0])]
    (file,) = (project.builds / "worktrees").glob("*/state.json")
    state = read_state(file)
    assert state.gap == FIRST_CHECK
    write_state(file, replace(state, gap=gap))
    built += [build(builder, revision) for revision in revisions[1:-1]]
    assert {output_of(each) for each in built} == {"0"}
    with pytest.raises(StaleBuilds) as taken_back:
        build(builder, revisions[-1])
    assert taken_back.value.keys == tuple(each.key for each in built[1:])
    assert [output_of(build(project, revisions[number])) for number in (0, 1, gap)] == [
        "0",
        "2",
        f"{2 * gap}",
    ]


def test_checks_become_rarer_as_they_succeed_and_never_stop() -> None:
    state, gaps = TreeState(), []
    for _ in range(5):
        state = state.checked()
        gaps.append(state.gap)
    assert gaps == [20, 40, 64, 64, 64]
    assert gaps[-1] == RAREST_CHECK
    assert not TreeState(unchecked=("a",) * (FIRST_CHECK - 2)).check_due
    assert TreeState(unchecked=("a",) * (FIRST_CHECK - 1)).check_due


def test_a_successful_check_changes_nothing(project: Project) -> None:
    one, two = project.commit(FILES), project.commit({**FILES, "number.h": "#define N 3\n"})
    builder = project.builder()
    build(builder, one)
    second = build(builder, two)
    builder.confirm()
    assert builder.messages() == ()
    assert build(builder, two).reused
    assert output_of(second) == "6"
    third = build(project, project.commit({**FILES, "part.c": "int part(void) { return 7; }\n"}))
    assert (
        compiled(third) == 2
    )  # both, as the header is what it was before; nothing else is left of the check


def test_a_decisive_build_is_compared_itself_also_when_a_later_build_in_its_tree_was_right(
    project: Project,
) -> None:
    stale = {**FILES, "Makefile": STALE}
    one, two = project.commit(stale), project.commit({**stale, "number.h": "#define N 4\n"})
    touched = {name: f"{text}/* again */\n" for name, text in stale.items() if name.endswith(".c")}
    three = project.commit({**stale, **touched, "number.h": "#define N 4\n"})
    builder = project.builder()
    build(builder, one)
    wrong, right = build(builder, two), build(builder, three)
    assert (output_of(wrong), output_of(right)) == ("2", "8")
    builder.confirm()
    with pytest.raises(StaleBuilds) as taken_back:
        builder.confirm([(Subject(revision=two, variant="plain"), INCREMENTAL)])
    assert taken_back.value.keys == (wrong.key,)
    assert "incremental builds are off" in builder.messages()[0]
    assert output_of(build(project, two)) == "8"


def test_a_decisive_build_that_is_right_is_compared_once(project: Project) -> None:
    one, two, three = (project.commit({**FILES, "number.h": f"#define N {number}\n"}) for number in (1, 3, 5))
    builder = project.builder()
    build(builder, one)
    second = build(builder, two)
    build(builder, three)
    log = Path(second.log).with_suffix(".check.log")
    decisive = [(Subject(revision=two, variant="plain"), INCREMENTAL)]
    builder.confirm(decisive)
    assert "clean tree" in log.read_text()
    log.unlink()
    builder.confirm(decisive)
    assert not log.exists()
    assert builder.messages() == ()
    assert output_of(build(project, project.commit({**FILES, "number.h": "#define N 6\n"}))) == "12"


def test_the_git_file_of_a_submodule_is_no_difference(project: Project) -> None:
    library = Repository(project.root / "library")
    first, second = (library.commit({"lib.h": f"#define L {number}\n"}) for number in (1, 2))
    gitmodules = '[submodule "lib"]\n\tpath = deep/lib\n\turl = ../library\n'
    makefile = (
        "program: main.c deep/lib/lib.h\n\t$(CC) -o $@ main.c\n"
        "\tgit -C deep/lib rev-parse HEAD > at\n\techo made >> count\n"
    )
    main = '#include <stdio.h>\n#include "deep/lib/lib.h"\nint main(void) { printf("%d\\n", L); return 0; }\n'
    files = {"Makefile": makefile, "main.c": main, ".gitmodules": gitmodules}
    how = replace(INCREMENTAL, steps=("make", "git -C deep/lib status --short > state || :"))
    how = replace(how, outputs=("program", "at", "count", "state"))
    built = [
        build(project, project.commit({**files, "deep/lib": f"commit:{commit}", "README": str(number)}), how)
        for number, commit in enumerate((first, first, second))
    ]
    read = [
        {name: Path(each.directory, name).read_text().strip() for name in ("at", "count", "state")}
        for each in built
    ]
    assert [each["at"] for each in read] == [first, first, second]
    assert [each["count"].count("made") for each in read] == [1, 1, 2]
    assert [each["state"] for each in read] == ["", "", ""]
    assert [output_of(each) for each in built] == ["1", "1", "2"]
    assert "1 changed file" in Path(built[1].log).read_text()
    without = "program: main.c\n\techo 9 > $@\n\ttouch at count state\n"
    plain = build(project, project.commit({"main.c": main, "Makefile": without}), how)
    assert "clean tree" not in Path(plain.log).read_text()
    assert not list((project.builds / "worktrees").glob("*/tree/deep"))


def test_a_failure_counts_only_from_a_clean_tree(project: Project) -> None:
    how = replace(INCREMENTAL, steps=("test ! -e program && make",))
    build(project, project.commit(FILES), how)
    second = build(project, project.commit({**FILES, "number.h": "#define N 3\n"}), how)
    assert output_of(second) == "6"
    assert "built again in a clean tree" in Path(second.log).read_text()
    broken = project.commit({**FILES, "part.c": "int part(void) { return }\n"})
    failure = project.failed(broken, how)
    assert "part.c:1" in failure.message
    assert output_of(build(project, project.commit({**FILES, "number.h": "#define N 6\n"}), how)) == "12"


def test_outputs_that_contain_their_path_are_built_in_separate_directories(project: Project) -> None:
    wrapping = RIGHT.replace("all: program", "all: program wrapper") + (
        'wrapper: program\n\techo "exec $(CURDIR)/program" > $@\n'
    )
    how = replace(INCREMENTAL, outputs=("program", "wrapper"))
    revision = project.commit({**FILES, "Makefile": wrapping})
    builder = project.builder()
    built = build(builder, revision, how)
    assert not Path(built.directory).is_symlink()
    assert built.directory in Path(built.directory, "wrapper").read_text()
    assert "contain the name of their build directory" in builder.messages()[0]


def test_a_build_killed_in_a_used_tree_is_followed_by_a_clean_one(project: Project) -> None:
    first = build(project, project.commit(FILES))
    (state,) = (project.builds / "worktrees").glob("*/state.json")
    state.write_text(state.read_text().replace('"usable": true', '"usable": false'))
    (state.parent / "tree" / "part.o").write_bytes(b"half an object")
    second = build(project, project.commit({**FILES, "README": "two\n"}))
    assert compiled(second) == 2
    assert second.artefact == first.artefact


def test_two_processes_build_in_separate_trees_at_once(project: Project) -> None:
    revisions = [project.commit({**FILES, "number.h": f"#define N {number}\n"}) for number in range(4)]

    def build_and_run(revision: Revision) -> str:
        with Launcher() as own:
            return output_of(build(project.builder(launcher=own), revision))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(build_and_run, revisions)) == ["0", "2", "4", "6"]


def test_the_cost_of_a_tree_is_that_of_its_last_clean_build(project: Project) -> None:
    slow = replace(INCREMENTAL, steps=("test -e program || sleep 0.2", "make"))
    for files in (FILES, {**FILES, "README": "two\n"}):
        build(project, project.commit(files), slow)
    (state,) = (project.builds / "worktrees").glob("*/state.json")
    assert 0.2 <= read_state(state).seconds < 60


def test_a_link_that_a_build_left_leads_no_revision_out_of_its_tree(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    how = replace(INCREMENTAL, steps=(f"make; test -e sub || ln -s {outside} sub",))
    build(project, project.commit(FILES), how)
    build(project, project.commit({**FILES, "sub/file": "mine\n"}), how)
    assert list(outside.iterdir()) == []


def test_moving_a_tree_writes_only_files_that_differ(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for tree, files in (
        (one, {"same": "s", "old/gone": "g", "kind": "file"}),
        (two, {"same": "s", "new": "n"}),
    ):
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
    (two / "kind").mkdir()
    (two / "kind" / "inside").write_text("i")
    before, stamp = listing(one), (one / "same").stat().st_mtime_ns
    (one / "product").write_text("built")
    changed = update_tree(one, two, before=before, now=listing(two))
    assert sorted(changed) == ["kind", "kind/inside", "new", "old/gone"]
    assert sorted(str(path.relative_to(one)) for path in one.rglob("*")) == [
        "kind", "kind/inside", "new", "product", "same",
    ]  # fmt: skip
    assert (one / "same").stat().st_mtime_ns == stamp
    assert (one / "new").stat().st_mtime_ns > (one / "product").stat().st_mtime_ns


def test_a_change_in_unused_paths_is_the_same_build(project: Project) -> None:
    how = replace(recipe("make", outputs=("program",)), unaffected_by=("README", "docs/**"))
    one = build(project, project.commit(FILES), how)
    docs = build(project, project.commit({**FILES, "README": "two\n", "docs/deep/new.txt": "x"}), how)
    assert docs.reused
    assert docs.key == one.key
    code = build(project, project.commit({**FILES, "number.h": "#define N 2\n"}), how)
    assert not code.reused
