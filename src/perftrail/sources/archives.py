"""Releases as archives in the study file, by path or by address, each checked against its checksum."""

from __future__ import annotations

import difflib
import hashlib
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import exclusive_lock, publish, remove_tree
from perftrail.model.build import content_key
from perftrail.model.subject import Revision
from perftrail.model.wording import duration, quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.ranges import EVERYTHING, parse_range, range_errors
from perftrail.sources.unpacking import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.source import Archive
    from perftrail.model.source import Source as SourceTable


LARGEST_ARCHIVE_BYTES = 4 << 30
"""Larger than any source release; longer downloads are stopped."""

_TIMEOUT_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
_RETRIES = Retry(total=3, backoff_factor=0.25, status_forcelist=(500, 502, 503, 504))


def archive_location(archive: Archive, base: str) -> str:
    """Return the location of an archive: its own path or address, or its name below the source's.

    >>> from perftrail.model.source import Archive
    >>> archive_location(Archive(version="1", file="a-1.tgz"), "https://x.org/dist")
    'https://x.org/dist/a-1.tgz'
    >>> archive_location(Archive(version="1", file="a-1.tgz"), "/var/dist")
    '/var/dist/a-1.tgz'
    """
    if is_download(archive.file):
        return archive.file
    if is_download(base):
        return urljoin(f"{base.rstrip('/')}/", archive.file)
    return str(Path(base.removeprefix("file://")) / archive.file.removeprefix("file://"))


def is_download(location: str) -> bool:
    """Whether a location must be downloaded."""
    return location.startswith(("https://", "http://"))


def fetch(archive: Archive, *, base: str, cache: Path) -> Path:
    """Return an archive as a file with the right checksum. Raises `CheckoutFailed`."""
    location = archive_location(archive, base)
    if is_download(location):
        return _downloaded(archive, location, cache)
    path = Path(location)
    if not path.is_file():
        raise CheckoutFailed(f"{path}: no such archive; source.archives names it for {archive.version}")
    if archive.sha256:
        with path.open("rb") as file:
            _compare(archive, hashlib.file_digest(file, "sha256").hexdigest(), location)
    return path


def _downloaded(archive: Archive, address: str, cache: Path) -> Path:
    """Return the archive in the cache, which contains only checked files, by checksum."""
    cached = cache / archive.sha256.lower()
    if cached.is_file():
        return cached
    with exclusive_lock(cache.with_name(f"{cache.name}.lock")):
        cache.mkdir(parents=True, exist_ok=True)
        if not cached.is_file():
            _download_checked(archive, address, cached)
    return cached


def _download_checked(archive: Archive, address: str, to: Path) -> None:
    """Download an archive into a file that exists only after its check."""
    with tempfile.NamedTemporaryFile(dir=to.parent, prefix="making-", delete=False) as file:
        temporary = Path(file.name)
    try:
        _compare(archive, _download(address, temporary), address)
        publish(temporary, to)
    except (requests.RequestException, HTTPError, OSError) as error:
        raise CheckoutFailed(f"{address}: cannot be downloaded: {type(error).__name__}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _download(address: str, to: Path) -> str:
    """Download an address into a file; return the file's SHA-256."""
    digest, size, deadline = hashlib.sha256(), 0, time.monotonic() + LONG_SECONDS
    with requests.Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=_RETRIES))
        session.headers["Accept-Encoding"] = "identity"
        with session.get(address, stream=True, timeout=_TIMEOUT_SECONDS) as response, to.open("wb") as file:
            response.raise_for_status()
            # The checksum is that of the stored file: an encoding of the transfer must not change it.
            for chunk in response.raw.stream(_CHUNK_BYTES, decode_content=False):
                size += len(chunk)
                if size > LARGEST_ARCHIVE_BYTES:
                    raise CheckoutFailed(f"{address}: is larger than {LARGEST_ARCHIVE_BYTES} bytes")
                if time.monotonic() > deadline:
                    raise CheckoutFailed(
                        f"{address}: the download took more than {duration(LONG_SECONDS)}; check the network, or "
                        "download it yourself and name the file in source.archives"
                    )
                digest.update(chunk)
                file.write(chunk)
    return digest.hexdigest()


