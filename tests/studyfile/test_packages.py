"""What a study may say of a package, and what it is told about the rest."""

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
    ("location", "said"),
    [
        ("crate:serde", '"crate:serde" is no package; did you mean "crates:serde"?'),
        ("gems:rails", '"gems:rails" is no package; write pypi:NAME, crates:NAME, npm:NAME or debian:NAME'),
        ("crates:--config=x", '"--config=x" is no name of a package; write crates:NAME'),
        ("crates:../x", '"../x" is no name of a package'),
        ("npm:user/repository", '"user/repository" is no name of a package'),
        ("npm:x@1.0.0", '"x@1.0.0" is no name of a package; write npm:NAME, versions go into source.range'),
        ("npm:-x", '"-x" is no name of a package'),
        ("debian:lz4=1.0", '"lz4=1.0" is no name of a package'),
        ("debian:lz4/sid", '"lz4/sid" is no name of a package'),
        ("https://example.org/x", "is an address; releases are of a package, as pypi:NAME"),
        ("pypi:", '"" is no name of a package'),
    ],
)
def test_what_names_no_package_is_told(location: str, said: str, tmp_path: Path) -> None:
    [complaint] = complaints(tmp_path, study(location))
    assert complaint.startswith("perftrail.toml:3: source.location: ")
    assert said in complaint


@pytest.mark.parametrize(
    ("location", "keys", "said"),
    [
        ("crates:x", 'requires = ["y"]', "requires: says nothing about crates packages; it is for pypi"),
        ("npm:x", 'distribution = "sdist"', "distribution: says nothing about npm packages; it is for pypi"),
        ("debian:lz4", "yanked = true", "yanked: says nothing about debian packages; it is for pypi, crates"),
        ("pypi:x", 'distribution = "egg"', 'distribution: "egg" is no choice; choose wheel or sdist'),
        ("crates:x", 'index = "file:///x"', 'index: "file:///x" is no address'),
        ("npm:x", 'index = "https://x.org --y"', "is no address"),
        ("debian:lz4", 'index = "https://x.org"', "names no archive; write it as in sources.list"),
        ("debian:lz4", 'index = "deb https://x.org sid main"', "names no archive"),
        ("debian:lz4", 'index = "deb sid main"', "names no archive"),
        ("debian:lz4", 'index = "sid"', "names no archive"),
        ("debian:lz4", 'index = "sid -main"', "names no archive"),
        ("debian:lz4", 'index = "example.org:sid main"', "names no archive"),
        ("debian:lz4", 'index = ""', '"" names no archive'),
    ],
)
def test_a_key_fits_its_ecosystem(location: str, keys: str, said: str, tmp_path: Path) -> None:
    [complaint] = complaints(tmp_path, study(location, keys))
    assert complaint.startswith("perftrail.toml:4: source.")
    assert said in complaint
