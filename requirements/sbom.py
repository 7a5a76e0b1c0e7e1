"""Complete the bill of materials of `make sbom` with what a lock does not state.

It adds the licence of each package, as the packages installed here state it, and the libraries that `make release`
links into the compiled programs. These are part of Zig, whose version `requirements/release.txt` states.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.supply_chain import ALLOWED, licence

if TYPE_CHECKING:
    from collections.abc import Mapping

LLVM = "Apache-2.0 WITH LLVM-exception"
LINKED = {
    "musl": ("MIT", "the C library, linked into perftrail-launcher"),
    "compiler-rt": (LLVM, "functions that compiled code calls, linked into the programs"),
    "libunwind": (LLVM, "reads stacks, linked into perftrail-allocations.so and perftrail-locks.so"),
}
"""Libraries in the compiled programs of a wheel: licence and purpose."""


def zig_version(lock: str) -> str:
    """Return the version of Zig in a lock.

    >>> zig_version("ziglang==0.15.1 ; sys_platform == 'linux'")
    '0.15.1'
    """
    found = re.search(r"^ziglang==(\S+)", lock, re.MULTILINE)
    assert found, "the lock has no ziglang"
    return found[1]


def completed(sbom: Mapping[str, Any], zig: str) -> dict[str, Any]:
    """Return a CycloneDX document with licences, and the libraries of this version of Zig."""
    components = [with_licence(each) for each in sbom["components"]]
    libraries = linked_libraries(zig)
    references = [each["bom-ref"] for each in libraries]
    root = sbom["metadata"]["component"]["bom-ref"]
    dependencies = [
        {**each, "dependsOn": sorted([*each.get("dependsOn", ()), *references])}
        if each["ref"] == root
        else each
        for each in sbom["dependencies"]
    ]
    return {
        **sbom,
        "components": [*components, *libraries],
        "dependencies": [*dependencies, *({"ref": each} for each in references)],
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


def linked_libraries(zig: str) -> list[dict[str, Any]]:
    """Return the libraries in the compiled programs as components. Their versions are those that Zig contains."""
    return [
        {
            "bom-ref": f"{name}-of-zig-{zig}",
            "description": f"{purpose}; from Zig {zig}",
            "licenses": [{"expression": text} if " " in text else {"license": {"id": text}}],
            "name": name,
            "purl": f"pkg:generic/{name}",
            "type": "library",
        }
        for name, (text, purpose) in LINKED.items()
    ]


def main() -> None:
    """Complete the file that the command line names."""
    [file] = map(Path, sys.argv[1:])
    lock = Path(__file__).with_name("release.txt").read_text("utf-8")
    sbom = completed(json.loads(file.read_text(encoding="utf-8")), zig_version(lock))
    file.write_text(json.dumps(sbom, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
