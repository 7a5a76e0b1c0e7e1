"""Keys of relinking in a study file, and each mistake in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.plan import Cell, benchmark_steps, recipe_of
from perftrail.model.subject import Revision, Subject
from tests.studyfile.studies import complaints, read

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[source]
kind = "git"
location = "."

[benchmark.it]
command = "true"
{benchmark}

[build]
steps = ["make"]
{build}
"""


def study(*, build: str = "", benchmark: str = "") -> str:
    return STUDY.format(build=build, benchmark=benchmark)


def test_a_recipe_that_relinks_is_read(tmp_path: Path) -> None:
    lines = 'outputs = ["a"]\nrelink = ["rm a", "make LDFLAGS=-Wl,--seed={layout}"]'
    assert recipe_of(read(tmp_path, study(build=lines)), "plain", ()).relink == (
        "rm a",
        "make LDFLAGS=-Wl,--seed={layout}",
    )


def test_eras_and_variants_relink_in_their_own_way(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        study(
            build='outputs = ["a"]\nrelink = ["one {layout}"]\n'
            'when = [{ range = "..v1", relink = ["two {layout}"] }, { range = "..v0", relink = [] }]\n'
            "[variants.plain]\n[variants.other]\nbuild.relink = ['three {layout}']"
        ),
    )
    eras = found.build.when
    assert recipe_of(found, "plain", eras[:1]).relink == ("two {layout}",)
    assert recipe_of(found, "plain", eras).relink == ()
    assert recipe_of(found, "other", eras).relink == ("three {layout}",)


def test_a_benchmark_relinks_after_its_build_for_layouts_only(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        study(benchmark="build = ['cc -c {study}/a.c']\nrelink = ['ld --seed={layout} -o {out}/a {cpus}']"),
    )
    cell = Cell(subject=Subject(revision=Revision(id="r"), variant="plain"), benchmark="it", point=Point())
    assert benchmark_steps(found, cell) == ("cc -c {study}/a.c",)
    assert benchmark_steps(found, cell, layout=3) == ("cc -c {study}/a.c", "ld --seed=3 -o {out}/a {cpus}")


@pytest.mark.parametrize("key", ["build", "benchmark"])
def test_lines_that_relink_use_the_seed(tmp_path: Path, key: str) -> None:
    lines = 'relink = ["make"]\n' + ('outputs = ["a"]' if key == "build" else "")
    (complaint,) = complaints(tmp_path, study(**{key: lines}))
    line, path = (11, "build.relink") if key == "build" else (7, "benchmark.it.relink")
    assert complaint.startswith(f"perftrail.toml:{line}: {path}: must use {{layout}}, or every layout")


@pytest.mark.parametrize("key", ["build", "benchmark"])
def test_a_seed_that_is_misspelt_is_reported_once(tmp_path: Path, key: str) -> None:
    lines = 'relink = ["make {layot}"]\n' + ('outputs = ["a"]' if key == "build" else "")
    (complaint,) = complaints(tmp_path, study(**{key: lines}))
    assert "unknown placeholder {layot}; did you mean {layout}?" in complaint


def test_only_the_outputs_of_a_relinked_build_are_kept_so_they_must_be_named(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, study(build='relink = ["make {layout}"]'))
    assert complaint.startswith(
        "perftrail.toml:11: build.relink: needs outputs, because a relinked build stores nothing else"
    )


def test_the_same_applies_to_eras_and_variants(tmp_path: Path) -> None:
    lines = (
        'when = [{ range = "..v1", relink = ["two {layout}"] }]\n'
        "[variants.plain]\n[variants.other]\nbuild.relink = ['three']"
    )
    reported = complaints(tmp_path, study(build=lines))
    assert [each.split(": ")[1] for each in reported] == [
        "build.when[0].relink",
        "variants.other.build.relink",
        "variants.other.build.relink",
    ]
    assert "must use {layout}" in reported[1]
    assert "needs outputs" in reported[2]


@pytest.mark.parametrize(
    ("build", "benchmark", "key"),
    [
        ('steps = ["make {layout}"]', "", "build.steps"),
        ('env = { A = "{layout}" }', "", "build.env.A"),
        ("", 'build = ["make {layout}"]', "benchmark.it.build"),
        ("", 'env = { A = "{layout}" }', "benchmark.it.env.A"),
        ("", 'stdin = "{layout}"', "benchmark.it.stdin"),
    ],
)
def test_the_seed_has_no_value_elsewhere(tmp_path: Path, build: str, benchmark: str, key: str) -> None:
    text = study(build=build, benchmark=benchmark)
    text = text.replace('steps = ["make"]\n', "") if "steps" in build else text
    (complaint,) = complaints(tmp_path, text)
    assert f": {key}: {{layout}} has a value in relink lines only" in complaint


def test_a_command_has_no_seed(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, study().replace('"true"', '"true {layout}"'))
    assert ": benchmark.it.command: {layout} has a value in relink lines only" in complaint


def test_no_parameter_and_no_part_is_called_as_the_seed(tmp_path: Path) -> None:
    text = study(
        benchmark="parameters = { layout = [1] }",
        build="[variants.plain]\nrun.parts = { layout = 'x' }",
    )
    reported = complaints(tmp_path, text)
    assert [each.split(": ")[1] for each in reported] == [
        "benchmark.it.parameters.layout",
        "variants.plain.run.parts.layout",
    ]
    assert all("is already in use" in each for each in reported)


def test_a_key_that_is_misspelt_is_suggested(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, study(build='outputs = ["a"]\nrelnik = ["make {layout}"]'))
    assert 'did you mean "relink"?' in complaint
