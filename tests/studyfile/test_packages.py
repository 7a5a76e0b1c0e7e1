"""Keys of packages in a study file, and the errors of other keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studyfile.studies import complaints, read

STUDY = """\
[source]
kind = "release"
location = "{location}"
{keys}
[benchmark.it]
command = "true"
"""


def study(location: str, keys: str = "") -> str:
    return STUDY.format(location=location, keys=keys)


@pytest.mark.parametrize(
    ("location", "keys"),
    [
        ("pypi:typing_extensions", 'distribution = "sdist"\nindex = "https://example.org/simple"'),
        ("crates:serde_json", 'yanked = true\nindex = "https://example.org/index"'),
        ("npm:left-pad", "prereleases = true"),
        ("npm:@scope/name", 'index = "http://127.0.0.1:8080/"'),
        ("debian:libstdc++6", 'range = "1:1.0~rc1-2..2.0-1+deb12u1"'),
        ("debian:lz4", "index = '''\nhttps://example.org/debian sid main\n[trusted=yes] file:/var/x ./\n'''"),
        ("debian:lz4", "index = '''\ntrixie main contrib\n[check-valid-until=no] sid main\n./\n'''"),
        ("debian:lz4", 'index = "deb-src [check-valid-until=no] http://example.org/d sid main contrib"'),
    ],
)
def test_a_package_of_each_ecosystem_is_taken(location: str, keys: str, tmp_path: Path) -> None:
    assert read(tmp_path, study(location, keys)).source.location == location


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("crate:serde", '"crate:serde" is not a valid package; did you mean "crates:serde"?'),
        (
            "gems:rails",
            '"gems:rails" is not a valid package; write pypi:NAME, crates:NAME, npm:NAME or debian:NAME',
        ),
        ("crates:--config=x", '"--config=x" is not a valid package name; write crates:NAME'),
        ("crates:../x", '"../x" is not a valid package name'),
        ("npm:user/repository", '"user/repository" is not a valid package name'),
        (
            "npm:x@1.0.0",
            '"x@1.0.0" is not a valid package name; write npm:NAME, versions go into source.range',
        ),
        ("npm:-x", '"-x" is not a valid package name'),
        ("debian:lz4=1.0", '"lz4=1.0" is not a valid package name'),
        ("debian:lz4/sid", '"lz4/sid" is not a valid package name'),
        ("https://example.org/x", "is an address; write a package, for example pypi:NAME"),
        ("pypi:", '"" is not a valid package name'),
    ],
)
def test_a_name_that_is_not_a_package_is_reported(location: str, expected: str, tmp_path: Path) -> None:
    [complaint] = complaints(tmp_path, study(location))
    assert complaint.startswith("perftrail.toml:3: source.location: ")
    assert expected in complaint


@pytest.mark.parametrize(
    ("location", "keys", "expected"),
    [
        ("crates:x", 'requires = ["y"]', "requires: does not apply to crates packages, only to pypi"),
        ("npm:x", 'distribution = "sdist"', "distribution: does not apply to npm packages, only to pypi"),
        ("debian:lz4", "yanked = true", "yanked: does not apply to debian packages, only to pypi, crates"),
        (
            "pypi:x",
            'distribution = "egg"',
            'distribution: "egg" is not a valid choice; choose wheel or sdist',
        ),
        ("crates:x", 'index = "file:///x"', 'index: "file:///x" is not a valid address'),
        ("npm:x", 'index = "https://x.org --y"', "is not a valid address"),
        ("debian:lz4", 'index = "https://x.org"', "is not a valid archive; write it as in sources.list"),
        ("debian:lz4", 'index = "deb https://x.org sid main"', "is not a valid archive"),
        ("debian:lz4", 'index = "deb sid main"', "is not a valid archive"),
        ("debian:lz4", 'index = "sid"', "is not a valid archive"),
        ("debian:lz4", 'index = "sid -main"', "is not a valid archive"),
        ("debian:lz4", 'index = "example.org:sid main"', "is not a valid archive"),
        ("debian:lz4", 'index = ""', '"" is not a valid archive'),
    ],
)
def test_a_key_fits_its_ecosystem(location: str, keys: str, expected: str, tmp_path: Path) -> None:
    [complaint] = complaints(tmp_path, study(location, keys))
    assert complaint.startswith("perftrail.toml:4: source.")
    assert expected in complaint
