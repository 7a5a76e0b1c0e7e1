"""Debian source packages: their versions in apt's archives, each unpacked and patched by dpkg-source.

Versions are in dpkg's order. The archives are those of a study, or the machine's own, which rarely list sources.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import exclusive_lock, publish, real_path, set_same_date
from perftrail.model.build import content_key
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS, Client, client_environment
from perftrail.sources.packages.registry import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.source import Package
    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter
    from perftrail.sources.client import ToolResult


_VERSION = re.compile(
    r"(?:(?P<epoch>\d{1,10}):)?(?P<upstream>\d[A-Za-z0-9.+~:-]*?)(?:-(?P<revision>[A-Za-z0-9.+~]+))?",
    re.ASCII,
)
_LONGEST_VERSION = 256
"""Longer than any version; the pattern takes quadratic time."""

_PARTS = re.compile(r"([^0-9]*)([0-9]*)")
_BEFORE = re.compile(r"~(?!dfsg|ds|repack|deb|bpo|ubuntu)")

_Part = tuple[tuple[int, ...], int]
_END: _Part = ((0,), 0)
"""End of a version: after ``~``, before anything else."""


@dataclass(frozen=True, slots=True, order=True)
class DebianVersion:
    """A version in parts that compare as in dpkg: ``~`` before the end, letters before other characters.

    >>> DebianVersion.read("1.0~rc1-1") < DebianVersion.read("1.0-1") < DebianVersion.read("1.0-1+deb12u1")
    True
    >>> DebianVersion.read("2.0") < DebianVersion.read("1:1.0")
    True
    """

    epoch: int
    upstream: tuple[_Part, ...]
    revision: tuple[_Part, ...]

    @classmethod
    def read(cls, text: str) -> DebianVersion:
        """Parse a version. Raises `SourceError` for an invalid one."""
        found = _VERSION.fullmatch(text) if len(text) <= _LONGEST_VERSION else None
        if found is None:
            raise SourceError(f"range: {quoted(text)} is not a version of a Debian package such as 1.4.2-1")
        return cls(int(found["epoch"] or 0), _parts(found["upstream"]), _parts(found["revision"] or ""))


def is_debian_version(text: str) -> bool:
    """Whether a text is a version; only versions are passed to a client.

    >>> [is_debian_version(text) for text in ("1:2.0~rc1-3+b1", "unstable", "1.0 -o x")]
    [True, False, False]
    """
    return len(text) <= _LONGEST_VERSION and _VERSION.fullmatch(text) is not None


def is_prerelease(text: str) -> bool:
    """Whether the upstream part is a pre-release (``~rc1``), unlike Debian's own ``~dfsg`` and ``~bpo``.

    >>> [is_prerelease(text) for text in ("2.0~rc1-1", "2.0~dfsg-1", "2.0-1~bpo12+1")]
    [True, False, False]
    """
    found = _VERSION.fullmatch(text)
    return found is not None and _BEFORE.search(found["upstream"]) is not None


def _parts(text: str) -> tuple[_Part, ...]:
    found = [
        ((*map(_rank, letters), 0), int(digits or 0))
        for letters, digits in _PARTS.findall(text)
        if letters or digits
    ]
    return (*(found or [_END]), _END)


def _rank(letter: str) -> int:
    """Return the rank of a character that is not a digit."""
    if letter == "~":
        return -1
    return ord(letter) if letter.isalpha() else ord(letter) + 256


_PROGRAM_LINE = re.compile(r"^[ \t]*deb(?=[ \t])", re.MULTILINE)
_TYPES = re.compile(r"^Types[ \t]*:.*$", re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(r"(?:deb-src\s+)?(?P<options>\[[^\]]*\]\s*)?(?P<address>.*)")


def lists_sources(apt: Apt) -> bool:
    """Return whether apt knows any archive of sources."""
    return bool(apt.run("apt-get", "indextargets", "--no-release-info", "Created-By: Sources").output.strip())


def machine_archives(apt: Apt) -> Mapping[str, str]:
    """Return the machine's own lists of archives by file name, changed to list sources instead of programs."""
    result = apt.run(
        "apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"
    )
    output = dict(word.split("=", 1) for word in shlex.split(result.output.decode(errors="replace")))
    parts = Path(output.get("PARTS", ""))
    files = [Path(output.get("LIST", "")), *(sorted(parts.iterdir()) if parts.is_dir() else [])]
    return {
        each.name: sources
        for each in files
        if each.suffix in (".list", ".sources") and each.is_file()
        if (sources := _with_sources(each.read_text(encoding="utf-8", errors="replace"), each.suffix))
    }


def named_archives(index: str, machine: Apt) -> Mapping[str, str]:
    """Return a study's `index` as a list of archives. Raises `SourceError`.

    A line without an address means the archive of this machine's own packages.
    """
    lines = [_source_line(line.strip(), machine) for line in index.splitlines() if line.strip()]
    return {"index.list": "".join(f"{line}\n" for line in lines)}


