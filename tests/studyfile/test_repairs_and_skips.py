"""Repairs and skips in a study file, and each mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.model.plan import recipe_of
from tests.studyfile.studies import complaints, read

GIT = """\
[source]
kind = "git"
location = "repository"

[benchmark.it]
command = "true"

"""
BUILD = "[build]\n"
SKIP = "[[source.skip]]\n"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "compat/empty").mkdir(parents=True)
    for name in ("compat/fcntl.h", "compat/other.h", "old.patch", "new.patch"):
        (tmp_path / name).write_text("text\n")
    return tmp_path


def test_repairs_of_all_that_fit_add_up_and_the_later_wins_a_place(study: Path) -> None:
    loaded = read(
        study,
        GIT
        + """\
[build]
steps = ["make"]
overlay = { "compat/fcntl.h" = "include/fcntl.h" }
patch = ["old.patch"]

[[build.when]]
range = "..v1"
steps = ["old make"]
overlay = { "compat/other.h" = "./include/fcntl.h" }
patch = ["new.patch", "old.patch"]

[[build.when]]
range = "..v2"
steps = ["older make"]

[variants.plain]
[variants.patched]
build.overlay = { "compat/other.h" = "other.h" }
[variants.shared]
rebuild = false
""",
    )
    eras = loaded.build.when
    assert recipe_of(loaded, "plain", []).repairs.overlay == {"include/fcntl.h": "compat/fcntl.h"}
    both = recipe_of(loaded, "patched", eras)
    assert both.steps == ("older make",)
    assert both.repairs.overlay == {"include/fcntl.h": "compat/other.h", "other.h": "compat/other.h"}
    assert both.repairs.patches == ("old.patch", "new.patch")
    assert recipe_of(loaded, "shared", eras) == recipe_of(loaded, "plain", eras)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'overlay = { "compat/fcntl" = "a.h" }',
            'overlay."compat/fcntl": "compat/fcntl" is not in the study\'s directory; '
            'did you mean "compat/fcntl.h"?',
        ),
        (
            'overlay = { "compat" = "a" }',
            'overlay.compat: "compat" is not a file; name each file of a directory',
        ),
        (
            'overlay = { "../x" = "a" }',
            'overlay."../x": "../x" may leave the study\'s directory; write it without ".."',
        ),
        (
            'overlay = { "/x" = "a" }',
            'overlay."/x": "/x" is not below the study\'s directory; copy the file into it',
        ),
        (
            'overlay = { "compat/fcntl.h" = "../a" }',
            'overlay."compat/fcntl.h": "../a" may leave the revision\'s root; write it without ".."',
        ),
        (
            'overlay = { "compat/fcntl.h" = "include/" }',
            'overlay."compat/fcntl.h": "include/" is a directory; name the file in it',
        ),
        (
            'overlay = { "compat/fcntl.h" = "./.git/config" }',
            'overlay."compat/fcntl.h": "./.git/config" belongs to git; choose another path',
        ),
        (
            'overlay = { "compat/fcntl.h" = "a", "compat/other.h" = "./a" }',
            'overlay."compat/other.h": has the same target as "compat/fcntl.h": "./a"',
        ),
        (
            'patch = ["odl.patch"]',
            'patch: "odl.patch" is not in the study\'s directory; did you mean "old.patch"?',
        ),
        ('patch = "old.patch"', 'patch: expected a list, not the text "old.patch"; write it in [ ]'),
    ],
)
def test_a_repair_that_cannot_be_made_is_reported(study: Path, line: str, expected: str) -> None:
    assert complaints(study, GIT + BUILD + line) == [f"perftrail.toml:9: build.{expected}"]


def test_an_era_and_a_variant_are_checked_alike(study: Path) -> None:
    text = GIT + '[[build.when]]\nrange = "..v1"\npatch = ["no"]\n[variants.a]\nbuild.patch = ["no"]\n'
    assert [each.split(": ")[1] for each in complaints(study, text)] == [
        "build.when[0].patch",
        "variants.a.build.patch",
    ]


def test_skips_are_read(study: Path) -> None:
    loaded = read(
        study, GIT + SKIP + 'revision = "v1"\nreason = "hangs"\n' + SKIP + 'range = "..v0"\nreason = "old"\n'
    )
    assert [(each.revision, each.range, each.reason) for each in loaded.source.skip] == [
        ("v1", None, "hangs"),
        (None, "..v0", "old"),
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            'revision = "v1"\n',
            ["8: source.skip[0].reason: missing; why perftrail must not build them, for later readers"],
        ),
        (
            'revision = "v1"\nreason = " "\n',
            ["10: source.skip[0].reason: is empty; write why perftrail must skip these revisions"],
        ),
        ('reason = "old"\n', ['8: source.skip[0]: names no revision; write revision = "…" or range = "OLD..NEW"']),
        (
            'reason = "old"\nrevison = "v1"\n',
            ['10: source.skip[0].revison: unknown key; did you mean "revision"?'],
        ),
        (
            'reason = "old"\nrange = "..v2"\nrevision = "v1"\n',
            ["11: source.skip[0].revision: occurs together with range; write an entry for each"],
        ),
        ('reason = "old"\nrevision = "a..b"\n', ['10: source.skip[0].revision: "a..b" is a range; name one revision']),
        (
            'reason = "old"\nrevision = "-x"\n',
            ['10: source.skip[0].revision: "-x": a revision cannot begin with "-"'],
        ),
    ],
)  # fmt: skip
def test_an_invalid_skip_is_reported(study: Path, lines: str, expected: list[str]) -> None:
    assert complaints(study, GIT + SKIP + lines) == [f"perftrail.toml:{each}" for each in expected]


def test_a_directory_has_nothing_to_skip(study: Path) -> None:
    text = GIT.replace('"git"', '"directory"') + SKIP + 'revision = "v1"\nreason = "old"\n'
    assert complaints(study, text) == [
        "perftrail.toml:8: source.skip: does not apply to a directory source, only to git, fossil or release"
    ]
