"""Relinking real objects in other orders: stored outputs, the unchanged build, and recovery after a kill."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.builds.artefact import read_finished
from perftrail.builds.builder import LocalBuilder
from perftrail.builds.incremental import read_state
from perftrail.builds.relinking import ORIGINALS, working_copy
from perftrail.builds.workers import BuildWorkers, CleanBuilder, ParallelBuilder
from perftrail.errors import StaleBuilds
from perftrail.model.build import Built, Failure, Prepared, Recipe
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision, Subject
from perftrail.process.launcher import Launcher
from perftrail.sources.git import GitSource
from tests.builds.subject_builder import Project, recipe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROJECT = {
    "Makefile": (
        "OBJECTS = main.o one.o two.o\n"
        "program: $(OBJECTS)\n\t$(CC) -o $@ $(ORDER) $(OBJECTS)\n"
        "main.o: main.c number.h\none.o: one.c\ntwo.o: two.c\n"
    ),
    "main.c": '#include <stdio.h>\n#include "number.h"\nint one(int); int two(int);\n'
    'int main(void) { printf("%d\\n", one(N) + two(N)); return 0; }\n',
    "number.h": "#define N 1\n",
    "one.c": "int one(int n) { return n * 3; }\n",
    "two.c": "int two(int n) { return n * 5; }\n",
}
SHUFFLED = (
    "ls main.o one.o two.o | awk -v seed={layout} 'BEGIN { srand(seed) } { print rand(), $0 }' | sort -n"
    " | cut -d' ' -f2 > order"
)
RELINK = (SHUFFLED, "cc -o program $(cat order)")
HOW = replace(recipe("make", outputs=("program",)), relink=RELINK)


def subject(revision: Revision) -> Subject:
    return Subject(revision=revision, variant="plain")


def relinked(
    builder: LocalBuilder, revision: Revision, layouts: Sequence[int], how: Recipe = HOW
) -> Mapping[int, Built | Failure]:
    built = builder.build(subject(revision), how)
    assert isinstance(built, Built), built
    return builder.relink(subject(revision), how, built, layouts)


def all_built(outcomes: Mapping[int, Built | Failure]) -> list[Built]:
    found = [each for each in outcomes.values() if isinstance(each, Built)]
    assert len(found) == len(outcomes), outcomes
    return found


def program(built: Built) -> Path:
    return Path(built.directory, "program")


def functions(path: Path) -> list[str]:
    """Return the functions of a program in the order of their addresses."""
    output = subprocess.run(["nm", "-n", path], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1] for line in output.splitlines() if line.split()[-1] in {"main", "one", "two"}]


def output_of(built: Built) -> str:
    return subprocess.run([program(built)], check=True, capture_output=True, text=True).stdout


def state_of(tree: Path) -> dict[str, tuple[int, bytes]]:
    files = (each for each in tree.rglob("*") if each.is_file() and ".git" not in each.parts)
    return {str(each.relative_to(tree)): (each.stat().st_mtime_ns, each.read_bytes()) for each in files}


def test_layouts_differ_in_the_order_of_functions_and_run_alike(project: Project) -> None:
    found = all_built(relinked(project.builder(), project.commit(PROJECT), range(1, 6)))
    orders = {tuple(functions(program(each))) for each in found}
    assert len(orders) >= 2
    assert len({each.artefact for each in found}) == len(orders)
    assert {output_of(each) for each in found} == {"8\n"}
    assert [each.layout for each in found] == list(range(1, 6))


def test_the_build_as_linked_stays_as_it_was_with_its_dates(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    built = builder.build(subject(revision), HOW)
    assert isinstance(built, Built)
    before = state_of(Path(built.directory))
    all_built(builder.relink(subject(revision), HOW, built, (1, 2)))
    assert state_of(Path(built.directory)) == before
    assert not Path(built.directory).with_name(ORIGINALS).exists()
    again = builder.build(subject(revision), HOW)
    assert again == replace(built, reused=True)


def test_a_recipe_that_relinks_gives_the_same_build_as_one_that_does_not(project: Project) -> None:
    revision = project.commit(PROJECT)
    one = project.builder().key(subject(revision), HOW)
    assert one == project.builder().key(subject(revision), replace(HOW, relink=()))


def test_only_outputs_are_kept_and_each_layout_once(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    (first,) = all_built(relinked(builder, revision, (1,)))
    assert [each.name for each in Path(first.directory).iterdir()] == ["program"]
    log = Path(first.log)
    assert "relinked with layout 1" in log.read_text()
    log.unlink()
    (again,) = all_built(relinked(project.builder(), revision, (1,)))
    assert again == replace(first, reused=True)
    assert not log.exists()


def test_a_layout_that_was_removed_is_made_again(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    first, second = all_built(relinked(builder, revision, (1, 2)))
    shutil.rmtree(Path(first.directory).parent)
    again, kept = all_built(relinked(builder, revision, (1, 2)))
    assert (again.reused, kept.reused) == (False, True)
    assert program(again).read_bytes() != b""
    assert again.artefact == first.artefact
    assert kept.artefact == second.artefact


def test_layouts_of_one_batch_share_its_cost(project: Project) -> None:
    found = all_built(relinked(project.builder(), project.commit(PROJECT), (1, 2, 3)))
    assert all(0.0 < each.seconds < 60.0 for each in found)
    markers = [read_finished(Path(each.directory).with_name("built.json")) for each in found]
    assert all(marker is not None and marker.bytes > 0 for marker in markers)


def test_other_lines_are_other_layouts(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    other = replace(HOW, relink=("cc -o program two.o one.o main.o -DX={layout}",))
    (one,), (two,) = (all_built(relinked(builder, revision, (1,), how)) for how in (HOW, other))
    assert one.key != two.key


def test_a_benchmark_s_program_is_linked_with_each_layout_of_a_library(project: Project) -> None:
    builder, revision = (
        project.builder(),
        project.commit({**PROJECT, "Makefile": "all:\n\tcc -c one.c two.c\n"}),
    )
    how = replace(
        recipe("make", "ar rc lib.a one.o two.o", outputs=("lib.a",)),
        relink=(SHUFFLED.replace("main.o ", ""), "rm lib.a", "ar rc lib.a $(cat order)"),
    )
    (project.root / "bench.c").write_text(PROJECT["main.c"].replace('#include "number.h"', "#define N 1"))
    found = all_built(relinked(builder, revision, range(1, 7), how))
    orders = set()
    for each in found:
        prepared = builder.prepare(
            each,
            steps=(
                "cc -o {out}/program {study}/bench.c -Wl,--whole-archive {build}/lib.a -Wl,--no-whole-archive",
            ),
            env={},
            files=(),
            timeout_seconds=60.0,
        )
        assert isinstance(prepared, Prepared), prepared
        orders.add(tuple(functions(Path(prepared.out, "program"))))
    assert len(orders) == 2


# What goes wrong


def test_a_relink_that_fails_reports_why_and_ends_the_batch(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    how = replace(HOW, relink=("test {layout} != 2 || cc -o program missing.o", *RELINK))
    found = relinked(builder, revision, (1, 2, 3), how)
    assert isinstance(found[1], Built)
    failure = found[2]
    assert isinstance(failure, Failure)
    assert failure.stage == "relink"
    assert "missing.o" in Path(failure.log).read_text()
    assert 3 not in found
    assert output_of(builder.build(subject(revision), how)) == "8\n"  # type: ignore[arg-type] # it is built


def test_a_relink_that_takes_too_long_is_a_failure(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    how = replace(HOW, relink=("sleep 30 # {layout}",), timeout_seconds=1.0)
    built = builder.build(subject(revision), replace(how, timeout_seconds=60.0))
    assert isinstance(built, Built)
    failure = builder.relink(subject(revision), how, built, (1,))[1]
    assert isinstance(failure, Failure)
    assert (
        failure.message == "timed out after 1.0 s: sleep 30 # 1" or "timed out after 1.0 s" in failure.message
    )


def test_outputs_that_relinking_removed_are_a_failure(project: Project) -> None:
    how = replace(HOW, relink=("rm program # {layout}",))
    failure = relinked(project.builder(), project.commit(PROJECT), (1,), how)[1]
    assert isinstance(failure, Failure)
    assert failure.message == "outputs matched no file: program; correct the recipe's outputs"


def test_a_program_that_would_load_the_library_as_linked_is_refused(project: Project) -> None:
    steps = ("cc -shared -fPIC -o liball.so one.c two.c", "cc -o program main.c -L. -lall -Wl,-rpath,$PWD")
    how = replace(recipe(*steps, outputs=("program", "liball.so")), relink=(*steps, ": {layout}"))
    failure = relinked(project.builder(), project.commit(PROJECT), (1,), how)[1]
    assert isinstance(failure, Failure)
    assert failure.message.startswith("program contains the name of its build directory")
    own = tuple(each.replace("$PWD", "'$ORIGIN'") for each in steps)
    how = replace(recipe(*own, outputs=("program", "liball.so")), relink=(*own, ": {layout}"))
    (found,) = all_built(relinked(project.builder(), project.commit(PROJECT), (1,), how))
    assert output_of(found) == "8\n"


def test_a_program_that_only_prints_where_its_source_was_is_kept(project: Project) -> None:
    main = PROJECT["main.c"].replace("return 0", "puts(__FILE__); return 0")
    how = replace(HOW, steps=("cc -c $PWD/main.c one.c two.c", "cc -o program main.o one.o two.o"))
    (found,) = all_built(relinked(project.builder(), project.commit({**PROJECT, "main.c": main}), (1,), how))
    assert output_of(found).startswith("8\n/")
    assert output_of(found).endswith("/tree/main.c\n")


def test_files_of_a_killed_relink_are_removed_before_the_build_is_used(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    built = builder.build(subject(revision), HOW)
    assert isinstance(built, Built)
    tree = Path(built.directory)
    before = state_of(tree)
    child = os.fork()
    if child == 0:
        with working_copy(tree.parent):
            (tree / "program").write_text("relinked")
            os._exit(0)  # as a kill would: nothing is put back
    os.waitpid(child, 0)
    assert (tree / "program").read_text() == "relinked"
    again = project.builder().build(subject(revision), HOW)
    assert again == replace(built, reused=True)
    assert state_of(tree) == before


def test_special_files_and_unreadable_ones_do_not_stop_a_relink(project: Project) -> None:
    how = replace(HOW, steps=("make", "mkfifo pipe", "ln -s nowhere dangling", "mkdir -p d; ln -s .. d/up"))
    (found,) = all_built(relinked(project.builder(), project.commit(PROJECT), (1,), how))
    assert output_of(found) == "8\n"


# Trees that go from revision to revision, and several that build

INCREMENTAL = replace(HOW, incremental=True)


def test_the_objects_of_a_used_tree_are_relinked_and_the_tree_stays_as_it_was(project: Project) -> None:
    builder = project.builder()
    revisions = [project.commit({**PROJECT, "number.h": f"#define N {n}\n"}) for n in (1, 2, 3, 4)]
    for revision in revisions[:3]:
        assert isinstance(builder.build(subject(revision), INCREMENTAL), Built)
    found = all_built(relinked(builder, revisions[0], range(1, 5), INCREMENTAL))
    assert {output_of(each) for each in found} == {"8\n"}
    assert len({each.artefact for each in found}) >= 2
    (state,) = (project.builds / "worktrees").glob("*/state.json")
    assert read_state(state).usable
    fourth = builder.build(subject(revisions[3]), INCREMENTAL)
    assert isinstance(fourth, Built)
    assert Path(fourth.log).read_text().count(" -c ") == 1
    clean = project.build(Revision(id=revisions[0].id), replace(INCREMENTAL, incremental=False))
    assert clean.artefact == builder.build(subject(revisions[0]), INCREMENTAL).artefact  # type: ignore[union-attr]


def test_a_used_tree_is_checked_as_if_nothing_had_been_relinked_in_it(project: Project) -> None:
    builder = project.builder()
    revisions = [project.commit({**PROJECT, "number.h": f"#define N {n}\n"}) for n in (1, 2, 3)]
    builts = [builder.build(subject(revision), INCREMENTAL) for revision in revisions]
    (state,) = (project.builds / "worktrees").glob("*/state.json")
    before = read_state(state)
    assert before.unchecked == tuple(each.key for each in builts[1:] if isinstance(each, Built))
    all_built(relinked(builder, revisions[0], (1,), INCREMENTAL))
    assert read_state(state) == before
    builder.confirm()
    assert read_state(state).unchecked == ()


def test_a_kill_while_a_used_tree_is_relinked_costs_nothing_but_the_relink(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    assert isinstance(builder.build(subject(revision), INCREMENTAL), Built)
    (state,) = (project.builds / "worktrees").glob("*/state.json")
    tree = state.with_name("tree")
    before = state_of(tree)
    child = os.fork()
    if child == 0:
        with working_copy(tree.parent):
            shutil.rmtree(tree)
            os._exit(0)  # as a kill would: nothing is put back
    os.waitpid(child, 0)
    (found,) = all_built(relinked(builder, revision, (1,), INCREMENTAL))
    assert output_of(found) == "8\n"
    assert state_of(tree) == before
    assert read_state(state).usable


def test_objects_are_built_in_a_clean_tree_where_used_ones_are_not_trusted(project: Project) -> None:
    builder, revision = project.builder(), project.commit(PROJECT)
    built = builder.build(subject(revision), INCREMENTAL)
    assert isinstance(built, Built)
    (state,) = (project.builds / "worktrees").glob("*/state.json")
    recipe_key = state.parent.name.rpartition("-")[0]
    (project.builds / "worktrees" / f"{recipe_key}.distrusted").write_text("for this test")
    (found,) = all_built(builder.relink(subject(revision), INCREMENTAL, built, (1,)))
    assert output_of(found) == "8\n"


FORGETFUL = {**PROJECT, "Makefile": PROJECT["Makefile"].replace(" number.h", "")}


def test_stale_objects_of_a_used_tree_are_not_relinked(project: Project) -> None:
    builder = project.builder()
    first, second = (project.commit({**FORGETFUL, "number.h": f"#define N {number}\n"}) for number in (1, 2))
    for revision in (first, second):  # the second is linked from the objects of the first
        assert isinstance(builder.build(subject(revision), INCREMENTAL), Built)
    with pytest.raises(StaleBuilds):
        builder.confirm()
    found = all_built(relinked(project.builder(), second, (1, 2), INCREMENTAL))
    assert {output_of(each) for each in found} == {"16\n"}


def test_layouts_of_a_removed_build_do_not_belong_to_the_new_one(project: Project) -> None:
    builder = project.builder()
    first, second = (project.commit({**FORGETFUL, "number.h": f"#define N {number}\n"}) for number in (1, 2))
    assert isinstance(builder.build(subject(first), INCREMENTAL), Built)
    (stale,) = all_built(relinked(builder, second, (1,), INCREMENTAL))
    assert output_of(stale) == "8\n"
    with pytest.raises(StaleBuilds):
        builder.confirm()
    (right,) = all_built(relinked(builder, second, (1,), INCREMENTAL))
    assert output_of(right) == "16\n"


def test_a_build_of_a_worker_is_relinked_by_the_leader(project: Project) -> None:
    table = SourceTable(kind="git", location=str(project.repository.path))
    options = {
        "builds": str(project.builds),
        "logs": str(project.root / "logs"),
        "study_directory": str(project.root),
        "cpus": 1,
        "others": {},
        "folders": {},
        "isolation": None,
        "disk_bytes": None,
    }
    revision = project.commit(PROJECT)
    with Launcher() as other:
        source = GitSource(table, cache=str(project.root / "cache"), starter=other)
        hand = CleanBuilder(source, other, **options)  # type: ignore[arg-type] # put together loosely
        workers = BuildWorkers([_Stopping(hand)], announcement="")
        leading = ParallelBuilder(source, project.launcher, workers=workers, **options)  # type: ignore[arg-type] # as above
        leading.begin([(subject(revision), HOW)])
        found = all_built(relinked(leading, revision, (1, 2, 3)))
        workers.close()
    assert {output_of(each) for each in found} == {"8\n"}


class _Stopping:
    """A builder as one of the workers."""

    def __init__(self, builder: LocalBuilder) -> None:
        self._builder = builder

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        return self._builder.build(subject, recipe)

    def confirm(self) -> None:
        self._builder.confirm()

    def messages(self) -> tuple[str, ...]:
        return self._builder.messages()

    def stop(self) -> None:
        """Do nothing: it is idle."""

    def close(self) -> None:
        self._builder.close()


def test_layouts_count_for_the_quota_and_go_before_the_build(project: Project) -> None:
    source = GitSource(
        SourceTable(kind="git", location=str(project.repository.path)),
        cache=str(project.root / "cache"),
        starter=project.launcher,
    )

    def builder(disk_bytes: float) -> LocalBuilder:
        return LocalBuilder(
            source,
            project.launcher,
            builds=str(project.builds),
            logs=str(project.root / "logs"),
            study_directory=str(project.root),
            cpus=2,
            disk_bytes=disk_bytes,
        )

    revision = project.commit(PROJECT)
    roomy = builder(1e9)
    found = all_built(relinked(roomy, revision, range(1, 5)))
    roomy.close()
    tight = builder(100_000.0)
    (last,) = all_built(relinked(tight, revision, (5,)))
    assert program(last).exists()
    assert sum(Path(each.directory).exists() for each in found) < len(found)
    assert any("removed to free disk space" in news for news in tight.messages())


@pytest.mark.parametrize("name", ["plain", "with blank 'quote"])
def test_paths_with_blanks_relink(tmp_path: Path, name: str) -> None:
    with Launcher() as launcher:
        root = tmp_path / name
        root.mkdir()
        project = Project(root, launcher)
        (found,) = all_built(relinked(project.builder(), project.commit(PROJECT), (1,)))
        assert output_of(found) == "8\n"
