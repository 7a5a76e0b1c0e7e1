"""The release source with an index on loopback and the real pip."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.packages.release import ReleaseSource
from tests.sources.packages import PackageIndex, serving
from tests.sources.releases import ids, open_releases

Open = Callable[..., ReleaseSource]
"""Opens the planted package; everything else as keys of the study's source."""

NAME = "perftrail_planted"


@pytest.fixture(scope="module")
def index() -> Iterator[PackageIndex]:
    """Versions 1.0 to 1.10, some of which are left out or cannot be built."""
    with serving(PackageIndex()) as served:
        for version in ("1.10", "1.9", "1.0", "1.2"):
            served.add(NAME, version, f"V = {version!r}\n")
        served.add(NAME, "1.3", "V = 'withdrawn'\n", yanked="was broken")
        served.add(NAME, "1.4", "V = 'withdrawn'\n", yanked="")
        served.add(NAME, "2.0rc1", "V = 'candidate'\n")
        served.add(NAME, "1.5", "V = 'for another Python'\n", requires_python="<3.8")
        served.add(NAME, "1.6", "V = 'for another machine'\n", tag="cp27-cp27m-win32")
        served.add_source(NAME, "1.7", "V = 'from source'\n")
        served.add_source(NAME, "1.8", "", broken="no compiler in sight")
        served.add("perftrail_needed", "3.1", "NEEDED = True\n")
        yield served


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as started:
        yield started


@pytest.fixture
def opened(tmp_path: Path, launcher: Launcher, index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> Open:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)

    def open_it(**keys: object) -> ReleaseSource:
        settings = {"location": "pypi:Perftrail.Planted", "index": index.url, **keys}
        return ReleaseSource(
            SourceTable(kind="release", **settings),  # type: ignore[arg-type] # any keys, as a test wants them
            cache=str(tmp_path / "cache"),
            starter=launcher,
        )

    return open_it


