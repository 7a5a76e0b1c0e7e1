"""Studies with several sources: their values, and mistakes in their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studyfile.studies import complaints, read

TWO = """\
[study]
along = "app"

[source]
kind = "git"
location = "repository"
at = "v1.2"

[sources.app]
kind = "directory"
location = "."

[build]
steps = ["make APP={source.app}"]
outputs = ["library.a", "{source.app}/bin/*"]

[benchmark.it]
build = ["cc -o {out}/it {source.app}/it.c"]
command = "{out}/it {source.app}/data"
"""


def test_each_source_has_its_place_and_its_pin(tmp_path: Path) -> None:
    study = read(tmp_path, TWO)
    assert (study.along, study.source.at) == ("app", "v1.2")
    assert {name: each.location for name, each in study.every_source.items()} == {
        "main": str(tmp_path / "repository"),
        "app": str(tmp_path),
    }
    assert study.searched_source is study.sources["app"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('along = "app"', 'along = "ap"', ['2: study.along: no source "ap"; did you mean "app"?']),
        (
            'at = "v1.2"',
            'at = "v1..v2"',
            ['7: source.at: "v1..v2" is a range; name one revision'],
        ),
        (
            'location = "."',
            'location = "gone"',
            ['11: sources.app.location: "gone" (gone) does not exist'],
        ),
        (
            'location = "."',
            'location = "."\nat = "v1"',
            ["12: sources.app.at: does not apply to a directory source, only to git, fossil or release"],
        ),
        (
            'kind = "directory"\n',
            "",
            ["9: sources.app.kind: missing; kind of the history"],
        ),
        (
            "make APP={source.app}",
            "make APP={source.application}",
            [
                "14: build.steps: unknown placeholder {source.application}; did you mean {source.app}? "
                "(for the text itself, write {{source.application}})"
            ],
        ),
        (
            '"{source.app}/bin/*"',
            '"{source.app}/../*"',
            ['15: build.outputs: "../*" may leave that source\'s tree; write it without ".."'],
        ),
        (
            "[build]",
            '[sources.main]\nkind = "directory"\nlocation = "."\n\n[build]',
            ['13: sources.main: "main" is the name of [source]; choose another name'],
        ),
        (
            "[build]",
            '[sources.data]\nkind = "directory"\nlocation = "."\n\n[build]',
            [
                "13: sources.data: nothing uses it; write {source.data} in build.steps or in a benchmark's lines"
            ],
        ),
        (
            "[build]",
            '[sources."a b"]\nkind = "directory"\nlocation = "."\n\n[build]',
            [
                '13: sources."a b": "a b" is not a valid name here; use letters, digits, _ and -, a letter first'
            ],
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_remedy(
    tmp_path: Path, old: str, new: str, expected: list[str]
) -> None:
    assert TWO.count(old) == 1
    found = complaints(tmp_path, TWO.replace(old, new))
    assert found == [f"perftrail.toml:{each}" for each in expected]


def test_a_placeholder_of_no_source_says_what_to_write(tmp_path: Path) -> None:
    text = '[source]\nkind = "directory"\nlocation = "."\n[benchmark.it]\ncommand = "{source.app}/it"\n'
    assert complaints(tmp_path, text) == [
        "perftrail.toml:5: benchmark.it.command: {source.app} names no source; "
        "write [sources.app] with its kind and location"
    ]


def test_a_folder_of_a_variant_is_for_directories(tmp_path: Path) -> None:
    text = TWO.replace("[build]", '[variants.a]\ndirectory = "a"\n\n[build]')
    assert complaints(tmp_path, text) == [
        "perftrail.toml:14: variants.a.directory: is for a directory source; in a git one write build.directory"
    ]
