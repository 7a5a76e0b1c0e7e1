"""Link the objects of a build in other orders: in a copy of its tree, keeping the outputs of each order.

Objects exist only in the tree of their build, and many recipes name that tree by its absolute path. So the lines run
at that path in a copy, while the tree itself is elsewhere. Afterwards it is moved back, unchanged, with all dates.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of, loader_texts
from perftrail.builds.environment import search_path
from perftrail.builds.trees import build_source_trees, content_of_outputs, no_output_message, outputs_by_tree
from perftrail.file_tree import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.builds.artefact import Content

ORIGINALS = "as-linked"
"""Name of a tree that was moved aside while its copy is relinked."""

_CLONE = 0x40049409
"""FICLONE of ioctl(2): both files share their blocks until one of them changes."""

_LLD = re.compile(r"-fuse-ld=lld\b|\bld\.lld\b")

INSTALL_LLD = "lld is not installed; install lld (Debian: lld)"


def names_lld(lines: Iterable[str]) -> bool:
    """Return whether shell lines link with lld."""
    return any(_LLD.search(line) for line in lines)


def missing_linker(lines: Iterable[str]) -> str:
    """Return the remedy for a linker that shell lines need and that is not installed; empty if there is none."""
    return INSTALL_LLD if names_lld(lines) and shutil.which("ld.lld", path=search_path()) is None else ""


def with_missing_linker(message: str, lines: Iterable[str]) -> str:
    """Return a failure's message, after the remedy for a missing linker that its lines need."""
    missing = missing_linker(lines)
    return f"{missing}\n{message}" if missing else message


_ELF = b"\x7fELF"
_EXECUTABLE = 0o111


@contextmanager
def working_copy(home: Path) -> Iterator[None]:
    """Replace ``home/tree`` and the other sources' trees by copies; restore the originals at the end."""
    with moved_aside(home) as originals:
        for tree in originals.iterdir():
            _copy_tree(tree, home / tree.name)
        yield


@contextmanager
def moved_aside(home: Path) -> Iterator[Path]:
    """Move ``home/tree`` and the other sources' trees into another directory; restore them at the end."""
    restore_trees(home)
    originals = home / ORIGINALS
    originals.mkdir()
    try:
        for tree in (home / "tree", build_source_trees(home / "tree")):
            if tree.is_dir():
                tree.rename(originals / tree.name)
        yield originals
    finally:
        restore_trees(home)


def restore_trees(home: Path) -> None:
    """Restore trees that were moved aside, and remove their copies.

    After a process was killed while relinking, the next user of the build does this.
    """
    originals = home / ORIGINALS
    if not originals.is_dir():
        return
    for tree in sorted(originals.iterdir()):
        remove_tree(home / tree.name)
        tree.rename(home / tree.name)
    originals.rmdir()


def keep_outputs(tree: Path, outputs: Sequence[str], *, below: Path, key: str) -> str:
    """Copy outputs to the same paths below another tree, and return their digest; `key` is the tree's directory name.

    Trees of other sources without outputs are linked. Raises `LookupError` with the reason if there is no output,
    or if a program would load files of the original tree instead of those of its layout.
    """
    content = content_of_outputs(tree, outputs, keys=[key])
    if content.files == 0:
        raise LookupError(no_output_message(tree, outputs))
    by_tree = outputs_by_tree(outputs)
    for name, globs in by_tree.items():
        root, target = _tree_of(tree, name), _tree_of(below, name)
        found = content_of(root, globs, keys=[key])
        _refuse_paths_into_tree(root, found, key)
        for each in found.parts:
            copy = target / each
            copy.parent.mkdir(parents=True, exist_ok=True)
            _copy(str(root / each), str(copy))
    below.mkdir(parents=True, exist_ok=True)
    others = build_source_trees(tree)
    for other in sorted(others.iterdir()) if others.is_dir() else ():
        if other.name not in by_tree:
            build_source_trees(below).mkdir(exist_ok=True)
            relative = os.path.relpath(other, build_source_trees(below))
            (build_source_trees(below) / other.name).symlink_to(relative)
    return content.digest[: len(key)]


def _tree_of(tree: Path, source: str) -> Path:
    return build_source_trees(tree) / source if source else tree


def _refuse_paths_into_tree(root: Path, content: Content, key: str) -> None:
    """Raise `LookupError` if a program among the outputs would load files of the tree in which it was linked.

    Texts that a program only prints, for example names of source files, do no harm.
    """
    for name in content.parts:
        path = root / name
        if path.is_symlink():
            named = key in str(path.readlink())
        elif path.stat().st_mode & _EXECUTABLE:
            data = path.read_bytes()
            named = key.encode() in (loader_texts(data) if data.startswith(_ELF) else data)
        else:
            named = False
        if named:
            raise LookupError(
                f"{name} contains the name of its build directory, so a relinked copy would load files of the original "
                "build; use relative paths, for example -Wl,-rpath,'$ORIGIN/lib' "
                "(CMake: -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON)"
            )


def _copy_tree(tree: Path, target: Path) -> None:
    shutil.copytree(tree, target, symlinks=True, copy_function=_copy, ignore=_special)


def _special(directory: str, names: list[str]) -> set[str]:
    """Return the names that cannot be copied: sockets, pipes and devices. No link step reads these."""
    paths = ((name, Path(directory, name)) for name in names)
    return {name for name, path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())}


def _copy(source: str, target: str) -> str:
    """Copy a file or link with its dates, and share its blocks if the file system can."""
    if not Path(source).is_symlink():
        try:
            with open(source, "rb") as old, open(target, "xb") as new:  # noqa: PTH123 - paths as text
                fcntl.ioctl(new.fileno(), _CLONE, old.fileno())
        except OSError as error:
            if error.errno not in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS}:
                raise
        else:
            shutil.copystat(source, target)
            return target
    shutil.copy2(source, target, follow_symlinks=False)
    return target