def _compare(archive: Archive, digest: str, location: str) -> None:
    if digest != archive.sha256.lower():
        raise CheckoutFailed(f"{location}: wrong checksum for {archive.version}: its SHA-256 is {digest}")


class ArchiveSource:
    """The archives of a study's table, the first being the oldest; a revision's id is its version.

    An archive that is missing, or has another checksum, is a revision that cannot be checked out.
    """

    def __init__(self, table: SourceTable, *, cache: str) -> None:
        self._table = table
        self._cache = Path(cache) / "archives"
        self._archives: Mapping[str, Archive] = {each.version: each for each in table.archives}
        self._versions = list(self._archives)
        self._digests: dict[str, str] = {}

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the versions of a range, both ends included; each has the previous one as parent."""
        with range_errors(range, of_study=self._table.range):
            first, last = self._ends(self._table.range if range is None else range)
        return tuple(
            Revision(
                id=version,
                summary=self._archives[version].file,
                label=version,
                parents=tuple(self._versions[max(0, number - 1) : number]),
            )
            for number, version in enumerate(self._versions)
            if first <= number <= last
        )

    def within(self, range: str) -> frozenset[str]:
        """Return the versions of a range; either end may be open."""
        first, last = self._ends(range)
        return frozenset(self._versions[first : last + 1])

    def merge(self, revision: Revision) -> None:
        """Return `None`: releases have no merges."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return no files: the changed files are unknown before unpacking."""
        return ((),) * len(revisions)

    def content(self, revision: Revision) -> str:
        """Return the content key of an archive's content: its checksum, or the location of a missing one."""
        archive = self._archive(revision)
        return content_key("archive", archive.sha256 or self._digest(archive))

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Fetch an archive, check it, and unpack it without a single enclosing directory."""
        if Path(directory).exists():
            raise CheckoutFailed(f"{directory}: exists already; a release needs a new directory")
        try:
            archive = self._archive(revision)
        except SourceError as error:
            raise CheckoutFailed(str(error)) from error
        with Path(log).open("a", encoding="utf-8", errors="replace") as file:
            print(f"$ unpack {archive_location(archive, self._table.location)} into {directory}", file=file)
            try:
                path = fetch(archive, base=self._table.location, cache=self._cache)
                print(f"{unpack(path, Path(directory))} files", file=file)
            except CheckoutFailed as error:
                remove_tree(Path(directory))
                print(error, file=file)
                raise

    def _archive(self, revision: Revision) -> Archive:
        if revision.id not in self._archives:
            raise SourceError(self._unknown(revision.id))
        return self._archives[revision.id]

    def _digest(self, archive: Archive) -> str:
        """Return the checksum of a local archive that the table does not state."""
        if archive.version not in self._digests:
            path = Path(archive_location(archive, self._table.location))
            if not path.is_file():
                return f"none at {path}"
            with path.open("rb") as file:
                self._digests[archive.version] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._digests[archive.version]

    def _ends(self, text: str | None) -> tuple[int, int]:
        """Return the positions of a range's ends in the table."""
        ends = parse_range(text) if text else EVERYTHING
        first = self._position(ends.old) if ends.old else 0
        last = self._position(ends.new) if ends.new else len(self._versions) - 1
        if first > last:
            raise SourceError(f'range "{text}" is backwards; write "{ends.new}..{ends.old}"')
        return first, last

    def _position(self, version: str) -> int:
        if version not in self._archives:
            raise SourceError(self._unknown(version))
        return self._versions.index(version)

    def _unknown(self, version: str) -> str:
        near = difflib.get_close_matches(version, self._versions, n=3)
        hint = f"; did you mean {' or '.join(map(quoted, near))}?" if near else ""
        return f"source.archives: has no version {quoted(version)}{hint}"
