"""What a back-port starts from: the revisions by their names, and the change as a patch that fits the old one."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, UsageError
from perftrail.file_tree import alone
from perftrail.model.build import content_key
from perftrail.model.patch import Conflict, Patch, Patched
from perftrail.model.wording import quoted
from perftrail.opening import results_directory
from perftrail.process.launcher import Launcher
from perftrail.sources import open_patches, open_source
from perftrail.sources.fossil.patch import FossilPatches
from perftrail.sources.git.patch import GitPatches
from perftrail.sources.patched import patched

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Source
    from perftrail.sources.patched import PlainPatches

HEADER = b"perftrail backport"
"""How a patch file that we wrote begins: only such a one is written over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody asks to carry: the change of `fix`, or `patch` where it is given, onto `onto`."""

    onto: str
    fix: str | None = None
    patch: bytes | None = None

    def __post_init__(self) -> None:
        if self.fix is None and self.patch is None:
            raise UsageError("backport what? name the revision with the fix, or give --patch FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carriage:
    """A change on its way: the old revision with the patch on it, and the revision that it is measured against.

    `given`: the patch is somebody's own, else it is what `fix` changed.
    """

    patched: Patched
    fix: Revision | None
    given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A change that does not apply, and to what."""

    onto: Revision
    fix: Revision | None
    conflict: Conflict


def make_patch(study: Study, wanted: Wanted, *, store: str | None) -> Carriage | Blocked:
    """Find the revisions and fit the change to the old one. Makes no build.

    Raises `UsageError` for what cannot be asked of this kind of source, `SourceError` for a name that is no
    revision or a file that is no patch, `NoAnswer` when the old revision has the change already.
    """
    root = results_directory(study, store)
    cache = str(root / "sources")
    with Launcher() as starter, alone(Path(cache) / "backports.lock"):
        _forget_left_over(root / "backports")
        source = open_source(study, cache=cache, starter=starter)
        onto = find_revision(study, source, wanted.onto)
        fix = find_revision(study, source, wanted.fix) if wanted.fix is not None else None
        patches = open_patches(study, source, cache=cache, starter=starter)
        workplace = str(root / "backports" / content_key(onto.id, fix.id if fix else "", _given(wanted))[:12])
        outcome = _fit(patches, wanted, onto=onto, fix=fix, workplace=workplace)
    if isinstance(outcome, Conflict):
        return Blocked(onto=onto, fix=fix, conflict=outcome)
    return Carriage(patched=patched(onto, outcome), fix=fix, given=wanted.patch is not None)


def find_revision(study: Study, source: Source, name: str) -> Revision:
    """Give the one revision that a name means, also outside of the study's range; raises `SourceError`."""
    if study.walked.kind == "directory":
        (only,) = source.history()
        if name in (".", only.label) or (name and only.id.startswith(name)):
            return only
        raise SourceError(f"{quoted(name)}: a directory has one revision; write . for it")
    if ".." in name or not name:
        raise UsageError(f"{quoted(name)}: a range is no revision; name one of them")
    (found,) = source.history(f"{name}..{name}")
    return found


def patch_file(study: Study, onto: Revision) -> Path:
    """Where the patch onto an old revision is written unless somebody says where."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", onto.label or onto.short).strip("-.")[:60]
    return Path(study.directory) / f"perftrail-backport-{name or onto.short}.patch"


def write_patch(file: Path, carriage: Carriage) -> None:
    """Write the patch with a head that says what it is. Raises `UsageError` when somebody else's file is there."""
    onto, fix = carriage.patched.base, carriage.fix
    try:
        if file.exists() and not _is_ours(file):
            raise UsageError(f"{file}: is there already and is no patch of ours; choose another --output")
        head = [HEADER.decode(), f"onto: {_one_line(onto)}", *([f"fix: {_one_line(fix)}"] if fix else []), ""]
        file.write_bytes("\n".join([*head, ""]).encode() + carriage.patched.patch.text)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _forget_left_over(backports: Path) -> None:
    """Remove what attempts left that were killed; whoever holds the lock is the only one who has any."""
    for attempt in backports.glob("*/try-*"):
        shutil.rmtree(attempt, ignore_errors=True)
        if not any(attempt.parent.iterdir()):
            attempt.parent.rmdir()


def _fit(
    patches: GitPatches | PlainPatches,
    wanted: Wanted,
    *,
    onto: Revision,
    fix: Revision | None,
    workplace: str,
) -> Patch | Conflict:
    if wanted.patch is not None:
        return patches.apply(wanted.patch, onto=onto, workplace=workplace)
    assert fix is not None
    if not isinstance(patches, GitPatches | FossilPatches):
        raise UsageError(
            f"{quoted(fix.id)}: only a git or Fossil history says what a revision changed; "
            "give the change with --patch FILE"
        )
    return patches.carry(fix, onto=onto, workplace=workplace)


def _given(wanted: Wanted) -> str:
    return "" if wanted.patch is None else content_key(wanted.patch.hex())


def _is_ours(file: Path) -> bool:
    with file.open("rb") as there:
        return there.read(len(HEADER)) == HEADER


def _one_line(revision: Revision) -> str:
    """A revision in one line of text, whatever its message holds."""
    label = f" {revision.label}" if revision.label and revision.label != revision.id else ""
    told = f"{revision.id}{label} {revision.summary}"
    return "".join(letter if letter.isprintable() else " " for letter in told).strip()