def _with_sources(text: str, suffix: str) -> str:
    """Return the same archives for sources; empty without any."""
    pattern, words = (_TYPES, "Types: deb-src") if suffix == ".sources" else (_PROGRAM_LINE, "deb-src")
    sources, count = pattern.subn(words, text)
    return sources if count else ""


def _source_line(line: str, machine: Apt) -> str:
    found = _LINE.fullmatch(line)
    assert found is not None  # every part of it may be empty
    address = found["address"]
    if ":" not in address.partition(" ")[0]:
        address = f"{_machine_address(line, machine)} {address}"
    return f"deb-src {found['options'] or ''}{address}"


def _machine_address(line: str, machine: Apt) -> str:
    """Return the address of dpkg's archive, which every Debian machine has."""
    for part in machine.run("apt-cache", "madison", "dpkg").lines():
        where = part.split("|")[-1].split()
        if where and ":" in where[0]:
            return where[0]
    raise SourceError(
        f"source.index: {quoted(line)} names no address, and apt does not know where this machine's own "
        "packages come from; run apt-get update, or write ADDRESS SUITE COMPONENT"
    )


_UPDATED = "asked"
"""File in the directory of an `Apt`; its date is the time of the last query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apt:
    """Runs apt's programs with separate options; they need no right to change the machine.

    `archives` are lists of other archives than the machine's, by file name; their data is cached in `directory`.
    `named`: a study names these archives.
    """

    client: Client
    options: tuple[str, ...]
    directory: Path
    archives: Mapping[str, str] = field(default_factory=dict)
    named: bool = False

    def run(
        self,
        program: str,
        *words: str,
        directory: Path | None = None,
        log: str | Path | None = None,
    ) -> ToolResult:
        """Run a program of apt. Raises `SourceError` if it is not installed."""
        return self.client.run(
            [find_program(program), *self.options, *words],
            directory=directory or self.directory,
            timeout_seconds=LONG_SECONDS,
            log=log,
        )


def make_apt(starter: Starter, *, index: str | None, cache: Path) -> Apt:
    """Return an apt with the archives of `index`, lines as in sources.list, or else the machine's.

    If the machine's apt only knows programs, the sources of the same archives are used. Data of other archives is
    cached below `cache`. Raises `SourceError`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    find_program("apt-get")
    client = Client(starter=starter, environment=client_environment(without=("DEBIAN_",)))
    machine = Apt(client=client, options=(), directory=cache)
    if index is not None:
        return _with_archives(machine, named_archives(index, machine), named=True)
    if lists_sources(machine) or not (archives := machine_archives(machine)):
        return machine
    return _with_archives(machine, archives, named=False)


def update_time(apt: Apt) -> str:
    """Return when other archives than the machine's were last queried (ISO 8601); empty if never."""
    try:
        seconds = (apt.directory / _UPDATED).stat().st_mtime
    except FileNotFoundError:
        return ""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds")


