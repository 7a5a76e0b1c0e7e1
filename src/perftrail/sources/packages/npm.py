"""npm packages: their releases in npm's registry, each the published tree."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import exclusive_lock, publish
from perftrail.model.build import content_key
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS, Client, client_environment
from perftrail.sources.packages.registry import SemanticRegistry, SemanticVersion, is_semantic_version
from perftrail.sources.unpacking import unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.sources.client import ToolResult

_REMOVED_VARIABLES = tuple(
    f"{prefix}{name}"
    for prefix in ("npm_config_", "NPM_CONFIG_")
    for name in ("dry", "global", "location", "workspace", "json", "loglevel", "pack", "DRY", "GLOBAL",
                 "LOCATION", "WORKSPACE", "JSON", "LOGLEVEL", "PACK")
)  # fmt: skip
"""Variables that would change the output or the destination of npm."""

_BATCH = 500
"""Number of versions in one query, because command lines are limited."""

_ALL = ">=0.0.0"
"""All versions except pre-releases; ``*`` would only list the latest."""

_ALGORITHMS = ("sha512", "sha384", "sha256", "sha1")
"""Algorithms of npm's checksums, the strongest first."""


class NpmPackages(SemanticRegistry):
    """The releases of an npm package; its build installs the dependencies.

    Deprecated releases count as yanked.
    """

    def content(self, id: str) -> str:
        """Return the content key of a release's archive: its checksum."""
        return content_key("archive", *self._checksum(id).parts)

    def write_release(self, id: str, directory: Path, log: str) -> None:
        """Let npm download a release once, check it, and unpack it; none of its scripts run."""
        checksum = self._checksum(id)
        stored = self._cache / f"{checksum.digest.hex()}.tgz"
        with exclusive_lock(self._cache.with_name(f"{self._cache.name}.lock")):
            if not stored.is_file():
                self._pack(id, checksum, stored, log)
        with Path(log).open("a", encoding="utf-8", errors="replace") as file:
            print(f"$ unpack {self.package.name}@{id} into {directory}", file=file)
            print(f"{unpack(stored, directory)} files", file=file)

    def _published(self) -> Iterator[tuple[str, bool, str]]:
        versions, times = self._listed
        for id in versions:
            yield id, bool(self._described.get(id, {}).get("deprecated")), str(times.get(id) or "")

    def _pack(self, id: str, checksum: _Checksum, stored: Path, log: str) -> None:
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="making-") as scratch:
            spec = f"{self.package.name}@{id}"
            result = self._run(
                "pack", "--pack-destination", scratch, "--", spec, timeout_seconds=LONG_SECONDS, log=log
            )
            made = list(Path(scratch).glob("*.tgz"))
            if result.failed or len(made) != 1:
                raise CheckoutFailed(f"npm cannot fetch {spec}: {_why(result)}")
            if not checksum.matches(made[0]):
                raise CheckoutFailed(
                    f"{spec}: the archive that npm fetched does not have the registry's checksum"
                )
            publish(made[0], stored)

    @cached_property
    def _listed(self) -> tuple[Sequence[str], Mapping[str, Any]]:
        """Return the versions, and the upload time of each by its name."""
        result = self._run("view", "--", self.package.name, "versions", "time")
        if result.failed:
            where = f"source.location {quoted(str(self.package))}"
            if "E404" in result.errors:
                raise SourceError(f"{where}: the registry has no such package")
            raise SourceError(
                f"{where}: npm cannot read the registry: {_why(result)}; check the network, npm's settings "
                "and source.index"
            )
        output = _parsed(result)
        # For a query of two fields, npm prints an object with both, or the only existing one.
        both = output if isinstance(output, dict) else {"versions": output}
        versions = both.get("versions") or []
        texts = [versions] if isinstance(versions, str) else versions
        times = both.get("time")
        return [each for each in texts if is_semantic_version(str(each))], times if isinstance(
            times, dict
        ) else {}

    @cached_property
    def _described(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the registry's data of each version; pre-releases only on request."""
        named = [
            id for id in self._listed[0] if self._table.prereleases and SemanticVersion.read(id).is_prerelease
        ]
        ranges = [
            _ALL,
            *(" || ".join(named[at : at + _BATCH]) for at in range(0, len(named), _BATCH)),
        ]
        return {
            str(each.get("version")): each for range_ in ranges for each in self._describe_versions(range_)
        }

    def _describe_versions(self, versions: str) -> Iterator[Mapping[str, Any]]:
        fields = ("version", "deprecated", "dist.integrity", "dist.shasum")
        result = self._run("view", "--", f"{self.package.name}@{versions}", *fields)
        if result.failed and "E404" not in result.errors:
            raise SourceError(
                f"npm cannot read the registry's data about {self.package.name}: {_why(result)}"
            )
        output = _parsed(result)
        for each in output if isinstance(output, list) else [output]:
            if isinstance(each, dict):
                yield each

    def _checksum(self, id: str) -> _Checksum:
        if id not in self._described:
            raise SourceError(f"{self.package}: the registry has no release {quoted(id)}")
        output = self._described[id]
        written = [*str(output.get("dist.integrity") or "").split()]
        if shasum := str(output.get("dist.shasum") or ""):
            written.append(f"sha1-{base64.b64encode(_from_hex(shasum)).decode()}")
        checksum = _strongest(written)
        if checksum is None:
            raise SourceError(f"{self.package}: the registry has no checksum of {quoted(id)}")
        return checksum

    def _run(
        self, *words: str, timeout_seconds: float = LONG_SECONDS, log: str | Path | None = None
    ) -> ToolResult:
        program = shutil.which("npm")
        if program is None:
            raise SourceError("npm is not installed, and npm packages need it; install npm")
        self._cache.mkdir(parents=True, exist_ok=True)
        scope, slash, _ = self.package.name.partition("/")
        registries = ["--registry", *([f"--{scope}:registry"] if slash else [])] if self._table.index else []
        settings = [f"{option}={self._table.index}" for option in registries]
        environment = {
            **client_environment(without=_REMOVED_VARIABLES),
            "npm_config_cache": str((self._cache / "npm-cache").absolute()),
            "npm_config_update_notifier": "false",
            "NO_COLOR": "1",
        }
        return Client(starter=self._starter, environment=environment).run(
            [program, "--json", "--ignore-scripts", "--loglevel=error", *settings, *words],
            directory=self._cache,
            timeout_seconds=timeout_seconds,
            log=log,
        )


@dataclass(frozen=True, slots=True)
class _Checksum:
    """The expected checksum of an archive."""

    algorithm: str
    digest: bytes

    @property
    def parts(self) -> tuple[str, str]:
        """Algorithm and digest as text."""
        return self.algorithm, self.digest.hex()

    def matches(self, path: Path) -> bool:
        """Return whether a file has this checksum."""
        with path.open("rb") as file:
            return hashlib.file_digest(file, self.algorithm).digest() == self.digest


def _strongest(written: Iterable[str]) -> _Checksum | None:
    """Return the strongest of several checksums, ``ALGORITHM-BASE64`` each; `None` if none is readable."""
    by_algorithm: dict[str, bytes] = {}
    for each in written:
        algorithm, _, digest = each.partition("-")
        try:
            by_algorithm[algorithm] = base64.b64decode(digest.partition("?")[0], validate=True)
        except ValueError:
            continue
    for algorithm in _ALGORITHMS:
        if len(by_algorithm.get(algorithm, b"")) == hashlib.new(algorithm, usedforsecurity=False).digest_size:
            return _Checksum(algorithm, by_algorithm[algorithm])
    return None


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _parsed(result: ToolResult) -> Any:  # noqa: ANN401 - any JSON; the callers check its type
    try:
        return json.loads(result.output)
    except ValueError:
        return None


def _why(result: ToolResult) -> str:
    """Return npm's own error message, if it wrote one in JSON."""
    output = _parsed(result)
    error = output.get("error") if isinstance(output, dict) else None
    if isinstance(error, dict) and error.get("summary"):
        return str(error["summary"])
    lines = [line.strip().removeprefix("npm error ") for line in result.errors.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(("code ", "npm warn"))), result.why)
