"""Find the revisions of a back-port, and turn the change into a patch that applies to the old one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, UsageError
from perftrail.file_tree import exclusive_lock, remove_tree
from perftrail.model.build import content_key
from perftrail.model.patch import Conflict, Patch, Patched
from perftrail.model.wording import escaped, quoted
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
"""First bytes of a patch file that perftrail wrote; only such a file is overwritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackportRequest:
    """A requested back-port: the change of `fix`, or `patch` if present, onto `onto`."""

    onto: str
    fix: str | None = None
    patch: bytes | None = None

    def __post_init__(self) -> None:
        if self.fix is None and self.patch is None:
            raise UsageError("no change to back-port; name the revision with the fix, or use --patch FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPatch:
    """A change that applies: the old revision with the patch, and the revision with the fix for reference.

    `from_file`: the user supplied the patch, else it is the change of `fix`.
    """

    patched: Patched
    fix: Revision | None
    from_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackportConflict:
    """A change that does not apply: the revisions and the conflict."""

    onto: Revision
    fix: Revision | None
    conflict: Conflict


def fit_patch(study: Study, request: BackportRequest, *, store: str | None) -> FittedPatch | BackportConflict:
    """Find the revisions and fit the change to the old one. Builds nothing.

    Raises `UsageError` for requests that this kind of source does not support, `SourceError` for an unknown
    revision or an invalid patch, `NoAnswer` when the old revision already has the change.
    """
    root = results_directory(study, store)
    cache = str(root / "sources")
    with Launcher() as starter, exclusive_lock(Path(cache) / "backports.lock"):
        _remove_leftovers(root / "backports")
        source = open_source(study, cache=cache, starter=starter)
        onto = find_revision(study, source, request.onto)
        fix = find_revision(study, source, request.fix) if request.fix is not None else None
        patches = open_patches(study, source, cache=cache, starter=starter)
        workplace = str(
            root / "backports" / content_key(onto.id, fix.id if fix else "", _patch_key(request))[:12]
        )
        outcome = _fit(patches, request, onto=onto, fix=fix, workplace=workplace)
    if isinstance(outcome, Conflict):
        return BackportConflict(onto=onto, fix=fix, conflict=outcome)
    return FittedPatch(patched=patched(onto, outcome), fix=fix, from_file=request.patch is not None)


def find_revision(study: Study, source: Source, name: str) -> Revision:
    """Return the one revision that a name means, also outside the study's range; raises `SourceError`."""
    if study.searched_source.kind == "directory":
        (only,) = source.history()
        if name in (".", only.label) or (name and only.id.startswith(name)):
            return only
        raise SourceError(f"{quoted(name)}: a directory has one revision; its name is .")
    if ".." in name or not name:
        raise UsageError(f"{quoted(name)}: a range is not a revision; name one revision")
    (revision,) = source.history(f"{name}..{name}")
    return revision


def patch_file(study: Study, onto: Revision) -> Path:
    """Return the default path of the patch onto an old revision."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", onto.label or onto.short).strip("-.")[:60]
    return Path(study.directory) / f"perftrail-backport-{name or onto.short}.patch"


def write_patch(file: Path, fitted: FittedPatch) -> None:
    """Write the patch with a descriptive header. Raises `UsageError` if the file is not one of perftrail's."""
    onto, fix = fitted.patched.base, fitted.fix
    try:
        if file.exists() and not _is_from_perftrail(file):
            raise UsageError(f"{file}: exists, and perftrail did not write it; choose another --output")
        head = [HEADER.decode(), f"onto: {_one_line(onto)}", *([f"fix: {_one_line(fix)}"] if fix else []), ""]
        file.write_bytes("\n".join([*head, ""]).encode() + fitted.patched.patch.text)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _remove_leftovers(backports: Path) -> None:
    """Remove leftovers of killed processes; only the holder of the lock may call this."""
    for attempt in backports.glob("*/try-*"):
        remove_tree(attempt)
        if not any(attempt.parent.iterdir()):
            attempt.parent.rmdir()


def _fit(
    patches: GitPatches | PlainPatches,
    request: BackportRequest,
    *,
    onto: Revision,
    fix: Revision | None,
    workplace: str,
) -> Patch | Conflict:
    if request.patch is not None:
        return patches.apply(request.patch, onto=onto, workplace=workplace)
    assert fix is not None
    if not isinstance(patches, GitPatches | FossilPatches):
        raise UsageError(
            f"{quoted(fix.id)}: only a git or Fossil history shows what a revision changed; "
            "supply the change with --patch FILE"
        )
    return patches.cherry_pick(fix, onto=onto, workplace=workplace)


def _patch_key(request: BackportRequest) -> str:
    return "" if request.patch is None else content_key(request.patch.hex())


def _is_from_perftrail(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(HEADER)) == HEADER


def _one_line(revision: Revision) -> str:
    """Return a revision in one line of text, whatever its message contains."""
    label = f" {revision.label}" if revision.label and revision.label != revision.id else ""
    line = f"{revision.id}{label} {revision.summary}"
    return escaped(line, longest=None).strip()
