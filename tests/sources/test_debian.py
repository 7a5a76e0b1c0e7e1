"""Debian source packages from an archive in a directory, with the real apt and dpkg-source."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.packages.debian import DebianVersion
from perftrail.sources.packages.release import ReleaseSource
from tests.sources.debian_archive import DebianArchive, needs_apt
from tests.sources.releases import ids, open_releases

pytestmark = needs_apt

NAME = "perftrail-planted"
Open = Callable[..., ReleaseSource]


@pytest.fixture
def archive(tmp_path: Path) -> DebianArchive:
    debian = DebianArchive(tmp_path / "archive")
    for version in ("1.10-1", "1.9-1", "1.10-1+deb12u1", "2.0~rc1-1", "1:0.5-1"):
        debian.add(NAME, version, {"planted.c": version})
    debian.add("perftrail-other", "7.0-1", {"planted.c": "another"})
    return debian


@pytest.fixture
def opened(tmp_path: Path, archive: DebianArchive) -> Iterator[Open]:
    with Launcher() as launcher:

        def open_it(location: str = f"debian:{NAME}", **options: object) -> ReleaseSource:
            return open_releases(
                location, cache=tmp_path / "cache", starter=launcher, **{"index": archive.index, **options}
            )

        yield open_it


def test_versions_are_in_the_order_of_dpkg(opened: Open) -> None:
    assert ids(opened().history()) == ["1.9-1", "1.10-1", "1.10-1+deb12u1", "1:0.5-1"]
    assert "2.0~rc1-1" in ids(opened(prereleases=True).history())
    assert ids(opened(range="1.9-1..1.10-1").history()) == ["1.9-1", "1.10-1"]


def test_an_end_that_is_no_version_there_is_explained(opened: Open) -> None:
    with pytest.raises(SourceError, match=r'no release "1\.9".*did you mean "1\.9-1"'):
        opened(range="1.9..1.10-1").history()
    with pytest.raises(SourceError, match="is a pre-release"):
        opened(range="1.9-1..2.0~rc1-1").history()


def test_a_version_is_unpacked_with_its_epoch_in_its_name(opened: Open, tmp_path: Path) -> None:
    opened().materialise(Revision(id="1:0.5-1"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "planted.c").read_text() == "1:0.5-1"


def test_a_version_is_downloaded_once(opened: Open, archive: DebianArchive, tmp_path: Path) -> None:
    source = opened()
    source.materialise(Revision(id="1.9-1"), str(tmp_path / "one"), str(tmp_path / "log"))
    for path in archive.directory.glob(f"{NAME}_1.9-1*"):
        path.unlink()
    source.materialise(Revision(id="1.9-1"), str(tmp_path / "two"), str(tmp_path / "log"))
    assert (tmp_path / "two" / "planted.c").read_text() == "1.9-1"


def test_a_missing_or_changed_version_fails_alone(
    opened: Open, archive: DebianArchive, tmp_path: Path
) -> None:
    source = opened()
    (archive.directory / f"{NAME}_1.9-1.tar.gz").unlink()
    (archive.directory / f"{NAME}_1.10-1.tar.gz").write_bytes(b"x" * 1000)
    for id, words in (("1.9-1", "apt cannot fetch"), ("1.10-1", "apt cannot fetch"), ("3.0-1", "no version")):
        with pytest.raises(CheckoutFailed, match=words):
            source.materialise(Revision(id=id), str(tmp_path / id), str(tmp_path / "log"))
        assert not (tmp_path / id).exists()


def test_only_the_package_of_that_name_is_meant(opened: Open) -> None:
    assert ids(opened("debian:perftrail-other").history()) == ["7.0-1"]
    with pytest.raises(SourceError, match='"debian:perftrail": no such source package'):
        opened("debian:perftrail").history()


def test_archives_that_are_not_there_are_explained(opened: Open, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"source.index: apt cannot read these archives"):
        opened(index=f"[trusted=yes] file:{tmp_path}/nowhere ./").history()


def test_answers_of_the_archives_are_cached_with_their_age_and_requested_again_on_demand(
    opened: Open, archive: DebianArchive
) -> None:
    assert opened().updated() == ""
    before = ids(opened().history())
    archive.add(NAME, "1.11-1", {"planted.c": "new"})
    kept = opened()
    updated = datetime.fromisoformat(kept.updated())
    assert abs((datetime.now(tz=UTC) - updated).total_seconds()) < 600
    assert ids(kept.history()) == before
    kept.update()
    assert kept.updated() == ""
    assert ids(kept.history()) == ["1.9-1", "1.10-1", "1.10-1+deb12u1", "1.11-1", "1:0.5-1"]
    assert ids(opened().history()) == ids(kept.history())


def test_cached_answers_need_no_archive(opened: Open, archive: DebianArchive) -> None:
    before = opened().history()
    archive.directory.rename(archive.directory.with_name("gone"))
    kept = opened()
    assert kept.history() == before
    assert kept.content(before[0])
    with pytest.raises(SourceError, match="cannot read these archives"):
        kept.update()


def test_answers_that_are_not_cached_are_requested_from_the_archives(
    opened: Open, archive: DebianArchive
) -> None:
    opened().history()
    archive.add(NAME, "1.11-1", {"planted.c": "new"})
    assert ids(opened(range="1.10-1..1.11-1").history())[-1] == "1.11-1"
    archive.add("perftrail-late", "1.0-1", {"planted.c": "late"})
    assert ids(opened("debian:perftrail-late").history()) == ["1.0-1"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a machine's apt, without an archive so far."""
    directory = tmp_path / "machine"
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (directory / name).mkdir(parents=True)
    (directory / "status").touch()
    (directory / "sources.list").touch()
    (directory / "apt.conf").write_text(
        f'Dir::State "{directory}";\nDir::State::status "{directory}/status";\nDir::Cache "{directory}/cache";\n'
        f'Dir::Etc::sourcelist "{directory}/sources.list";\nDir::Etc::sourceparts "{directory}/parts";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(directory / "apt.conf"))
    return directory


def test_the_archives_are_those_of_apts_settings(opened: Open, archive: DebianArchive, machine: Path) -> None:
    with pytest.raises(SourceError, match="no archives of sources; add lines that begin with deb-src"):
        opened(index=None).history()
    (machine / "sources.list").write_text(f"deb-src {archive.index}\n")
    subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
    assert ids(opened(index=None).history())[0] == "1.9-1"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("sources.list", "# the machine's\ndeb [trusted=yes] {address} ./\n"),
        ("parts/one.list", "deb [trusted=yes] {address} ./\n"),
        ("parts/one.sources", "Types: deb\nURIs: {address}\nSuites: ./\nTrusted: yes\n"),
    ],
)
def test_of_a_machine_that_lists_programs_only_the_same_archives_sources_are_meant(
    opened: Open, archive: DebianArchive, machine: Path, tmp_path: Path, file: str, text: str
) -> None:
    (machine / file).write_text(text.format(address=f"file:{archive.directory}"))
    (machine / "parts" / "vendor.list").write_text(f"deb [trusted=yes] file:{tmp_path}/nowhere ./\n")
    source = opened(index=None)
    assert ids(source.history())[0] == "1.9-1"
    source.materialise(Revision(id="1.9-1"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "planted.c").read_text() == "1.9-1"


def test_a_machine_none_of_whose_archives_can_be_read_is_explained(
    opened: Open, machine: Path, tmp_path: Path
) -> None:
    (machine / "sources.list").write_text(f"deb [trusted=yes] file:{tmp_path}/nowhere ./\n")
    with pytest.raises(
        SourceError, match=r"apt cannot read the sources of this machine's archives: .*nowhere"
    ):
        opened(index=None).history()


def test_an_archive_without_an_address_is_the_one_that_the_machine_comes_from(
    opened: Open, archive: DebianArchive, machine: Path
) -> None:
    with pytest.raises(SourceError, match=r'"\[trusted=yes\] \./" names no address.*run apt-get update'):
        opened(index="[trusted=yes] ./").history()
    archive.add("dpkg", "1.0-1", {"dpkg.c": "1.0-1"})
    (machine / "sources.list").write_text(f"deb-src {archive.index}\n")
    subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
    assert ids(opened(index="[trusted=yes] ./").history())[0] == "1.9-1"


def test_without_apt_the_error_names_what_to_install(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match=r"apt-get is not installed.*install apt"):
        opened().history()


PARTS = st.text("01a.+~", max_size=4)
VERSIONS = st.builds(
    lambda epoch, upstream, revision: f"{epoch}{upstream}{revision}",
    st.sampled_from(["", "0:", "1:"]),
    st.builds(lambda first, rest: f"{first}{rest}", st.sampled_from("012"), PARTS),
    st.sampled_from(["", "-0", "-1", "-1~", "-1+b"]),
)


def assert_compared_as_dpkg_does(one: str, other: str) -> None:
    first, second = DebianVersion.read(one), DebianVersion.read(other)
    relation = "lt" if first < second else "eq" if first == second else "gt"
    compared = subprocess.run(["dpkg", "--compare-versions", one, relation, other], check=False)
    assert compared.returncode == 0, (one, relation, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.9", "1.10"),
        ("1.0~a", "1.0"),
        ("1.0", "1.0-0"),
        ("1.0-1~", "1.0-1"),
        ("1.0-1+b", "1.0-1"),
        ("0:2", "2"),
        ("1:0", "2"),
        ("1.a", "1.+"),
        ("1.0", "1.00"),
        ("1~~", "1~"),
    ],
)
def test_two_versions_compare_as_dpkg_compares_them(one: str, other: str) -> None:
    assert_compared_as_dpkg_does(one, other)
    assert_compared_as_dpkg_does(other, one)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(VERSIONS, VERSIONS)
def test_any_two_versions_compare_as_dpkg_compares_them(one: str, other: str) -> None:
    assert_compared_as_dpkg_does(one, other)


@pytest.mark.parametrize("written", ["1.0-" + "9" * 5000, "9" * 5000])
def test_an_absurdly_long_version_is_not_a_version(written: str) -> None:
    with pytest.raises(SourceError, match="is not a version of a Debian package"):
        DebianVersion.read(written)
