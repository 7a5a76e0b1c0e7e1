"""A registry of npm packages on loopback: metadata of packages, and their tarballs."""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.needs import needs
from tests.sources.archives import serving as serving_files
from tests.sources.archives import tar_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

needs_npm = needs("npm")


@dataclass
class NpmRegistry:
    """What a registry offers, by path; `requests` are the paths of the requests so far."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    url: str = ""
    packages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(
        self,
        name: str,
        version: str,
        files: Mapping[str, str],
        *,
        deprecated: str = "",
        old: bool = False,
        scripts: Mapping[str, str] | None = None,
        tarball: bytes = b"",
    ) -> bytes:
        """Offer a release; an `old` one has a SHA-1 only. The n-th is dated the n-th of a month.

        `tarball` replaces the files.
        """
        manifest = {"name": name, "version": version, "scripts": scripts or {}}
        written = {"package.json": json.dumps(manifest), **files}
        tarball = tarball or tar_of({f"package/{path}": text for path, text in written.items()})
        path = f"{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        self.files[path] = tarball
        dist = {
            "tarball": f"{self.url}/{path}",
            "shasum": hashlib.sha1(tarball).hexdigest(),
            "integrity": f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}",
        }
        if old:
            del dist["integrity"]
        document = self.packages.setdefault(name, {"name": name, "versions": {}, "time": {}, "dist-tags": {}})
        document["time"][version] = f"2020-01-{len(document['versions']) + 1:02}T00:00:00.000Z"
        document["versions"][version] = {**manifest, "dist": dist}
        if deprecated:
            document["versions"][version]["deprecated"] = deprecated
        document["dist-tags"]["latest"] = version
        self.files[name.replace("/", "%2f")] = json.dumps(document).encode()
        return tarball


@contextmanager
def serving(registry: NpmRegistry) -> Iterator[NpmRegistry]:
    """Serve a registry for as long as the context lasts."""
    with serving_files(registry.files, registry.requests) as registry.url:
        yield registry