def update_archives(apt: Apt) -> None:
    """Query the archives again; the machine's own lists do not change. Raises `SourceError`."""
    if not apt.archives:
        return
    directory = apt.directory
    with exclusive_lock(directory.with_name(f"{directory.name}.lock")):
        for name in ("lists/partial", "cache/archives/partial", "archives"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        (directory / "status").touch()
        for name, text in apt.archives.items():
            (directory / "archives" / name).write_text(text, encoding="utf-8")
        result = apt.run("apt-get", "update", "-q")
        # Some of the machine's archives may have no sources; one archive with sources is enough.
        if result.failed and (apt.named or not any((directory / "lists").glob("*Sources*"))):
            named = "source.index: apt cannot read these archives"
            of_machine = "apt cannot read the sources of this machine's archives"
            raise SourceError(f"{named if apt.named else of_machine}: {why_apt_failed(result)}")
        (directory / _UPDATED).touch()


def _with_archives(machine: Apt, archives: Mapping[str, str], *, named: bool) -> Apt:
    """Return an apt that knows only these archives, lists of them by file name."""
    directory = (machine.directory / f"apt-{content_key(archives)[:16]}").absolute()
    options = {
        "Dir::State": directory,
        "Dir::State::status": directory / "status",
        "Dir::Cache": directory / "cache",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": directory / "archives",
        "Acquire::Languages": "none",
    }
    return Apt(
        client=machine.client,
        options=tuple(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        directory=directory,
        archives=archives,
        named=named,
    )


def find_program(name: str) -> str:
    """Return the path of one of Debian's programs. Raises `SourceError` if it is not installed."""
    program = shutil.which(name)
    if program is None:
        package = "dpkg-dev" if name.startswith("dpkg-") else "apt"
        raise SourceError(
            f"{name} is not installed, and Debian's sources need it; install {package}, on Debian or "
            "a derived system"
        )
    return program


def why_apt_failed(result: ToolResult) -> str:
    """Return the first error message of apt or dpkg."""
    lines: Sequence[str] = [line.strip() for line in result.errors.splitlines()]
    messages = [line for line in lines if line.startswith("E: ") or ": error: " in line]
    reason = messages[0].removeprefix("E: ") if messages else result.why
    return reason or result.ended


_DESCRIPTION = re.compile(r"^ (?P<sha256>[0-9a-f]{64}) +\d+ +(?P<name>\S+\.dsc)$", re.MULTILINE)
_CHECKSUMS = re.compile(r"^Checksums-Sha256:[ \t]*\n((?: .*\n?)+)", re.MULTILINE)


class DebianSources:
    """The versions of a source package in the machine's archives, or in those of the study."""

    limits = "in the archives that apt is set up for"

    def __init__(self, package: Package, table: SourceTable, *, cache: Path, starter: Starter) -> None:
        self.package = package
        self._table = table
        self._cache = cache
        self._starter = starter
        self._up_to_date = False
        self._known: Mapping[str, str] | None = None

    def updated(self) -> str:
        """Return when the archives were queried (ISO 8601); empty if this process queried them."""
        return "" if self._up_to_date else update_time(self._apt)

    def update(self) -> None:
        """Query the archives again."""
        update_archives(self._apt)
        self._up_to_date, self._known = True, None

    def version(self, text: str) -> DebianVersion:
        """Parse a version as dpkg does."""
        return DebianVersion.read(text)

    def releases(self) -> tuple[Release, ...]:
        """Return the versions in the archives, which do not state their dates."""
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
        """Return the content key of a version: of its description, which has the checksums of all its files."""
        return content_key("debian source", self._description(id))

    def write_release(self, id: str, directory: Path, log: str) -> None:
        """Let apt download a version once, check it, and let dpkg-source unpack and patch it."""
        sha256 = self._description(id)
        stored = self._cache / sha256
        with exclusive_lock(self._cache.with_name(f"{self._cache.name}.lock")):
            if not stored.is_dir():
                self._download(id, sha256, stored, log)
        (description,) = stored.glob("*.dsc")
        result = self._apt.client.run(
            [
                find_program("dpkg-source"), "--no-copy", "--require-strong-checksums",
                "--extract", str(description.absolute()), str(directory.absolute()),
            ],
            directory=stored, timeout_seconds=LONG_SECONDS, log=log,
        )  # fmt: skip
        if result.failed:
            raise CheckoutFailed(
                f"dpkg-source cannot unpack {self.package.name} {id}: {why_apt_failed(result)}"
            )
        set_same_date(directory)

    def _download(self, id: str, sha256: str, stored: Path, log: str) -> None:
        spec = f"{self.package.name}={id}"
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="making-") as scratch:
            made = Path(scratch).absolute() / "made"
            made.mkdir()
            result = self._apt.run(
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
            if result.failed:
                raise CheckoutFailed(f"apt cannot fetch {spec}: {why_apt_failed(result)}")
            _copy_linked_files(made)
            found = list(made.glob("*.dsc"))
            if len(found) != 1 or hashlib.sha256(found[0].read_bytes()).hexdigest() != sha256:
                raise CheckoutFailed(f"{spec}: the files that apt fetched do not have the archive's checksum")
            publish(made, stored)

    @cached_property
    def _apt(self) -> Apt:
        return make_apt(self._starter, index=self._table.index, cache=self._cache)

    def _descriptions(self) -> Mapping[str, str]:
        """Return the SHA-256 of the description of each version; empty if the archive has none."""
        if not self._up_to_date and not self.updated():
            self.update()
        if self._known is None:
            try:
                self._known = self._query_versions()
            except SourceError:
                if not self.updated():
                    raise
                self.update()  # the cached lists may be older than the package
                self._known = self._query_versions()
        return self._known

    def _query_versions(self) -> Mapping[str, str]:
        result = self._apt.run("apt-cache", "showsrc", "--only-source", "--", self.package.name)
        where = f"source.location {quoted(str(self.package))}"
        if "deb-src" in result.errors:
            raise SourceError(
                f"{where}: apt has no archives of sources; add lines that begin with deb-src to its "
                "sources.list and run apt-get update, or name archives in source.index"
            )
        if result.failed:
            raise SourceError(f"{where}: apt cannot list the versions: {why_apt_failed(result)}")
        text = result.output.decode("utf-8", errors="replace")
        found = dict(self._read(text))
        if not found:
            raise SourceError(f"{where}: no such source package {self.limits}")
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
            raise SourceError(f"{self.package}: no version {quoted(id)} {self.limits}")
        if not known[id]:
            raise SourceError(f"{self.package}: the archive has no SHA-256 of {quoted(id)}")
        return known[id]


def _copy_linked_files(directory: Path) -> None:
    """Replace links by copies: apt links to files of archives on this machine, which may change."""
    for path in directory.iterdir():
        if path.is_symlink():
            target = real_path(path)
            path.unlink()
            shutil.copyfile(target, path)
