"""Equal sources build equal wheels, and every dependency has an allowed licence."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import parse_email

from campaign import supply_chain
from requirements import sbom

if TYPE_CHECKING:
    from pathlib import Path

BUILD_WHEEL = supply_chain.build_wheel


@pytest.mark.long
@pytest.mark.slow("builds")
def test_two_builds_in_different_directories_have_equal_bytes_and_other_sources_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    digests: list[str] = []

    def build(directory: Path) -> str:
        digests.append(BUILD_WHEEL(directory))
        return digests[-1]

    monkeypatch.setattr(supply_chain, "build_wheel", build)
    assert supply_chain.equal_wheels()[:2] == (1, [])
    monkeypatch.setattr(supply_chain, "DATE", "1770000000")
    assert BUILD_WHEEL(tmp_path) not in digests
    assert len(digests) == 2


def test_two_builds_with_different_bytes_are_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supply_chain, "build_wheel", lambda directory: directory.name)
    assert supply_chain.equal_wheels() == (1, ["two builds of the wheel differ"], "wheels")
    monkeypatch.setattr(supply_chain, "build_wheel", lambda _: "0123")
    assert supply_chain.equal_wheels()[:2] == (1, [])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the sources of today."""
    directory = tmp_path_factory.mktemp("wheel")
    digest = supply_chain.build_wheel(directory)
    [file] = (directory / "dist").glob("*.whl")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
    return file


@pytest.mark.slow("builds")
def test_a_wheel_installs_the_manual_pages(wheel: Path) -> None:
    installed = {PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()}
    pages = {path.name for path in installed if path.match("*.data/data/share/man/man1/*.1")}
    assert pages == {file.name for file in (supply_chain.REPOSITORY / "man" / "man1").iterdir()}


@pytest.mark.slow("builds")
def test_a_wheel_states_who_wrote_it_and_where_to_read_and_ask(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata, unknown = parse_email(archive.read(name))
    assert not unknown
    assert metadata["author"] == "perftrail contributors"
    assert metadata["license_expression"] == "Apache-2.0"
    assert metadata["description_content_type"].startswith("text/markdown")
    assert not re.search(r"\]\((?!https://|#)", metadata["description"]), (
        "a link leads to a file of the repository"
    )
    assert set(metadata["project_urls"]) == {"Homepage", "Documentation", "Issues", "Changelog"}
    assert all(address.startswith("https://") for address in metadata["project_urls"].values())
    assert {"benchmark", "performance", "regression"} <= set(metadata["keywords"])
    pythons = {each.rpartition(" :: ")[2] for each in metadata["classifiers"] if "Python :: 3." in each}
    assert min(pythons) == str(metadata["requires_python"]).removeprefix(">=")
    assert len(set(metadata["classifiers"])) == len(metadata["classifiers"])


def test_the_licence_of_every_dependency_is_allowed() -> None:
    tried, losses, note = supply_chain.licences()
    assert losses == []
    assert tried >= 25, note


@pytest.mark.parametrize(
    "stated", ["", "GPL-3.0-only", "MIT AND LGPL-2.1", "Proprietary", "BSD License; Other/Proprietary"]
)
def test_other_licences_are_losses(monkeypatch: pytest.MonkeyPatch, stated: str) -> None:
    monkeypatch.setattr(supply_chain, "licence", lambda _: stated)
    tried, losses, _ = supply_chain.licences()
    assert len(losses) == tried > 0


SBOM = {
    "components": [
        {"bom-ref": "click==8", "name": "click"},
        {"bom-ref": "numpy==2", "name": "numpy"},
        {"bom-ref": "not-installed==1", "name": "not-installed"},
    ],
    "dependencies": [{"ref": "click==8"}, {"dependsOn": ["click==8"], "ref": "root"}],
    "metadata": {"component": {"bom-ref": "root", "name": "perftrail"}},
}
"""A bill of materials as cyclonedx-py writes it."""


def test_the_bill_of_materials_has_licences_and_the_linked_libraries() -> None:
    found = sbom.completed(
        SBOM, sbom.zig_version((supply_chain.REPOSITORY / "requirements/release.txt").read_text())
    )
    click, numpy, unknown, *linked = found["components"]
    assert click["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert " AND " in numpy["licenses"][0]["expression"]
    assert "licenses" not in unknown
    assert {each["name"] for each in linked} == {"musl", "compiler-rt", "libunwind"}
    assert linked[0]["licenses"] == [{"license": {"id": "MIT"}}]
    references = [each["bom-ref"] for each in linked]
    assert found["dependencies"] == [
        {"ref": "click==8"},
        {"dependsOn": sorted(["click==8", *references]), "ref": "root"},
        *({"ref": each} for each in references),
    ]


@pytest.mark.skipif(
    not (supply_chain.TOOLS / "zizmor").exists(), reason="zizmor is not installed (make tools)"
)
def test_zizmor_finds_nothing_in_the_action_and_the_workflows() -> None:
    assert supply_chain.workflow_weaknesses()[1] == []


@pytest.mark.skipif(
    not (supply_chain.TOOLS / "zizmor").exists(), reason="zizmor is not installed (make tools)"
)
def test_zizmor_finds_an_input_in_a_shell_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    action = tmp_path / "action.yml"
    text = (supply_chain.REPOSITORY / "action.yml").read_text()
    action.write_text(text.replace('run: exit "$PERFTRAIL_CODE"', 'run: exit "${{ inputs.study }}"'))
    monkeypatch.setattr(supply_chain, "WORKFLOWS", (str(action),))
    assert any("template-injection" in loss for loss in supply_chain.workflow_weaknesses()[1])
