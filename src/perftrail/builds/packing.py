"""Builds that travel: packed where they were made, unpacked where others use them, whole or not at all."""

from __future__ import annotations

import io
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of, read_finished, write_finished
from perftrail.builds.trees import content_of_outputs
from perftrail.errors import ClusterError
from perftrail.file_tree import alone, remove_tree
from perftrail.model.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perftrail.model.build import Built, Prepared

MOST_BYTES = 64 << 20
"""So much of one build, or of a study's own files, travels through a scheduler, packed; above that, and for
builds that name their own directory, machines must see one directory."""

SHARE = "use --store with a directory that every machine sees by the same path, or move the study there"

_TIE = ".git"
_BENCH = "bench"
_MARKER = "built.json"


def pack(root: Path, names: Sequence[str], *, what: str, but: Sequence[str] = ()) -> bytes:
    """Pack files and directories below `root` by their names; `but` are names left out wherever they are.

    Raises `ClusterError` with the remedy when it would be more than may travel. `what` is how it is called.
    """
    packed = _Bounded(what)
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for name in names:
            if (root / name).exists() or (root / name).is_symlink():
                archive.add(root / name, arcname=name, filter=lambda each: _kept(each, but))
    return packed.getvalue()


def unpack(packed: bytes, root: Path) -> None:
    """Unpack what `pack` packed; nothing leaves the directory by its name. Raises `ClusterError` for anything else."""
    _extract(packed, root, tarfile.tar_filter)


def unpack_logs(packed: bytes, root: Path, *, below: str) -> None:
    """Unpack files that lie in the directory `below` of `root`, and nothing beside them. Raises `ClusterError`."""

    def kept(member: tarfile.TarInfo, destination: str) -> tarfile.TarInfo:
        parts = Path(member.name).parts
        if parts[:1] != (below,) or ".." in parts or not member.isfile():
            raise ClusterError(f"{member.name}: a worker sent this as a log, but it is not one")
        return tarfile.tar_filter(member, destination)

    _extract(packed, root, kept)


def _extract(
    packed: bytes, root: Path, kept: Callable[[tarfile.TarInfo, str], tarfile.TarInfo | None]
) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            archive.extractall(root, filter=kept)  # noqa: S202 - each filter ends in tarfile's own
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ClusterError(
            f"what travelled cannot be unpacked: {error}; is the other side of this version?"
        ) from error


def pack_build(builds: Path, built: Built, *, links: Sequence[str], outputs: Sequence[str]) -> bytes:
    """Pack a build with some of its benchmarks' own; raises `ClusterError` where it cannot be used elsewhere."""
    home = builds / built.key
    found = content_of_outputs(home / "tree", outputs, keys=[built.key]) if outputs else None
    linked = [content_of(home / _BENCH / link, None, keys=[built.key]) for link in links]
    if any(each.names_build for each in (*linked, *([found] if found else []))):
        raise ClusterError(
            f"build {built.key[:12]}: what comes out of it names the directory that it was made in, so it cannot be "
            f"used in another one; {SHARE}"
        )
    own = [f"{built.key}/{each.name}" for each in sorted(home.iterdir()) if each.name not in {_BENCH, "tmp"}]
    beside = [
        f"{built.key}/{_BENCH}/{each.name}"
        for link in links
        for each in sorted((home / _BENCH).glob(f"{link}*"))
    ]
    return pack(builds, [*own, *beside], what=f"build {built.key[:12]}", but=(_TIE,))


def unpack_build(packed: bytes, builds: Path, built: Built, *, log: str) -> None:
    """Put a packed build where it belongs, unless it is there; its marker says that its log is `log`."""
    home, arriving = builds / built.key, builds / f"{built.key}.arriving"
    with alone(builds / "locks" / f"{built.key}.lock"):
        remove_tree(arriving)
        unpack(packed, arriving)
        came = arriving / built.key
        marker = came / _MARKER
        finished = read_finished(marker)
        if finished is None:
            raise ClusterError(f"build {built.key[:12]}: came unfinished from where it was made")
        write_finished(marker, replace(finished, log=log))
        if read_finished(home / _MARKER) is None:
            remove_tree(home)
            came.replace(home)
        else:
            _add_links(came / _BENCH, home / _BENCH)
        remove_tree(arriving)


def has_build(builds: Path, prepared: Prepared) -> bool:
    """Whether a build is there, finished, with a benchmark's own."""
    home = builds / prepared.built.key
    link = Path(prepared.out).name
    return (home / _MARKER).is_file() and (home / _BENCH / f"{link}.json").is_file()


def _add_links(came: Path, there: Path) -> None:
    there.mkdir(exist_ok=True)
    # markers come last, as they do when a benchmark is made
    for each in sorted(came.iterdir() if came.is_dir() else (), key=lambda path: path.suffix == ".json"):
        if not (there / each.name).exists():
            each.replace(there / each.name)


def _kept(member: tarfile.TarInfo, but: Sequence[str]) -> tarfile.TarInfo | None:
    return None if Path(member.name).name in but or not _travels(member) else member


def _travels(member: tarfile.TarInfo) -> bool:
    return member.isfile() or member.isdir() or member.issym() or member.islnk()


class _Bounded(io.BytesIO):
    """A file in memory that refuses to become larger than what may travel."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def write(self, data: object) -> int:
        written = super().write(data)  # type: ignore[arg-type] # whatever the archive writes is bytes
        if self.tell() > MOST_BYTES:
            raise ClusterError(
                f"{self._what}: packed it is more than the {quantity(float(MOST_BYTES), 'B')} that travel to a machine "
                f"that does not see it; {SHARE}"
            )
        return written


def files_below(root: Path, prefix: str) -> Iterator[str]:
    """Name the files below `root` whose names begin so, relative to it."""
    directory = (root / prefix).parent
    if directory.is_dir():
        yield from (
            str(each.relative_to(root))
            for each in sorted(directory.iterdir())
            if str(each.relative_to(root)).startswith(prefix)
        )
