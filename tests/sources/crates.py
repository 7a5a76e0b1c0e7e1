"""A registry of crates on loopback: a sparse index and its crates, as cargo requests them."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.needs import needs
from tests.sources.archives import serving as serving_files
from tests.sources.archives import tar_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

needs_cargo = needs("cargo")

_DATES = "2020-01-{:02}T00:00:00Z"


@dataclass
class CrateRegistry:
    """What a registry offers, by path; `requests` are the paths of the requests so far."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def index(self) -> str:
        """The address of its index."""
        return f"{self.url}/index"

    def settle(self, *, login: bool = False) -> None:
        """Write the address of the crates into the index, once it is known."""
        config = {"dl": f"{self.url}/crates/{{crate}}/{{version}}.crate", "auth-required": login}
        self.files["index/config.json"] = json.dumps(config).encode()

    def add(
        self, name: str, version: str, files: Mapping[str, str], *, yanked: bool = False, crate: bytes = b""
    ) -> bytes:
        """Offer a crate; the n-th is dated the n-th of a month. `crate` is an archive that replaces the files."""
        crate = crate or tar_of({f"{name}-{version}/{path}": text for path, text in files.items()})
        self.files[f"crates/{name}/{version}.crate"] = crate
        path = f"index/{name[:2]}/{name[2:4]}/{name}"
        lines = self.files.get(path, b"")
        line = {
            "name": name,
            "vers": version,
            "deps": [],
            "cksum": hashlib.sha256(crate).hexdigest(),
            "features": {},
            "yanked": yanked,
            "pubtime": _DATES.format(lines.count(b"\n") + 1),
        }
        self.files[path] = lines + json.dumps(line).encode() + b"\n"
        return crate


@contextmanager
def serving(registry: CrateRegistry) -> Iterator[CrateRegistry]:
    """Serve a registry for as long as the context lasts."""
    with serving_files(registry.files, registry.requests) as registry.url:
        registry.settle()
        yield registry
