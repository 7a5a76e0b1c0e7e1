"""Rust crates: their releases in cargo's registry, each the published tree.

Cargo cannot list versions. If a manifest requires an impossible one, cargo fetches the registry's index of that crate
with its own settings, mirrors and credentials, and caches it; perftrail reads it there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import user_home
from perftrail.model.build import content_key
from perftrail.model.source import Archive
from perftrail.model.wording import quoted
from perftrail.sources.archives import fetch, is_download
from perftrail.sources.client import LONG_SECONDS, Client, client_environment
from perftrail.sources.packages.registry import SemanticRegistry, is_semantic_version
from perftrail.sources.unpacking import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.ports import Starter
    from perftrail.sources.client import ToolResult


_IMPOSSIBLE = "=0.0.0-perftrail-asks"
_MANIFEST = """\
[package]
name = "perftrail-asks"
version = "0.0.0"
edition = "2018"
[lib]
path = "lib.rs"
[workspace]
[dependencies.asked]
package = "{name}"
version = "{version}"
{registry}
"""

_SETTINGS = ("config.toml", "config", "credentials.toml", "credentials")
"""Settings of registries in the user's cargo directory; some are of older versions of cargo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrateIndex:
    """A registry's data about a crate: a line for each version, and the registry's settings, with its addresses."""

    lines: tuple[Mapping[str, Any], ...]
    settings: Mapping[str, Any]


def read_index(starter: Starter, name: str, *, index: str | None, cache: Path) -> CrateIndex:
    """Return the index of a crate; `index` is the address of another registry's index. Raises `SourceError`."""
    program = shutil.which("cargo")
    if program is None:
        raise SourceError("cargo is not installed, and crates need it; install cargo or rustup")
    cache.mkdir(parents=True, exist_ok=True)
    # A new cargo directory each time contains only the requested crate.
    with tempfile.TemporaryDirectory(prefix="asking-", dir=cache) as scratch:
        home, project = Path(scratch) / "home", Path(scratch) / "project"
        _copy_settings(home)
        project.mkdir()
        (project / "lib.rs").touch()
        registry = 'registry = "perftrail-asked"' if index else ""
        manifest = _MANIFEST.format(name=name, version=_IMPOSSIBLE, registry=registry)
        (project / "Cargo.toml").write_text(manifest, encoding="utf-8")
        own = {"CARGO_HOME": str(home), "CARGO_TERM_COLOR": "never", "CARGO_TERM_QUIET": "false"}
        if index:
            own["CARGO_REGISTRIES_PERFTRAIL_ASKED_INDEX"] = _sparse(index)
        environment = {**client_environment(without=("CARGO_HOME",)), **own}
        client = Client(starter=starter, environment=environment)
        result = client.run([program, "generate-lockfile"], directory=project, timeout_seconds=LONG_SECONDS)
        return _read_cached_index(home / "registry" / "index", name, result)


def _read_cached_index(index_directory: Path, name: str, result: ToolResult) -> CrateIndex:
    """Read cargo's cache of a registry's index below a directory."""
    files = [
        path for path in index_directory.glob("*/.cache/**/*") if path.is_file() and path.name == name.lower()
    ]
    if not files:
        if "no matching package" in result.errors:
            raise SourceError(f"source.location {quoted(f'crates:{name}')}: the registry has no such crate")
        raise SourceError(
            f"source.location {quoted(f'crates:{name}')}: cargo cannot read the registry's index: "
            f"{_why(result)}; check the network, cargo's settings and source.index. "
            "A directory of vendored crates has no index"
        )
    settings = files[0].relative_to(index_directory).parts[0]
    lines = tuple(_lines(files[0].read_bytes()))
    if not lines:
        raise SourceError("cargo caches its index in an unknown format; use the archives table")
    return CrateIndex(lines=lines, settings=_read_json(index_directory / settings / "config.json"))


