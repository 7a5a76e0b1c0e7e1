"""Complete the bill of materials of `make sbom` with what a lock does not state.

It adds the licence of each package, as the packages installed here state it, and the C library that is linked into the
launcher, as the launcher states it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.supply_chain import ALLOWED, licence
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.process.protocol import Capabilities

LICENCES = {"musl": "MIT", "glibc": "LGPL-2.1-or-later"}
"""Licences of C libraries, by their names in a launcher's first line."""


def completed(sbom: Mapping[str, Any], launcher: Capabilities) -> dict[str, Any]:
    """Return a CycloneDX document with licences and the launcher's C library."""
    components = [with_licence(each) for each in sbom["components"]]
    libraries = c_libraries(launcher)
    root = sbom["metadata"]["component"]["bom-ref"]
    dependencies = [
        {**each, "dependsOn": sorted([*each.get("dependsOn", ()), *(one["bom-ref"] for one in libraries)])}
        if each["ref"] == root and libraries
        else each
        for each in sbom["dependencies"]
    ]
    return {
        **sbom,
        "components": [*components, *libraries],
        "dependencies": [*dependencies, *({"ref": each["bom-ref"]} for each in libraries)],
    }


def with_licence(component: Mapping[str, Any]) -> dict[str, Any]:
    """Return a component with its licence; as it is if the package is not installed or states none."""
    stated = licence(component["name"])
    if not stated:
        return dict(component)
    if stated in ALLOWED:
        found: dict[str, Any] = {"license": {"id": stated}}
    elif re.search(r"\b(AND|OR|WITH)\b", stated):
        found = {"expression": stated}
    else:
        found = {"license": {"name": stated}}
    return {**component, "licenses": [found]}


def c_libraries(launcher: Capabilities) -> list[dict[str, Any]]:
    """Return the C library as a component if it is linked into the launcher."""
    if launcher.linking != "static":
        return []
    name, version = launcher.libc, _version(launcher.libc)
    reference = f"{name}=={version}" if version else name
    component = {
        "bom-ref": reference,
        "description": "the C library, linked into perftrail-launcher",
        "licenses": [{"license": {"id": LICENCES[name]}}],
        "name": name,
        "purl": f"pkg:generic/{name}@{version}" if version else f"pkg:generic/{name}",
        "type": "library",
    }
    return [{**component, "version": version} if version else component]


def _version(library: str) -> str:
    """Return the version of this machine's C library of this name; empty if it is unknown."""
    if library == "glibc":
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    for loader in sorted(Path("/lib").glob("ld-musl-*.so.1")):
        printed = subprocess.run([loader], capture_output=True, text=True, check=False).stderr
        if found := re.search(r"^Version (\S+)", printed, re.MULTILINE):
            return found[1]
    return ""


def main() -> None:
    """Complete the file that the command line names."""
    [file] = map(Path, sys.argv[1:])
    with Launcher() as launcher:
        sbom = completed(json.loads(file.read_text(encoding="utf-8")), launcher.start())
    file.write_text(json.dumps(sbom, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