@pytest.fixture(scope="module")
def source(
    tmp_path_factory: pytest.TempPathFactory, launcher: Launcher, index: PackageIndex
) -> Iterator[ReleaseSource]:
    """One source for the module, whose releases are listed once: starting pip takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_CONFIG_FILE", "/dev/null")
        opened = open_releases(
            "pypi:Perftrail.Planted",
            cache=tmp_path_factory.mktemp("cache"),
            starter=launcher,
            index=index.url,
        )
        opened.history()
    yield opened


@pytest.fixture
def listed(opened: Open, source: ReleaseSource) -> Open:
    """Like `opened`, with the releases that the other source has listed."""

    def open_it(**keys: object) -> ReleaseSource:
        other = opened(**keys)
        other._all = source._releases()
        return other

    return open_it


def imported(directory: Path, expression: str) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(directory)!r}); {expression}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_releases_are_in_the_order_of_their_versions(source: ReleaseSource) -> None:
    assert ids(source.history()) == ["1.0", "1.2", "1.7", "1.8", "1.9", "1.10"]


def test_yanked_releases_and_candidates_are_included_on_request(listed: Open) -> None:
    assert "1.3" in ids(listed(yanked=True).history())
    assert ids(listed(prereleases=True).history())[-1] == "2.0rc1"


def test_a_range_contains_both_ends_however_they_are_written(listed: Open) -> None:
    source = listed(range="1.2..1.9")
    assert ids(source.history()) == ["1.2", "1.7", "1.8", "1.9"]
    assert ids(source.history("v1.2.0..1.9.0")) == ["1.2", "1.7", "1.8", "1.9"]


@pytest.mark.parametrize(
    ("range", "words"),
    [
        ("1.3..1.9", "was yanked; set source.yanked = true"),
        ("1.2..2.0rc1", "is a pre-release; set source.prereleases = true"),
        ("1.2..1.99", 'no release "1.99".*did you mean "1.9"'),
        ("1.5..1.9", 'no release "1.5" for this Python'),
        ("1.9..1.2", "is backwards"),
        ("old..1.2", '"old" is not a version number'),
    ],
)
def test_an_end_that_is_not_to_be_had_is_explained(source: ReleaseSource, range: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        source.history(range)


def test_within_takes_ends_that_were_never_released(source: ReleaseSource) -> None:
    assert source.within("1.1..1.8.5") == {"1.2", "1.7", "1.8"}
    assert source.within("..1.5") == {"1.0", "1.2"}


@pytest.mark.slow("builds")
def test_the_index_is_the_one_that_pips_settings_name(
    opened: Open, index: PackageIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\nindex-url = http://127.0.0.1:9/\n[install]\nindex-url = {index.url}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    assert ids(opened(index=None).history())[0] == "1.0"
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/nothing")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index.url)
    assert ids(opened(index=None).history())[0] == "1.0"


@pytest.mark.slow("builds")
def test_an_unknown_package_and_an_unreachable_index_are_distinguished(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceError, match="has no package of that name"):
        opened(location="pypi:perftrail-absent").history()
    monkeypatch.setattr("perftrail.sources.packages.pypi._RETRIES", 0)
    with pytest.raises(SourceError, match="cannot be read") as caught:
        opened(index="http://user:secret@127.0.0.1:9/simple").history()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "location", ["planted", "gem:planted", "pypi:", "pypi:a==1", "pypi:--index-url=x", "pypi:a b"]
)
def test_a_location_is_an_ecosystem_and_a_name(opened: Open, location: str) -> None:
    with pytest.raises(SourceError):
        opened(location=location)


@pytest.mark.slow("builds")
def test_a_release_is_installed_alone_and_compiled(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PIP_USER", "1")
    (tmp_path / "pip.py").write_text("raise SystemExit('taken from the current directory')")
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "tree"
    source = opened(requires=("perftrail-needed==3.1",))
    source.materialise(Revision(id="1.2"), str(directory), str(tmp_path / "log"))
    assert imported(directory, f"import {NAME}, perftrail_needed; print({NAME}.V)") == "1.2"
    assert list(directory.glob(f"__pycache__/{NAME}.*.pyc"))
    assert "Successfully installed" in (tmp_path / "log").read_text()


@pytest.mark.long
@pytest.mark.slow("builds")
def test_a_source_distribution_is_built(opened: Open, tmp_path: Path) -> None:
    opened().materialise(Revision(id="1.7"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert imported(tmp_path / "tree", f"import {NAME}; print({NAME}.V)") == "from source"


@pytest.mark.slow("builds")
def test_a_study_may_ask_for_source_distributions_or_for_wheels_alone(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with serving(PackageIndex()) as served:
        served.add(NAME, "1.0", "V = 'wheel'\n")
        served.add_source(NAME, "1.0", "V = 'source'\n")
        served.add_source(NAME, "1.1", "V = 'source'\n")
        found = {}
        for form in ("wheel", "sdist"):
            source = open_releases(
                "pypi:perftrail-planted",
                cache=tmp_path / "cache",
                starter=launcher,
                index=served.url,
                distribution=form,
            )
            found[form] = (ids(source.history()), source.content(Revision(id="1.0")))
        source.materialise(Revision(id="1.0"), str(tmp_path / "sdist"), str(tmp_path / "log"))
    assert (found["wheel"][0], found["sdist"][0]) == (["1.0"], ["1.0", "1.1"])
    assert (tmp_path / "sdist" / f"{NAME}.py").read_text() == "V = 'source'\n"
    assert found["wheel"][1] != found["sdist"][1]


@pytest.mark.slow("builds")
def test_a_build_that_fails_says_what_it_raised(opened: Open, tmp_path: Path) -> None:
    with pytest.raises(CheckoutFailed, match=r"planted==1\.8: RuntimeError: no compiler in sight"):
        opened().materialise(Revision(id="1.8"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not (tmp_path / "tree").exists()
    assert "Traceback" in (tmp_path / "log").read_text()


@pytest.mark.long
@pytest.mark.slow("builds")
def test_a_release_that_is_gone_says_so(opened: Open, tmp_path: Path) -> None:
    with pytest.raises(CheckoutFailed, match=r"No matching distribution found for perftrail-planted==1\.1"):
        opened().materialise(Revision(id="1.1"), str(tmp_path / "tree"), str(tmp_path / "log"))


def test_content_distinguishes_releases_and_their_dependencies(opened: Open) -> None:
    one, other = Revision(id="1.2"), Revision(id="1.9")
    plain, needing = opened(), opened(requires=("perftrail-needed==3.1",))
    assert plain.content(one) == opened().content(one)
    assert len({plain.content(one), plain.content(other), needing.content(one)}) == 3


@pytest.mark.long
@pytest.mark.slow("builds")
@pytest.mark.parametrize(("form", "sandboxed"), [("wheel", False), ("wheel", True), ("any", True)])
def test_a_wheel_is_installed_where_a_source_distribution_is_not_wanted(
    opened: Open, index: PackageIndex, launcher: Launcher, tmp_path: Path, form: str, sandboxed: bool
) -> None:
    opened()  # settings of pip
    keys = {} if form == "any" else {"distribution": form}
    table = SourceTable(kind="release", location="pypi:perftrail-planted", index=index.url, **keys)  # type: ignore[arg-type] # a form
    source = ReleaseSource(table, cache=str(tmp_path / "cache"), starter=launcher, sandboxed=sandboxed)
    source.materialise(Revision(id="1.2"), str(tmp_path / "tree"), str(tmp_path / "log"))
    assert imported(tmp_path / "tree", f"import {NAME}; print({NAME}.V)") == "1.2"


@pytest.mark.slow("builds")
def test_the_build_program_of_a_package_sees_no_secret_and_does_not_run_with_a_sandbox(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("DEPLOY_TOKEN", "secret")
    ran = tmp_path / "ran"
    tell = f"__import__('pathlib').Path({str(ran)!r}).write_text(repr(dict(__import__('os').environ)))"
    with serving(PackageIndex()) as served:
        served.add(NAME, "1.0", "V = 'wheel'\n")
        served.add_source(NAME, "1.1", "V = 'source'\n", code=tell)
        table = SourceTable(kind="release", location="pypi:perftrail-planted", index=served.url)
        sandboxed = ReleaseSource(table, cache=str(tmp_path / "one"), starter=launcher, sandboxed=True)
        assert ids(sandboxed.history()) == ["1.0"]
        with pytest.raises(CheckoutFailed):
            sandboxed.materialise(Revision(id="1.1"), str(tmp_path / "refused"), str(tmp_path / "log"))
        assert not ran.exists()
        with pytest.raises(SourceError, match='write "wheel", or use --no-sandbox'):
            ReleaseSource(
                replace(table, distribution="sdist"), cache=str(tmp_path), starter=launcher, sandboxed=True
            )
        plain = ReleaseSource(table, cache=str(tmp_path / "two"), starter=launcher)
        plain.materialise(Revision(id="1.1"), str(tmp_path / "source"), str(tmp_path / "log"))
    assert "PATH" in ran.read_text()
    assert "secret" not in ran.read_text()
