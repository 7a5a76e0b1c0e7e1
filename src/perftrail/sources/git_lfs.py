"""Puts the contents of large files that Git LFS keeps outside the repository in the place of their pointers."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git_addresses import refuse_hostile
from perftrail.sources.git_command import remote_git

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.ports import Starter
    from perftrail.sources.git_mirror import Mirror

_LONGEST_POINTER_BYTES = 1024
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-.*\n)*oid sha256:([0-9a-f]{64})\nsize [0-9]+\n"
)
_TRACKED = ":(top,attr:filter=lfs)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pointer:
    """A file that only says what its content is: by its SHA-256."""

    path: bytes
    digest: str


class LargeFiles:
    """Looks for contents in the user's clone, then where ``git lfs`` fetches them to, if that is installed."""

    def __init__(self, *, cache: Path, starter: Starter) -> None:
        self._cache = cache
        self._starter = starter

    def fill(self, mirror: Mirror, commit: str, worktree: Path, *, address: str, log: str) -> None:
        """Replace the pointers in a worktree by what they stand for.

        Raises `CheckoutFailed` with the remedy when a content cannot be had or is not what was promised.
        """
        pointers = _pointers(mirror, worktree)
        if not pointers:
            return
        homes = [home / "lfs" / "objects" for home in (mirror.own_copy, mirror.path) if home is not None]
        lacking = [each for each in pointers if _object(homes, each) is None]
        why = self._fetch(mirror, commit, address=address, log=log) if lacking else ""
        for pointer in pointers:
            content = _object(homes, pointer)
            if content is None:
                raise CheckoutFailed(_remedied(lacking, why))
            _replace(worktree, pointer, content)
        unchanged = b"".join(each.path + b"\0" for each in pointers)
        mirror.git.ask(
            "update-index", "-z", "--assume-unchanged", "--stdin", repository=worktree, stdin=unchanged
        )

    def _fetch(self, mirror: Mirror, commit: str, *, address: str, log: str) -> str:
        """Have ``git lfs`` bring a commit's contents into the mirror; say why it could not."""
        if shutil.which("git-lfs") is None:
            return "git-lfs is not installed"
        try:
            refuse_hostile(address)
        except SourceError as error:
            return str(error)
        git = remote_git(self._starter, cache=self._cache)
        answer = git.ask(
            "-c", f"remote.origin.url={address}", "lfs", "fetch", "origin", commit,
            repository=mirror.path, timeout_seconds=LONG_SECONDS, log=log,
        )  # fmt: skip
        return answer.why if answer.failed else "git lfs did not get them"


def _pointers(mirror: Mirror, worktree: Path) -> list[_Pointer]:
    answer = mirror.git.ask("ls-files", "-z", "--", _TRACKED, repository=worktree)
    found = []
    for path in answer.output.split(b"\0")[:-1]:
        file = os.path.join(os.fsencode(worktree), path)  # noqa: PTH118 - a name may be no text
        if os.path.islink(file) or not os.path.isfile(file):  # noqa: PTH113, PTH114 - as above
            continue
        with open(file, "rb") as opened:  # noqa: PTH123 - as above
            pointer = _POINTER.fullmatch(opened.read(_LONGEST_POINTER_BYTES))
        if pointer is not None:
            found.append(_Pointer(path=path, digest=pointer[1].decode()))
    return found


def _object(homes: Sequence[Path], pointer: _Pointer) -> Path | None:
    for home in homes:
        content = home / pointer.digest[:2] / pointer.digest[2:4] / pointer.digest
        if content.is_file():
            return content
    return None


def _replace(worktree: Path, pointer: _Pointer, content: Path) -> None:
    """Put a content into the place of its pointer, with the pointer's mode."""
    file = Path(os.fsdecode(os.path.join(os.fsencode(worktree), pointer.path)))  # noqa: PTH118 - as above
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as made, content.open("rb") as held:
        shutil.copyfileobj(held, made)
    with Path(made.name).open("rb") as copied:
        digest = hashlib.file_digest(copied, "sha256").hexdigest()
    if digest != pointer.digest:
        raise CheckoutFailed(f"{quoted(str(content))} is not the content that Git LFS names so")
    shutil.copymode(file, made.name)
    Path(made.name).replace(file)


def _remedied(lacking: Sequence[_Pointer], why: str) -> str:
    first = quoted(os.fsdecode(lacking[0].path).encode("utf-8", "replace").decode())
    others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return (
        f"Git LFS keeps the content of {first}{others} elsewhere, and it cannot be had: {why}; install git-lfs, "
        "or run git lfs fetch --all in your clone; files that no build needs may be left out with "
        'source.sparse = ["!…"]'
    )