def _lines(cached: bytes) -> Iterator[Mapping[str, Any]]:
    """Return the JSON of each version; cargo writes version and JSON between NUL bytes, after a header."""
    for part in cached.split(b"\0"):
        if part.startswith(b"{"):
            try:
                line = json.loads(part)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        output = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SourceError(
            "cargo's registry does not state the address of its crates: only a registry with a sparse index "
            'does; set source.index = "https://…" to its address'
        ) from error
    return output if isinstance(output, dict) else {}


def _copy_settings(home: Path) -> None:
    """Copy the user's settings into a cargo directory."""
    home.mkdir(parents=True)
    users = Path(os.environ.get("CARGO_HOME") or user_home() / ".cargo")
    for name in _SETTINGS:
        if (users / name).is_file():
            (home / name).symlink_to((users / name).absolute())


def _sparse(index: str) -> str:
    return f"sparse+{index.rstrip('/')}/"


def _why(result: ToolResult) -> str:
    """Return the last cause that cargo names, else its error message."""
    lines = [line.strip() for line in result.errors.splitlines() if line.strip()]
    causes = [after for before, after in pairwise(lines) if before == "Caused by:"]
    return causes[-1] if causes else result.why


_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLACEHOLDER = re.compile(r"\{(crate|version|prefix|lowerprefix|sha256-checksum)\}")


class Crates(SemanticRegistry):
    """The releases of a crate; its dependencies are part of its build, as its manifest says."""

    def content(self, id: str) -> str:
        """Return the content key of a crate's archive: its checksum."""
        return content_key("archive", self._checksum(id))

    def write_release(self, id: str, directory: Path, log: str) -> None:
        """Download a crate once, check it, and unpack it."""
        settings = self._index.settings
        if settings.get("auth-required") is True:
            raise CheckoutFailed(
                "the registry of cargo's settings requires a login; "
                "download the crates and use [[source.archives]]"
            )
        address = _address(settings, self.package.name, id, self._checksum(id))
        with Path(log).open("a", encoding="utf-8", errors="replace") as file:
            print(f"$ unpack {address} into {directory}", file=file)
            archive = Archive(version=id, file=address, sha256=self._checksum(id))
            path = fetch(archive, base="", cache=self._cache)
            print(f"{unpack(path, directory)} files", file=file)

    def _published(self) -> Iterator[tuple[str, bool, str]]:
        for id, line in self._by_version.items():
            yield id, line.get("yanked") is True, str(line.get("pubtime") or "")

    @cached_property
    def _index(self) -> CrateIndex:
        return read_index(self._starter, self.package.name, index=self._table.index, cache=self._cache)

    @cached_property
    def _by_version(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            line["vers"]: line
            for line in self._index.lines
            if isinstance(line.get("vers"), str) and is_semantic_version(line["vers"])
        }

    def _checksum(self, id: str) -> str:
        line = self._by_version.get(id)
        if line is None:
            raise SourceError(f"{self.package}: the registry has no release {quoted(id)}")
        checksum = str(line.get("cksum"))
        if _SHA256.fullmatch(checksum) is None:
            raise SourceError(f"{self.package}: the registry has no checksum of {quoted(id)}")
        return checksum


def _address(settings: Mapping[str, Any], name: str, version: str, checksum: str) -> str:
    """Return the address of a crate's archive, by the rule for a registry's ``dl``."""
    template = str(settings.get("dl") or "")
    if not is_download(template):
        raise CheckoutFailed(
            f"the registry of cargo's settings does not offer its crates for download: {quoted(template)}; "
            "use [[source.archives]]"
        )
    if _PLACEHOLDER.search(template) is None:
        template = f"{template}/{{crate}}/{{version}}/download"
    prefix = _prefix(name)
    values = {
        "crate": name,
        "version": version,
        "prefix": prefix,
        "lowerprefix": prefix.lower(),
        "sha256-checksum": checksum,
    }
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def _prefix(name: str) -> str:
    """Return the directory of a crate in an index.

    >>> [_prefix(name) for name in ("a", "ab", "abc", "Cargo")]
    ['1', '2', '3/a', 'Ca/rg']
    """
    if len(name) <= 2:
        return str(len(name))
    return f"3/{name[0]}" if len(name) == 3 else f"{name[:2]}/{name[2:4]}"
