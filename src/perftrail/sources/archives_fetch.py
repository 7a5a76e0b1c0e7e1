"""Gets archives: from this machine as they are, from an address once, each checked against its checksum."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from perftrail.errors import CheckoutFailed
from perftrail.file_lock import alone

if TYPE_CHECKING:
    from perftrail.model.source import Archive

LARGEST_ARCHIVE_BYTES = 4 << 30
"""More than any source release has; an address that never stops sending is left then."""

_TIMEOUT_SECONDS = 60.0
_PIECE_BYTES = 1 << 20
_RETRIES = Retry(total=3, backoff_factor=0.25, status_forcelist=(500, 502, 503, 504))


def place_of(archive: Archive, base: str) -> str:
    """Say where an archive lies: its own path or address, or its name below what the source says.

    >>> from perftrail.model.source import Archive
    >>> place_of(Archive(version="1", file="a-1.tgz"), "https://x.org/dist")
    'https://x.org/dist/a-1.tgz'
    >>> place_of(Archive(version="1", file="a-1.tgz"), "/var/dist")
    '/var/dist/a-1.tgz'
    """
    if is_download(archive.file):
        return archive.file
    if is_download(base):
        return urljoin(f"{base.rstrip('/')}/", archive.file)
    return str(Path(base.removeprefix("file://")) / archive.file.removeprefix("file://"))


def is_download(place: str) -> bool:
    """Whether something has to be downloaded."""
    return place.startswith(("https://", "http://"))


def fetch(archive: Archive, *, base: str, cache: Path) -> Path:
    """Give an archive as a file that is what its checksum promises. Raises `CheckoutFailed`."""
    place = place_of(archive, base)
    if is_download(place):
        return _downloaded(archive, place, cache)
    path = Path(place)
    if not path.is_file():
        raise CheckoutFailed(f"{path}: no such archive; source.archives says it holds {archive.version}")
    if archive.sha256:
        with path.open("rb") as file:
            _compare(archive, hashlib.file_digest(file, "sha256").hexdigest(), place)
    return path


def _downloaded(archive: Archive, address: str, cache: Path) -> Path:
    """The archive in the cache, which holds only what was checked, by checksum."""
    kept = cache / archive.sha256.lower()
    if kept.is_file():
        return kept
    with alone(cache.with_name(f"{cache.name}.lock")):
        cache.mkdir(parents=True, exist_ok=True)
        if not kept.is_file():
            _keep(archive, address, kept)
    return kept


def _keep(archive: Archive, address: str, kept: Path) -> None:
    """Download an archive into a file that is there only once it was checked."""
    with tempfile.NamedTemporaryFile(dir=kept.parent, prefix="making-", delete=False) as file:
        making = Path(file.name)
    try:
        _compare(archive, _download(address, making), address)
        making.rename(kept)
    except (requests.RequestException, HTTPError, OSError) as error:
        raise CheckoutFailed(f"{address}: cannot be downloaded: {type(error).__name__}: {error}") from error
    finally:
        making.unlink(missing_ok=True)


def _download(address: str, to: Path) -> str:
    """Write what an address gives into a file and say its checksum."""
    digest, size = hashlib.sha256(), 0
    with requests.Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=_RETRIES))
        session.headers["Accept-Encoding"] = "identity"
        with session.get(address, stream=True, timeout=_TIMEOUT_SECONDS) as answer, to.open("wb") as file:
            answer.raise_for_status()
            # as it is kept there: what is compressed for the way only would not have its checksum
            for piece in answer.raw.stream(_PIECE_BYTES, decode_content=False):
                size += len(piece)
                if size > LARGEST_ARCHIVE_BYTES:
                    raise CheckoutFailed(f"{address}: is larger than {LARGEST_ARCHIVE_BYTES} bytes")
                digest.update(piece)
                file.write(piece)
    return digest.hexdigest()


def _compare(archive: Archive, digest: str, place: str) -> None:
    if digest != archive.sha256.lower():
        raise CheckoutFailed(
            f"{place}: is not what was promised for {archive.version}: its SHA-256 is {digest}"
        )
