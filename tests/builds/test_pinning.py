"""Builds whose links are recorded: layouts without relink lines, and a sentence where there are none."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.builds.links.record import NOT_RECORDED
from perftrail.builds.workers import CleanBuilder
from perftrail.model.build import Built, Failure, Prepared, Recipe
from perftrail.model.subject import Revision, Subject
from tests.builds.links.conftest import addresses
from tests.builds.subject_builder import Project, recipe
from tests.needs import needs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.builds.builder import LocalBuilder

FILES = {
    "Makefile": "program: main.o one.o two.o\n\t$(CC) -o $@ $^\n",
    "main.c": '#include <stdio.h>\nint one(int); int two(int);\nint main(void) { printf("%d\\n", one(1) + two(1)); }\n',
    "one.c": "int one(int n) { return n * 3; }\n",
    "two.c": "int two(int n) { return n * 5; }\n",
}
DEAD = "int dead(int n) { n ^= n << 3; n ^= n >> 5; n *= n; return n + 77; }\n"
MAKE = replace(recipe("make", outputs=("program",)), pin=True)


def pinned(*lines: str, outputs: tuple[str, ...] = ("program",)) -> Recipe:
    return replace(recipe(*lines, outputs=outputs), pin=True)


def subject(revision: Revision) -> Subject:
    return Subject(revision=revision, variant="plain")


def build(builder: LocalBuilder, revision: Revision, how: Recipe) -> Built:
    built = builder.build(subject(revision), how)
    assert isinstance(built, Built), built
    return built


def layouts(
    project: Project, how: Recipe, *seeds: int, files: Mapping[str, str] = FILES
) -> dict[int, Built | Failure]:
    revision, builder = project.commit(files), project.builder()
    built = build(builder, revision, how)
    return dict(builder.relink(subject(revision), how, built, seeds or (1, 2)))


def usable(found: Mapping[int, Built | Failure]) -> dict[int, Path]:
    assert all(isinstance(each, Built) for each in found.values()), found
    return {layout: Path(each.directory) for layout, each in found.items() if isinstance(each, Built)}


def refusal(found: Mapping[int, Built | Failure]) -> str:
    (only,) = found.values()
    assert isinstance(only, Failure)
    assert only.stage == "relink"
    return only.message


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def places(program: Path) -> list[int]:
    return [addresses(program)[name] % 4096 for name in ("one", "two")]


def test_two_revisions_have_equal_places_in_each_layout(project: Project) -> None:
    first = usable(layouts(project, MAKE))
    second = usable(
        layouts(project, MAKE, files={**FILES, "one.c": DEAD + FILES["one.c"], "two.c": FILES["two.c"]})
    )
    for layout in (1, 2):
        one, other = (addresses(each[layout] / "program") for each in (first, second))
        assert one["two"] % 4096 == other["two"] % 4096
        assert output(first[layout] / "program") == output(second[layout] / "program") == "8\n"
    assert places(first[1] / "program") != places(first[2] / "program")


def test_layouts_are_builds_of_their_own_and_are_reused(project: Project) -> None:
    revision, builder = project.commit(FILES), project.builder()
    built = build(builder, revision, MAKE)
    found = builder.relink(subject(revision), MAKE, built, (1, 2))
    assert [each.layout for each in found.values() if isinstance(each, Built)] == [1, 2]
    assert len({each.artefact for each in (built, *found.values()) if isinstance(each, Built)}) == 3
    again = project.builder().relink(subject(revision), MAKE, built, (1, 2))
    assert all(isinstance(each, Built) and each.reused for each in again.values())


def test_without_outputs_the_whole_tree_is_a_layout(project: Project) -> None:
    line = (
        "make; mkdir bin; cp program bin; printf '#!/bin/sh\\n%s/bin/program\\n' \"$PWD\" > run; chmod +x run"
    )
    found = usable(layouts(project, pinned(line, outputs=())))
    for tree in found.values():
        assert str(tree) in (tree / "run").read_text()
        assert output(tree / "run") == "8\n"
        assert (tree / "bin" / "program").read_bytes() == (tree / "program").read_bytes()
        assert (tree / "one.c").is_file()
    assert places(found[1] / "program") != places(found[2] / "program")


def test_a_program_loads_the_library_of_its_layout(project: Project) -> None:
    lines = ("cc -fPIC -shared one.c two.c -o libx.so", 'cc main.c -L. -lx -Wl,-rpath,"$PWD" -o program')
    found = usable(layouts(project, pinned(*lines, outputs=("program", "libx.so"))))
    for tree in found.values():
        loaded = output("ldd", tree / "program")
        assert f"{tree}/libx.so" in loaded
        assert output(tree / "program") == "8\n"
    assert places(found[1] / "libx.so") != places(found[2] / "libx.so")


def test_a_path_to_the_build_that_cannot_be_replaced_is_refused(project: Project) -> None:
    lines = (
        'cc -fPIC -shared one.c two.c -Wl,-soname="$PWD/libx.so" -o libx.so',
        "cc main.c libx.so -o program",
    )
    found = layouts(project, pinned(*lines, outputs=("program", "libx.so")), 1)
    assert refusal(found).startswith('"libx.so" names its build\'s directory')


def prepared(builder: LocalBuilder, built: Built, *steps: str) -> Prepared:
    found = builder.prepare(built, steps=steps, env={}, files=(), timeout_seconds=60)
    assert isinstance(found, Prepared), found
    return found


def test_a_benchmark_that_links_a_static_library_is_placed(project: Project) -> None:
    how, step = (
        pinned("cc -c one.c two.c; ar rc libx.a one.o two.o", outputs=("libx.a", "main.c")),
        ("cc {build}/main.c {build}/libx.a -o {out}/bench"),
    )
    found: dict[int, list[list[int]]] = {1: [], 2: []}
    for files in (FILES, {**FILES, "one.c": FILES["one.c"] + DEAD}):
        revision, builder = project.commit(files), project.builder()
        built = build(builder, revision, how)
        linked = prepared(builder, built, step)
        assert builder.unpinned(linked, how) == ""
        for layout, each in builder.relink(subject(revision), how, built, (1, 2)).items():
            assert isinstance(each, Built)
            program = Path(prepared(builder, each, step).out, "bench")
            assert output(program) == "8\n"
            found[layout].append(places(program))
    assert found[1][0] == found[1][1] != found[2][0] == found[2][1]


def unpinned(builder: LocalBuilder, built: Built, how: Recipe) -> str:
    return builder.unpinned(prepared(builder, built), how)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            ("make", "objcopy --remove-section .comment program moved", "cp /bin/true program"),
            "was changed after its link (.bss, .data, .data.rel.ro, …)",
        ),
        (("gcc -fsanitize=address main.c one.c two.c -o program; ./program",), "the build fails while"),
        (("make", "echo text > program"), "the build links no program"),
    ],
)
def test_a_build_that_cannot_be_placed_has_a_reason(
    project: Project, lines: tuple[str, ...], reason: str
) -> None:
    how, builder = pinned(*lines), project.builder()
    revision = project.commit(FILES)
    assert reason in unpinned(builder, build(builder, revision, how), how)


def test_recording_can_be_off(project: Project) -> None:
    how, builder, revision = replace(MAKE, pin=False), project.builder(), project.commit(FILES)
    built = build(builder, revision, how)
    assert unpinned(builder, built, how) == NOT_RECORDED
    assert not Path(built.directory).with_name("links").exists()
    again = build(builder, revision, MAKE)
    assert (again.key, again.reused, unpinned(builder, again, MAKE)) == (built.key, False, "")
    assert build(builder, revision, how).reused


def test_builders_of_other_machines_record_nothing(project: Project) -> None:
    revision, how = project.commit(FILES), MAKE
    own = project.builder()
    other = CleanBuilder(
        own._runner.trees.of(how),
        project.launcher,
        builds=str(project.builds),
        logs=str(project.root / "logs"),
        study_directory=str(project.root),
        cpus=1,
    )
    assert unpinned(other, build(other, revision, how), how) == NOT_RECORDED


def test_reused_trees_are_not_recorded(project: Project) -> None:
    how, builder = replace(MAKE, incremental=True), project.builder()
    built = build(builder, project.commit(FILES), how)
    assert unpinned(builder, built, how) == "links of builds in reused trees are not recorded"


def test_a_failing_build_fails_like_without_recording(project: Project) -> None:
    failed = project.failed(project.commit(FILES), pinned("make", "exit 3"))
    assert (failed.stage, failed.message) == ("build", "exit code 3: exit 3")


def test_a_recorded_build_ends_at_its_timeout_with_all_its_processes(project: Project) -> None:
    how = replace(pinned("sleep 77 & sleep 78"), timeout_seconds=2.0)
    failed = project.failed(project.commit(FILES), how)
    assert "timed out" in failed.message
    assert failed.seconds < 30
    assert subprocess.run(["pgrep", "-f", "^sleep 7[78]$"], check=False, capture_output=True).stdout == b""


def test_a_process_that_the_build_leaves_behind_is_killed(project: Project) -> None:
    build(project.builder(), project.commit(FILES), pinned("sleep 79 & make"))
    assert subprocess.run(["pgrep", "-f", "^sleep 79$"], check=False, capture_output=True).stdout == b""


def test_a_build_that_was_removed_may_be_pinned_again(project: Project) -> None:
    revision, builder = project.commit(FILES), project.builder()
    built = build(builder, revision, MAKE)
    linked = prepared(builder, built)
    shutil.rmtree(Path(built.directory).parent)
    assert builder.unpinned(linked, MAKE) == ""


@needs("/usr/lib/ccache/cc")
def test_objects_from_a_cache_are_placed(project: Project) -> None:
    usable(layouts(project, MAKE))
    shutil.rmtree(project.builds / "logs", ignore_errors=True)
    found = usable(layouts(project, MAKE, files={**FILES, "note": "the objects are in the cache"}))
    assert places(found[1] / "program") != places(found[2] / "program")


def test_the_disk_space_of_a_record_counts(project: Project) -> None:
    built = build(project.builder(), project.commit(FILES), MAKE)
    home = Path(built.directory).parent
    size = json.loads((home / "built.json").read_text())["bytes"]
    assert size > sum(path.stat().st_size for path in (home / "links").rglob("*") if path.is_file())


def test_a_layout_shares_the_other_files_of_its_build(project: Project) -> None:
    found = usable(layouts(project, pinned("make", "seq 100000 > numbers")))
    assert all((tree / "numbers").samefile(found[1] / "numbers") for tree in found.values())
    sizes = [json.loads((tree.parent / "built.json").read_text())["bytes"] for tree in found.values()]
    assert max(sizes) < (found[1] / "numbers").stat().st_size


def test_a_program_finds_its_plug_in_in_its_layout(project: Project) -> None:
    main = "#include <stdio.h>\nint main(void) { puts(PLUGIN); return 0; }\n"
    lines = (
        "cc -fPIC -shared one.c -o plugin.so",
        """cc -DPLUGIN="\\"$PWD/plugin.so\\"" main.c -o program""",
    )
    how = pinned(*lines, outputs=("program", "plugin.so"))
    for tree in usable(layouts(project, how, files={**FILES, "main.c": main})).values():
        assert output(tree / "program").strip() == str(tree / "plugin.so")
