"""Pack builds on the machine that built them, and unpack them on others: complete or not at all."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of, read_finished, write_finished
from perftrail.builds.trees import content_of_outputs
from perftrail.errors import ClusterError
from perftrail.file_tree import exclusive_lock, publish, remove_tree
from perftrail.model.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perftrail.model.build import Built, Prepared

MOST_TRANSFER_BYTES = 64 << 20
"""Maximum packed size of one build, or of a study's own files, that perftrail sends through a scheduler. For larger
builds, and for those that contain the name of their own directory, machines need a shared directory."""

MOST_UNPACKED_BYTES = 4 << 30
"""Maximum size of the unpacked files: a few packed bytes could otherwise fill the memory or the disk."""

MOST_UNPACKED_FILES = 1_000_000
"""Maximum number of unpacked files, directories and links."""

LONGEST_READ_BYTES = 1 << 20
"""Maximum size of a header, which Python's `tarfile` reads at once."""

SHARED_DIRECTORY = (
    "use --store with a directory that every machine can reach by the same path, or move the study there"
)
"""Remedy for builds that cannot be sent."""

_WORKTREE_LINK = ".git"
_BENCHMARK_BUILDS = "bench"
_MARKER = "built.json"


def pack(root: Path, names: Sequence[str], *, what: str, exclude: Sequence[str] = ()) -> bytes:
    """Pack files and directories below `root`, except those with a name in `exclude`, at any depth.

    Raises `ClusterError` with the remedy if the result is larger than `MOST_TRANSFER_BYTES`, or larger than `unpack`
    accepts. `what` names the result in that message.
    """
    packed = _Bounded(what)
    extent = _Extent()

    def select_member(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        kept = _kept(member, exclude)
        if kept is not None and (exceeded := extent.exceeded_by(kept)):
            raise ClusterError(f"{what}: {exceeded}; {SHARED_DIRECTORY}")
        return kept

    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for name in names:
            if (root / name).exists() or (root / name).is_symlink():
                archive.add(root / name, arcname=name, filter=select_member)
    return packed.getvalue()


def unpack(packed: bytes, root: Path) -> None:
    """Unpack a result of `pack`; no name leads out of the directory. Raises `ClusterError` for anything else.

    It stops before it writes more than `MOST_UNPACKED_BYTES`, or more than `MOST_UNPACKED_FILES` files.
    """
    _extract(packed, root, _tar_filter())


def unpack_logs(packed: bytes, root: Path, *, below: str) -> None:
    """Unpack only files of the directory `below` in `root`. Raises `ClusterError` for other content."""
    select = _tar_filter()

    def select_member(member: tarfile.TarInfo, destination: str) -> tarfile.TarInfo:
        parts = Path(member.name).parts
        if parts[:1] != (below,) or ".." in parts or not member.isfile():
            raise ClusterError(f"{member.name}: a worker sent this as a log, but it is not one")
        return select(member, destination)

    _extract(packed, root, select_member)


def _tar_filter() -> Callable[[tarfile.TarInfo, str], tarfile.TarInfo]:
    """Return the filter that refuses names outside. Raises `ClusterError` where Python has none."""
    try:
        return tarfile.tar_filter
    except AttributeError:
        raise ClusterError(
            "files from another machine need Python 3.11.4 or newer on every machine: older ones cannot refuse names "
            "that lead out of the directory"
        ) from None


def _extract(
    packed: bytes, root: Path, select_member: Callable[[tarfile.TarInfo, str], tarfile.TarInfo | None]
) -> None:
    extent = _Extent()

    def select_bounded(member: tarfile.TarInfo, destination: str) -> tarfile.TarInfo | None:
        if exceeded := extent.exceeded_by(member):
            raise _too_large(exceeded)
        return select_member(member, destination)

    try:
        with (
            _BoundedGzip(fileobj=io.BytesIO(packed), mode="rb") as unpacked,
            tarfile.open(fileobj=unpacked, mode="r:") as archive,
        ):
            archive.extractall(root, filter=select_bounded)  # noqa: S202 - each filter ends in tarfile's own
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ClusterError(
            f"files from another machine cannot be unpacked: {error}; use the same perftrail version on all machines"
        ) from error


def pack_build(
    builds: Path, built: Built, *, benchmark_builds: Sequence[str], outputs: Sequence[str]
) -> bytes:
    """Pack a build with some of its benchmark builds. Raises `ClusterError` if other machines could not use it."""
    home = builds / built.key
    found = content_of_outputs(home / "tree", outputs, keys=[built.key]) if outputs else None
    contents = [
        content_of(home / _BENCHMARK_BUILDS / key, None, keys=[built.key]) for key in benchmark_builds
    ]
    if any(each.names_build for each in (*contents, *([found] if found else []))):
        raise ClusterError(
            f"build {built.key[:12]}: its outputs contain the name of the build directory, so they cannot be used in "
            f"another one; {SHARED_DIRECTORY}"
        )
    build_files = [
        f"{built.key}/{each.name}"
        for each in sorted(home.iterdir())
        if each.name not in {_BENCHMARK_BUILDS, "tmp"}
    ]
    benchmark_files = [
        f"{built.key}/{_BENCHMARK_BUILDS}/{each.name}"
        for key in benchmark_builds
        for each in sorted((home / _BENCHMARK_BUILDS).glob(f"{key}*"))
    ]
    return pack(
        builds, [*build_files, *benchmark_files], what=f"build {built.key[:12]}", exclude=(_WORKTREE_LINK,)
    )


def unpack_build(packed: bytes, builds: Path, built: Built, *, log: str) -> None:
    """Unpack a build into its directory unless it exists; its marker names `log` as its log."""
    home, incoming = builds / built.key, builds / f"{built.key}.incoming"
    with exclusive_lock(builds / "locks" / f"{built.key}.lock"):
        remove_tree(incoming)
        unpack(packed, incoming)
        received = incoming / built.key
        marker = received / _MARKER
        finished = read_finished(marker)
        if finished is None:
            raise ClusterError(f"build {built.key[:12]}: the received build is not finished")
        write_finished(marker, replace(finished, log=log))
        if read_finished(home / _MARKER) is None:
            remove_tree(home)
            publish(received, home)
        else:
            _add_benchmark_builds(received / _BENCHMARK_BUILDS, home / _BENCHMARK_BUILDS)
        remove_tree(incoming)


def has_build(builds: Path, prepared: Prepared) -> bool:
    """Return whether a finished build exists, with a benchmark build."""
    home = builds / prepared.built.key
    key = Path(prepared.out).name
    return (home / _MARKER).is_file() and (home / _BENCHMARK_BUILDS / f"{key}.json").is_file()


def _add_benchmark_builds(received: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    # The markers come last, so that a killed copy does not count as finished.
    for each in sorted(
        received.iterdir() if received.is_dir() else (), key=lambda path: path.suffix == ".json"
    ):
        if not (target / each.name).exists():
            each.replace(target / each.name)


def _kept(member: tarfile.TarInfo, exclude: Sequence[str]) -> tarfile.TarInfo | None:
    return None if Path(member.name).name in exclude or not _is_portable(member) else member


def _is_portable(member: tarfile.TarInfo) -> bool:
    return member.isfile() or member.isdir() or member.issym() or member.islnk()


class _Bounded(io.BytesIO):
    """A file in memory with at most `MOST_TRANSFER_BYTES`."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def write(self, data: object) -> int:
        written = super().write(data)  # type: ignore[arg-type] # archives write bytes
        if self.tell() > MOST_TRANSFER_BYTES:
            raise ClusterError(
                f"{self._what}: its packed size exceeds {quantity(float(MOST_TRANSFER_BYTES), 'B')}, the limit for "
                f"copies to other machines; {SHARED_DIRECTORY}"
            )
        return written


class _Extent:
    """Counts the members of an archive and their bytes."""

    def __init__(self) -> None:
        self._files = 0
        self._bytes = 0

    def exceeded_by(self, member: tarfile.TarInfo) -> str:
        """Count a member; return which limit the archive exceeds with it, or an empty text."""
        self._files += 1
        self._bytes += member.size
        if self._files > MOST_UNPACKED_FILES:
            return f"it has more than {MOST_UNPACKED_FILES} files, the limit for copies to other machines"
        if self._bytes > MOST_UNPACKED_BYTES:
            return _unpacked_size()
        return ""


def _unpacked_size() -> str:
    limit = quantity(float(MOST_UNPACKED_BYTES), "B")
    return f"its unpacked size exceeds {limit}, the limit for copies to other machines"


def _too_large(exceeded: str) -> ClusterError:
    return ClusterError(f"an archive from another machine is not unpacked: {exceeded}; {SHARED_DIRECTORY}")


class _BoundedGzip(gzip.GzipFile):
    """A packed archive that refuses to unpack more than `MOST_UNPACKED_BYTES`, whatever its headers state."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= LONGEST_READ_BYTES:
            raise _too_large(f"one of its headers is larger than {quantity(float(LONGEST_READ_BYTES), 'B')}")
        self._refuse_beyond(self.tell() + size)
        return super().read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._refuse_beyond(offset)
        return super().seek(offset, whence)

    def _refuse_beyond(self, offset: int) -> None:
        """Headers and padding of the archive count, too; they are at most 2 KiB for each member."""
        if offset > MOST_UNPACKED_BYTES + (MOST_UNPACKED_FILES << 11):
            raise _too_large(_unpacked_size())


def files_below(root: Path, prefix: str) -> Iterator[str]:
    """Yield the files below `root` whose relative names begin with a prefix."""
    directory = (root / prefix).parent
    if directory.is_dir():
        yield from (
            str(each.relative_to(root))
            for each in sorted(directory.iterdir())
            if str(each.relative_to(root)).startswith(prefix)
        )
