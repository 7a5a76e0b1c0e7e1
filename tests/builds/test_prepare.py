"""Benchmarks built against a subject."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from perftrail.model.build import Built, Failure, Prepared
from tests.builds.subject_builder import PROJECT, Project, recipe

LIBRARY = {**PROJECT, "work.c": "int work(void) { return 1; }\n"}
STATIC = recipe("cc -g -O1 -c work.c", "ar cr libwork.a work.o")
SHARED = recipe("cc -g -O1 -fPIC -shared -o libwork.so work.c")
BENCH = '#include <stdio.h>\nint work(void);\nint main(void) { printf("%d\\n", work()); return 0; }\n'
LINK_STATIC = "cc -g -O1 -o {out}/bench {study}/bench.c {build}/libwork.a"
LINK_SHARED = "cc -g -O1 -o {out}/bench {study}/bench.c -L{build} -lwork -Wl,-rpath,{build}"


def prepare(
    project: Project,
    built: Built,
    *steps: str,
    files: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 60.0,
) -> Prepared | Failure:
    return project.builder().prepare(
        built, steps=steps, env=env or {}, files=files, timeout_seconds=timeout_seconds
    )


def prepared(project: Project, built: Built, *steps: str, files: tuple[str, ...] = ()) -> Prepared:
    outcome = prepare(project, built, *steps, files=files)
    assert isinstance(outcome, Prepared), outcome
    return outcome


def slower(number: int) -> dict[str, str]:
    return {**LIBRARY, "work.c": f"int work(void) {{ return {number}; }}\n"}


def test_a_benchmark_is_linked_against_the_subject_and_reused(project: Project) -> None:
    (project.root / "bench.c").write_text(BENCH)
    built = project.build(project.commit(LIBRARY), STATIC)
    first = prepared(project, built, LINK_STATIC)
    output = subprocess.run([f"{first.out}/bench"], check=True, capture_output=True, text=True)
    assert output.stdout == "1\n"
    stamp = (Path(first.out) / "bench").stat().st_mtime_ns
    assert prepared(project, built, LINK_STATIC) == first
    assert (Path(first.out) / "bench").stat().st_mtime_ns == stamp
    assert Path(first.out).parent == Path(built.directory).parent / "bench"


def test_a_static_library_is_part_of_the_artefact(project: Project) -> None:
    (project.root / "bench.c").write_text(BENCH)
    trees = (LIBRARY, {**LIBRARY, "README": "docs"}, slower(2))
    one, docs, other = (
        prepared(project, project.build(project.commit(tree), STATIC), LINK_STATIC).artefact for tree in trees
    )
    assert one == docs != other


def test_a_dynamic_library_counts_with_its_links(project: Project) -> None:
    (project.root / "bench.c").write_text(BENCH)
    how = recipe(*SHARED.steps, outputs=("libwork.so",))
    trees = (LIBRARY, slower(2))
    one, other = (
        prepared(project, project.build(project.commit(tree), how), LINK_SHARED).artefact for tree in trees
    )
    assert one != other


def test_a_script_that_leads_back_to_the_build_counts_with_it(project: Project) -> None:
    how = recipe(*STATIC.steps, outputs=("libwork.a",))
    trees = (LIBRARY, {**LIBRARY, "README": "docs"}, slower(2))
    line = "echo exec {build}/program > {out}/run"
    one, docs, other = (
        prepared(project, project.build(project.commit(tree), how), line).artefact for tree in trees
    )
    assert other not in {one, docs}


def test_the_studys_files_count_by_their_content(project: Project) -> None:
    (project.root / "bench.c").write_text(BENCH)
    (project.root / "data.txt").write_text("one")
    built = project.build(project.commit(LIBRARY), STATIC)
    first = prepared(project, built, LINK_STATIC, files=("data.txt",))
    absolute = prepared(project, built, LINK_STATIC, files=(str(project.root / "data.txt"),))
    (project.root / "data.txt").write_text("two")
    second = prepared(project, built, LINK_STATIC, files=("data.txt",))
    (project.root / "bench.c").write_text(BENCH.replace("%d", "%x"))
    third = prepared(project, built, LINK_STATIC, files=("data.txt",))
    assert len({first.artefact, second.artefact, third.artefact}) == 3
    assert len({first.out, second.out, third.out}) == 3
    assert Path(absolute.out).is_dir()


def test_a_file_that_is_edited_during_a_build_counts_as_it_was_before(project: Project) -> None:
    data = project.root / "data.txt"
    data.write_text("one")
    built = project.build(project.commit(LIBRARY), STATIC)
    first = prepared(project, built, "true", files=("data.txt",))
    edited = prepared(project, built, f"echo two > {data.resolve()}x; mv {data}x {data}", files=("data.txt",))
    assert data.read_text() == "two\n"
    assert edited.artefact == first.artefact


def test_without_lines_there_is_an_empty_directory(project: Project) -> None:
    one = prepared(project, project.build(project.commit(LIBRARY), STATIC))
    other = prepared(project, project.build(project.commit(slower(2)), STATIC))
    assert list(Path(one.out).iterdir()) == []
    assert one.artefact == other.artefact


def test_a_link_that_fails_is_a_failure_of_its_own_stage(project: Project) -> None:
    (project.root / "bench.c").write_text(BENCH.replace("work", "wrok"))
    built = project.build(project.commit(LIBRARY), STATIC)
    outcome = prepare(project, built, LINK_STATIC)
    assert isinstance(outcome, Failure)
    assert outcome.stage == "link"
    assert "undefined reference to `wrok'" in outcome.message
    assert "wrok" in Path(outcome.log).read_text()
    assert list((Path(built.directory).parent / "bench").iterdir()) == []
    assert Path(built.directory).is_dir()


def test_a_link_may_take_too_long(project: Project) -> None:
    built = project.build(project.commit(LIBRARY), STATIC)
    outcome = prepare(project, built, "sleep 100", timeout_seconds=0.3)
    assert isinstance(outcome, Failure)
    assert outcome.message == "timed out after 0.3 s: sleep 100"


def test_a_killed_link_step_is_repeated(project: Project) -> None:
    built = project.build(project.commit(LIBRARY), STATIC)
    first = prepared(project, built, "echo whole > {out}/file")
    (Path(first.out).parent / f"{Path(first.out).name}.json").unlink()
    (Path(first.out) / "file").write_text("half")
    assert prepared(project, built, "echo whole > {out}/file") == first
    assert (Path(first.out) / "file").read_text() == "whole\n"


def test_the_key_of_a_link_is_known_before_it_is_made(project: Project) -> None:
    built = project.build(project.commit(LIBRARY), STATIC)
    other = project.build(project.commit(slower(2)), STATIC)
    builder = project.builder()
    keys = [
        builder.benchmark_build_key(built, steps=["true"], env={}, files=()),
        builder.benchmark_build_key(other, steps=["true"], env={}, files=()),
        builder.benchmark_build_key(built, steps=["false"], env={}, files=()),
        builder.benchmark_build_key(built, steps=["true"], env={"CFLAGS": "-O3"}, files=()),
        builder.benchmark_build_key(built, steps=["true"], env={}, files=("data",)),
    ]
    assert len(set(keys)) == len(keys)
    assert Path(prepared(project, built, "true").out).name == keys[0]


def test_the_commands_placeholders_are_reported(project: Project) -> None:
    built = project.build(project.commit(LIBRARY), STATIC)
    ready = prepared(project, built)
    assert project.builder().command_placeholders(ready) == {
        "build": built.directory,
        "out": ready.out,
        "study": str(project.root),
        "cpus": "2",
    }
