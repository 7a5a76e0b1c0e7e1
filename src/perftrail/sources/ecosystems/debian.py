"""Debian source packages: their versions as apt knows them, each unpacked and patched by dpkg-source."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_lock import alone
from perftrail.model.build import content_key
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.dates import date_alike
from perftrail.sources.ecosystems.apt_command import (
    ask_archives,
    find_program,
    make_apt,
    when_asked,
    why_apt_failed,
)
from perftrail.sources.ecosystems.debian_version import DebianVersion, is_debian_version, is_prerelease
from perftrail.sources.ecosystems.registry import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.model.source import Package
    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter
    from perftrail.sources.ecosystems.apt_command import Apt

_DESCRIPTION = re.compile(r"^ (?P<sha256>[0-9a-f]{64}) +\d+ +(?P<name>\S+\.dsc)$", re.MULTILINE)
_CHECKSUMS = re.compile(r"^Checksums-Sha256:[ \t]*\n((?: .*\n?)+)", re.MULTILINE)


class DebianSources:
    """The versions of a source package that the machine's archives have, or those that the study names."""

    fits = "in the archives that apt is set up for"

    def __init__(self, package: Package, asked: Asked, *, cache: Path, starter: Starter) -> None:
        self.package = package
        self._asked = asked
        self._cache = cache
        self._starter = starter
        self._up_to_date = False
        self._known: Mapping[str, str] | None = None

    def asked(self) -> str:
        """Say when the archives were asked for what is known of them, empty when by this process."""
        return "" if self._up_to_date else when_asked(self._apt)

    def ask_again(self) -> None:
        """Ask the archives for what they have now."""
        ask_archives(self._apt)
        self._up_to_date, self._known = True, None

    def version(self, text: str) -> DebianVersion:
        """Read a version as dpkg does."""
        return DebianVersion.read(text)

    def releases(self) -> tuple[Release, ...]:
        """Give what the archives have; they do not say since when."""
        found = [
            Release(
                id=id,
                version=DebianVersion.read(id),
                prerelease=is_prerelease(id),
                yanked=False,
                uploaded="",
            )
            for id in self._descriptions()
        ]
        return tuple(sorted(found, key=lambda each: each.version))

    def content(self, id: str) -> str:
        """Name a version by the checksum of its description, which holds those of all its files."""
        return content_key("debian source", self._description(id))

    def put(self, id: str, directory: Path, log: str) -> None:
        """Have apt download a version once, check it, and have dpkg-source unpack and patch it."""
        sha256 = self._description(id)
        kept = self._cache / sha256
        with alone(self._cache.with_name(f"{self._cache.name}.lock")):
            if not kept.is_dir():
                self._download(id, sha256, kept, log)
        (description,) = kept.glob("*.dsc")
        answer = self._apt.client.ask(
            [
                find_program("dpkg-source"), "--no-copy", "--require-strong-checksums",
                "--extract", str(description.absolute()), str(directory.absolute()),
            ],
            directory=kept, timeout_seconds=LONG_SECONDS, log=log,
        )  # fmt: skip
        if answer.failed:
            raise CheckoutFailed(
                f"dpkg-source cannot unpack {self.package.name} {id}: {why_apt_failed(answer)}"
            )
        date_alike(directory)

    def _download(self, id: str, sha256: str, kept: Path, log: str) -> None:
        spec = f"{self.package.name}={id}"
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="making-") as scratch:
            made = Path(scratch).absolute() / "made"
            made.mkdir()
            answer = self._apt.ask(
                "apt-get",
                "source",
                "--only-source",
                "--download-only",
                "-q",
                "--",
                spec,
                directory=made,
                log=log,
            )
            if answer.failed:
                raise CheckoutFailed(f"apt cannot fetch {spec}: {why_apt_failed(answer)}")
            _own(made)
            found = list(made.glob("*.dsc"))
            if len(found) != 1 or hashlib.sha256(found[0].read_bytes()).hexdigest() != sha256:
                raise CheckoutFailed(f"{spec}: what apt fetched is not what the archive promised for it")
            made.rename(kept)

    @cached_property
    def _apt(self) -> Apt:
        return make_apt(self._starter, index=self._asked.index, cache=self._cache)

    def _descriptions(self) -> Mapping[str, str]:
        """For each version the SHA-256 of its description, empty when the archive gives none."""
        if not self._up_to_date and not self.asked():
            self.ask_again()
        if self._known is None:
            try:
                self._known = self._told()
            except SourceError:
                if not self.asked():
                    raise
                self.ask_again()  # what is kept may be older than the package
                self._known = self._told()
        return self._known

    def _told(self) -> Mapping[str, str]:
        answer = self._apt.ask("apt-cache", "showsrc", "--only-source", "--", self.package.name)
        where = f"source.location {quoted(str(self.package))}"
        if "deb-src" in answer.errors:
            raise SourceError(
                f"{where}: apt has no archives of sources; add lines that begin with deb-src to its "
                "sources.list and run apt-get update, or name archives in source.index"
            )
        if answer.failed:
            raise SourceError(f"{where}: apt cannot say what there is: {why_apt_failed(answer)}")
        text = answer.output.decode("utf-8", errors="replace")
        found = dict(self._read(text))
        if not found:
            raise SourceError(f"{where}: there is no such source package {self.fits}")
        return found

    def _read(self, text: str) -> Iterator[tuple[str, str]]:
        for stanza in text.split("\n\n"):
            package = re.search(r"^Package: *(\S+)$", stanza, re.MULTILINE)
            version = re.search(r"^Version: *(\S+)$", stanza, re.MULTILINE)
            if package is None or package[1] != self.package.name or version is None:
                continue
            if is_debian_version(version[1]):
                sums = _CHECKSUMS.search(stanza)
                description = _DESCRIPTION.search(sums[1]) if sums else None
                yield version[1], description["sha256"] if description else ""

    def _description(self, id: str) -> str:
        known = self._descriptions()
        if id not in known:
            raise SourceError(f"{self.package}: there is no version {quoted(id)} {self.fits}")
        if not known[id]:
            raise SourceError(f"{self.package}: the archive gives no SHA-256 of {quoted(id)}")
        return known[id]


def _own(directory: Path) -> None:
    """Copy what apt only linked to, as it does with archives of this machine: those may change."""
    for path in directory.iterdir():
        if path.is_symlink():
            target = path.resolve()
            path.unlink()
            shutil.copyfile(target, path)
