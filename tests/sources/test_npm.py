"""npm packages from a registry on loopback, with the real npm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.packages.release import ReleaseSource
from tests.sources.npm_packages import NpmRegistry, needs_npm, serving
from tests.sources.releases import ids, open_releases

# each start of npm takes half a second
pytestmark = [needs_npm, pytest.mark.slow("builds")]

NAME = "@perftrail/planted"
Open = Callable[..., ReleaseSource]


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as started:
        yield started


@pytest.fixture(scope="module")
def registry() -> Iterator[NpmRegistry]:
    with serving(NpmRegistry()) as served:
        scripts = {"prepare": "touch pwned", "install": "touch pwned"}
        served.add(NAME, "1.9.0", {"index.js": "1.9.0"}, scripts=scripts)
        served.add(NAME, "1.10.0", {"index.js": "1.10.0"}, old=True)
        served.add(NAME, "1.11.0", {"index.js": "1.11.0"}, deprecated="use 1.12")
        served.add(NAME, "2.0.0-rc.1", {"index.js": "2.0.0-rc.1"})
        served.add("perftrail-single", "1.0.0", {"index.js": "alone"})
        yield served


@pytest.fixture(scope="module")
def settings() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("npm_config_userconfig", "/dev/null")
        patch.setenv("npm_config_fetch_retries", "0")
        yield patch


@pytest.fixture(scope="module")
def opened(
    launcher: Launcher,
    registry: NpmRegistry,
    settings: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Open:
    cache = tmp_path_factory.mktemp("npm") / "cache"

    def open_it(location: str = f"npm:{NAME}", **options: object) -> ReleaseSource:
        return open_releases(location, cache=cache, starter=launcher, **{"index": registry.url, **options})

    return open_it


@pytest.fixture(scope="module")
def source(opened: Open) -> ReleaseSource:
    """One source for the module: starting npm takes long."""
    return opened()


@pytest.fixture(scope="module")
def everything(opened: Open) -> ReleaseSource:
    """The same with releases that are left out by default."""
    return opened(prereleases=True, yanked=True)


def test_releases_are_in_the_order_of_semantic_versions_with_their_dates(source: ReleaseSource) -> None:
    history = source.history()
    assert ids(history) == ["1.9.0", "1.10.0"]
    assert history[1].time == "2020-01-02T00:00:00.000Z"
    assert len({source.content(each) for each in history}) == 2


def test_an_end_that_was_deprecated_is_explained(source: ReleaseSource) -> None:
    with pytest.raises(SourceError, match=r"was deprecated; set source\.yanked = true"):
        source.history("1.9..1.11")


def test_deprecated_and_pre_releases_are_included_on_request(everything: ReleaseSource) -> None:
    assert ids(everything.history()) == ["1.9.0", "1.10.0", "1.11.0", "2.0.0-rc.1"]


@pytest.mark.long
def test_a_pre_release_is_downloaded(everything: ReleaseSource, tmp_path: Path) -> None:
    everything.materialise(Revision(id="2.0.0-rc.1"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "index.js").read_text() == "2.0.0-rc.1"


def test_a_release_is_downloaded_once_and_nothing_of_it_is_run(
    source: ReleaseSource, registry: NpmRegistry, tmp_path: Path
) -> None:
    for number in range(2):
        tree = tmp_path / f"tree{number}"
        source.materialise(Revision(id="1.9.0"), str(tree), str(tmp_path / "log"))
        assert (tree / "index.js").read_text() == "1.9.0"
    assert sum("1.9.0.tgz" in path for path in registry.requests) == 1
    assert not list(tmp_path.rglob("pwned"))


def test_a_changed_or_unknown_release_fails_alone(
    everything: ReleaseSource, registry: NpmRegistry, tmp_path: Path
) -> None:
    assert {"1.10.0", "1.11.0"} < set(ids(everything.history()))
    registry.files[f"{NAME}/-/planted-1.11.0.tgz"] = b"changed"
    for version, words in (("1.11.0", "EINTEGRITY|integrity"), ("3.0.0", "no release")):
        with pytest.raises(CheckoutFailed, match=words):
            everything.materialise(Revision(id=version), str(tmp_path / version), str(tmp_path / "log"))
        assert not (tmp_path / version).exists()


@pytest.mark.long
def test_a_release_whose_file_is_missing_fails_alone(
    everything: ReleaseSource, registry: NpmRegistry, tmp_path: Path
) -> None:
    del registry.files[f"{NAME}/-/planted-1.10.0.tgz"]
    with pytest.raises(CheckoutFailed, match="Not Found"):
        everything.materialise(Revision(id="1.10.0"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not (tmp_path / "tree").exists()


def test_the_registry_is_the_one_that_npms_settings_name(
    opened: Open, registry: NpmRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "npmrc").write_text(f"registry={registry.url}\n")
    monkeypatch.setenv("npm_config_userconfig", str(tmp_path / "npmrc"))
    # one release is told in another form than several
    assert ids(opened("npm:perftrail-single", index=None).history()) == ["1.0.0"]


def test_an_unknown_package_and_an_unreachable_registry_are_distinguished(opened: Open) -> None:
    with pytest.raises(SourceError, match='"npm:perftrail-absent": the registry has no such package'):
        opened("npm:perftrail-absent").history()
    with pytest.raises(SourceError, match=r"npm cannot read the registry: .*ECONNREFUSED.*check the network"):
        opened(index="http://127.0.0.1:9/").history()


def test_without_npm_the_error_names_what_to_install(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match=r"npm is not installed.*install npm"):
        opened().history()
