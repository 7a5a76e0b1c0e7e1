"""Crates from a registry on loopback, with the real cargo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.packages.release import ReleaseSource
from tests.sources.crates import CrateRegistry, needs_cargo, serving
from tests.sources.releases import ids, open_releases

pytestmark = needs_cargo

NAME = "perftrail-planted"
Open = Callable[..., ReleaseSource]


@pytest.fixture
def registry() -> Iterator[CrateRegistry]:
    with serving(CrateRegistry()) as served:
        for version in ("0.9.0", "0.10.0", "1.0.0-rc.1", "1.0.0"):
            served.add(NAME, version, {"Cargo.toml": f'version = "{version}"'})
        served.add(NAME, "0.11.0", {"Cargo.toml": "broken"}, yanked=True)
        yield served


@pytest.fixture
def opened(tmp_path: Path, registry: CrateRegistry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "nobodys"))
    with Launcher() as launcher:

        def open_it(location: str = f"crates:{NAME}", **options: object) -> ReleaseSource:
            return open_releases(
                location, cache=tmp_path / "cache", starter=launcher, **{"index": registry.index, **options}
            )

        yield open_it


def test_releases_are_in_the_order_of_semantic_versions_with_their_dates(opened: Open) -> None:
    history = opened().history()
    assert ids(history) == ["0.9.0", "0.10.0", "1.0.0"]
    assert history[0].time == "2020-01-01T00:00:00Z"
    assert ids(opened(yanked=True).history()) == ["0.9.0", "0.10.0", "0.11.0", "1.0.0"]
    assert ids(opened(prereleases=True, range="0.10..1.0").history()) == ["0.10.0", "1.0.0-rc.1", "1.0.0"]


def test_an_end_that_was_yanked_is_explained(opened: Open) -> None:
    with pytest.raises(SourceError, match=r"was yanked; set source.yanked = true"):
        opened(range="0.11..1").history()


def test_a_crate_is_downloaded_once_and_unpacked(
    opened: Open, registry: CrateRegistry, tmp_path: Path
) -> None:
    for number in range(2):
        tree = tmp_path / f"tree{number}"
        opened().materialise(Revision(id="0.9.0"), str(tree), str(tmp_path / "log"))
        assert (tree / "Cargo.toml").read_text() == 'version = "0.9.0"'
    assert registry.requests.count(f"/crates/{NAME}/0.9.0.crate") == 1


def test_a_yanked_crate_can_be_had(opened: Open, tmp_path: Path) -> None:
    opened(yanked=True).materialise(Revision(id="0.11.0"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "Cargo.toml").read_text() == "broken"


def test_a_missing_or_changed_release_fails_alone(
    opened: Open, registry: CrateRegistry, tmp_path: Path
) -> None:
    source = opened()
    history = source.history()
    del registry.files[f"crates/{NAME}/0.9.0.crate"]
    registry.files[f"crates/{NAME}/0.10.0.crate"] = b"changed"
    for revision, words in zip(history, ("404", "wrong checksum", ""), strict=True):
        if words:
            with pytest.raises(CheckoutFailed, match=words):
                source.materialise(revision, str(tmp_path / revision.id), str(tmp_path / "log"))
        else:
            source.materialise(revision, str(tmp_path / revision.id), str(tmp_path / "log"))
    assert not (tmp_path / "0.9.0").exists()
    assert "404" in (tmp_path / "log").read_text()


def test_content_follows_the_archive(opened: Open) -> None:
    source = opened()
    one, two, three = map(source.content, source.history())
    assert len({one, two, three}) == 3
    assert opened().content(Revision(id="0.9.0")) == one


def test_cargos_settings_can_replace_the_usual_registry(
    opened: Open, registry: CrateRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "cargo-home"
    home.mkdir()
    (home / "config.toml").write_text(
        '[source.crates-io]\nreplace-with = "mirror"\n'
        f'[source.mirror]\nregistry = "sparse+{registry.index}/"\n'
    )
    monkeypatch.setenv("CARGO_HOME", str(home))
    assert ids(opened(index=None).history()) == ["0.9.0", "0.10.0", "1.0.0"]
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_an_unknown_crate_and_an_unreachable_registry_are_distinguished(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceError, match='"crates:perftrail-absent": the registry has no such crate'):
        opened("crates:perftrail-absent").history()
    monkeypatch.setenv("CARGO_NET_RETRY", "0")
    with pytest.raises(SourceError, match=r"cannot read the registry's index.*check the network"):
        opened(index="http://127.0.0.1:9/index").history()


def test_without_cargo_the_error_names_what_to_install(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match=r"cargo is not installed.*install cargo or rustup"):
        opened().history()


def test_versions_and_paths_of_a_hostile_registry_lead_nowhere(
    opened: Open, registry: CrateRegistry, tmp_path: Path
) -> None:
    for version in ("../../../etc", "--config", "1.0.0/../x"):
        registry.add(NAME, version, {"a": "a"})
    source = opened()
    assert ids(source.history()) == ["0.9.0", "0.10.0", "1.0.0"]
    with pytest.raises(CheckoutFailed, match="has no release"):
        source.materialise(Revision(id="../../../etc"), str(tmp_path / "tree"), str(tmp_path / "log"))


def test_a_crate_that_would_land_outside_is_refused(
    opened: Open, registry: CrateRegistry, tmp_path: Path
) -> None:
    registry.add(NAME, "2.0.0", {"../../escaped": "x"})
    with pytest.raises(CheckoutFailed, match="leads outside"):
        opened().materialise(Revision(id="2.0.0"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not (tmp_path / "tree").exists()


def test_a_registry_that_wants_a_login_is_explained(
    opened: Open, registry: CrateRegistry, tmp_path: Path
) -> None:
    source = opened()
    history = source.history()
    registry.settle(login=True)
    requested = opened()
    with pytest.raises(SourceError, match=r"log in|cannot read"):
        requested.materialise(history[0], str(tmp_path / "tree"), str(tmp_path / "log"))
