"""Find the revisions of a back-port, and turn the change into a patch that applies to the old one."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, UsageError
from perftrail.file_tree import exclusive_lock, open_to_read, refuse_link, remove_tree, write_file
from perftrail.measure.events import BuilderMessage
from perftrail.model.build import content_key
from perftrail.model.patch import EVERY_PATH, Conflict, Patched, PatchPaths
from perftrail.model.subject import Subject
from perftrail.model.wording import escaped, quoted
from perftrail.opening import results_directory
from perftrail.process.launcher import Launcher
from perftrail.results_directory import create
from perftrail.sources import open_patches, open_source
from perftrail.sources.fossil.patch import FossilPatches
from perftrail.sources.git.patch import GitPatches
from perftrail.sources.patched import patched

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Source
    from perftrail.sources.patched import PlainPatches

HEADERS = (b"perftrail backport", b"perftrail revert")
"""First bytes of a patch file that perftrail wrote; only such a file is overwritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackportRequest:
    """A requested back-port: the change of `fix`, or `patch` if present, onto `onto`. `paths`: the files to apply."""

    onto: str
    fix: str | None = None
    patch: bytes | None = None
    paths: PatchPaths = EVERY_PATH

    def __post_init__(self) -> None:
        if self.fix is None and self.patch is None:
            raise UsageError("no change to back-port; name the revision with the fix, or use --patch FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertRequest:
    """A requested revert of the change of `culprit` on `onto`, by default on the newest revision.

    `inner` is a commit of the merge `culprit` that is also reverted alone. `patch` replaces the computed patch. `paths`
    are the files to revert.
    """

    culprit: str
    onto: str | None = None
    inner: str | None = None
    patch: bytes | None = None
    paths: PatchPaths = EVERY_PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPatch:
    """A change that applies: the base with the patch, and the revision with the wanted value for reference.

    In a back-port, the base is an old revision, and `fix` is the revision with the fix. In a revert, the base is the
    newest revision, and `fix` is the revision before the culprit; `reverted` is the revision whose change is undone.
    `from_file`: the user supplied the patch, else it is the change of a revision.
    """

    patched: Patched
    fix: Revision | None
    from_file: bool = False
    reverted: Revision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackportConflict:
    """A change that does not apply: the revisions and the conflict; `reverted` is as in `FittedPatch`."""

    onto: Revision
    fix: Revision | None
    conflict: Conflict
    reverted: Revision | None = None


Fitted = FittedPatch | BackportConflict
"""A change that applies, or the conflict that prevents it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRevert:
    """The revert of a culprit, and of one commit inside it if a commit was named."""

    whole: Fitted
    inner: Fitted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repository:
    """A study's source with what applies patches to it, and the directory of trees with conflicts."""

    source: Source
    patches: GitPatches | PlainPatches
    workplaces: Path


@contextmanager
def _open_repository(study: Study, *, store: str | None) -> Iterator[_Repository]:
    root = results_directory(study, store)
    create(root)
    cache = str(root / "sources")
    with Launcher() as starter, exclusive_lock(Path(cache) / "backports.lock"):
        _remove_leftovers(root / "backports")
        source = open_source(study, cache=cache, starter=starter)
        patches = open_patches(study, source, cache=cache, starter=starter)
        yield _Repository(source=source, patches=patches, workplaces=root / "backports")


def fit_patch(study: Study, request: BackportRequest, *, store: str | None) -> Fitted:
    """Find the revisions and fit the change to the old one. Builds nothing.

    Raises `UsageError` for requests that this kind of source does not support, `SourceError` for an unknown
    revision or an invalid patch, `NoAnswer` when the old revision already has the change.
    """
    paths = _with_unaffected(study, request.paths)
    with _open_repository(study, store=store) as repository:
        onto = find_revision(study, repository.source, request.onto)
        fix = find_revision(study, repository.source, request.fix) if request.fix is not None else None
        workplace = str(repository.workplaces / _workplace(onto, fix, request.patch, request.paths))
        if request.patch is not None:
            outcome = repository.patches.apply(request.patch, onto=onto, workplace=workplace, paths=paths)
        else:
            assert fix is not None
            patches = _with_history(repository.patches, fix)
            outcome = patches.cherry_pick(fix, onto=onto, workplace=workplace, paths=paths)
    if isinstance(outcome, Conflict):
        return BackportConflict(onto=onto, fix=fix, conflict=outcome)
    return FittedPatch(patched=patched(onto, outcome), fix=fix, from_file=request.patch is not None)


def fit_revert(study: Study, request: RevertRequest, *, store: str | None) -> FittedRevert:
    """Find the revisions, and fit the reverted change to the newest one. Builds nothing.

    Raises `UsageError` for requests that this kind of source does not support, `SourceError` for an unknown
    revision or an invalid patch, `NoAnswer` when the newest revision does not have the change.
    """
    if study.searched_source.kind not in ("git", "fossil"):
        raise UsageError(
            "only a git or Fossil history shows what a revision changed, so nothing can be reverted"
        )
    paths = _with_unaffected(study, request.paths)
    with _open_repository(study, store=store) as repository:
        source = repository.source
        culprit = find_revision(study, source, request.culprit)
        onto = (
            find_revision(study, source, request.onto) if request.onto is not None else source.history()[-1]
        )
        if not culprit.parents:
            raise UsageError(f"{quoted(request.culprit)}: is the first revision; there is nothing before it")
        old = find_revision(study, source, culprit.parents[0])

        def fitted(changed: Revision, patch: bytes | None) -> Fitted:
            named = _workplace(onto, changed, patch, request.paths, "revert")
            workplace = str(repository.workplaces / named)
            if patch is not None:
                outcome = repository.patches.apply(patch, onto=onto, workplace=workplace, paths=paths)
            else:
                patches = _with_history(repository.patches, changed)
                outcome = patches.revert(changed, onto=onto, workplace=workplace, paths=paths)
            if isinstance(outcome, Conflict):
                return BackportConflict(onto=onto, fix=old, conflict=outcome, reverted=changed)
            return FittedPatch(
                patched=patched(onto, outcome), fix=old, from_file=patch is not None, reverted=changed
            )

        inner = find_revision(study, source, request.inner) if request.inner is not None else None
        return FittedRevert(
            whole=fitted(culprit, request.patch),
            inner=None if inner is None or inner.id == culprit.id else fitted(inner, None),
        )


def _with_unaffected(study: Study, paths: PatchPaths) -> PatchPaths:
    """Return paths that also leave out conflicting files which, according to the study, no build reads."""
    return replace(paths, unaffected_by=(*paths.unaffected_by, *study.build.unaffected_by))


SOURCE_SUFFIXES = re.compile(
    r"\.(c|cc|cpp|cxx|cu|h|hh|hpp|hxx|inc|s|rs|go|java|kt|scala|cs|swift|mm?|f|f90|zig|nim|pyx?|rb|pl|php|lua|tcl|"
    r"js|ts|mli?|hs|erl|ex|jl|r|v|vhd|y|l)$",
    re.IGNORECASE,
)
"""Suffixes of files that a build usually reads."""

_AUXILIARY = re.compile(
    r"(^|/)(doc|docs|man|test|tests|testsuite|t|spec|example|examples|demos?|bench|benchmarks)/"
)


def maybe_unread(conflict: Conflict) -> tuple[str, ...]:
    """Return the conflicting files that do not look like source code, so that perhaps no build reads them."""
    return tuple(
        each.path
        for each in conflict.obstacles
        if SOURCE_SUFFIXES.search(each.path) is None or _AUXILIARY.search(each.path) is not None
    )


def unread_conflicts(session: Session, blocked: BackportConflict) -> Generator[Event, None, frozenset[str]]:
    """Return the conflicting files that the builds of both revisions do not read: the base's, and the reference's.

    perftrail builds both once more under strace. Both count, because the patched revision is between them. The result
    is empty if a revision is unknown, or if the builds cannot be observed.
    """
    unread = frozenset(each.path for each in blocked.conflict.obstacles)
    if blocked.fix is None:
        return frozenset()
    for revision in (blocked.onto, blocked.fix):
        for variant in session.study.variants:
            if unread:
                reads = yield from session.subject_builder.observe(
                    Subject(revision=revision, variant=variant)
                )
                unread = reads.unread(unread)
                if reads.incomplete:
                    yield BuilderMessage(text=f"cannot observe what the build reads: {reads.incomplete}")
    return unread


def without_tree(blocked: BackportConflict) -> None:
    """Remove the tree of a conflict that is tried again, unless it existed before and may contain edits."""
    if not blocked.conflict.directory_existed:
        remove_tree(Path(blocked.conflict.directory))


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


def patch_file(study: Study, fitted: FittedPatch) -> Path:
    """Return the default path of a patch: named by the old revision, or by the reverted one."""
    if fitted.reverted is not None:
        return Path(study.directory) / f"revert-{fitted.reverted.short}.patch"
    onto = fitted.patched.base
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", onto.label or onto.short).strip("-.")[:60]
    return Path(study.directory) / f"perftrail-backport-{name or onto.short}.patch"


def write_patch(file: Path, fitted: FittedPatch) -> None:
    """Write the patch with a descriptive header. Raises `UsageError` if the file is not one of perftrail's."""
    onto, fix = fitted.patched.base, fitted.fix if fitted.reverted is None else fitted.reverted
    role = "fix" if fitted.reverted is None else "reverted"
    try:
        refuse_link(file)
        if file.exists() and not _is_from_perftrail(file):
            raise UsageError(f"{file}: exists, and perftrail did not write it; choose another --output")
        head = [
            HEADERS[fitted.reverted is not None].decode(),
            f"onto: {_one_line(onto)}",
            *([f"{role}: {_one_line(fix)}"] if fix else []),
            *(f"left out: {escaped(each.path, longest=None)}" for each in fitted.patched.patch.left_out),
            "",
        ]
        write_file(file, "\n".join([*head, ""]).encode() + fitted.patched.patch.text)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _remove_leftovers(backports: Path) -> None:
    """Remove leftovers of killed processes; only the holder of the lock may call this."""
    for attempt in backports.glob("*/try-*"):
        remove_tree(attempt)
        if not any(attempt.parent.iterdir()):
            attempt.parent.rmdir()


def _with_history(patches: GitPatches | PlainPatches, changed: Revision) -> GitPatches | FossilPatches:
    """Return what applies the change of a revision. Raises `UsageError` for a source without changes."""
    if not isinstance(patches, GitPatches | FossilPatches):
        raise UsageError(
            f"{quoted(changed.id)}: only a git or Fossil history shows what a revision changed; "
            "supply the change with --patch FILE"
        )
    return patches


def _workplace(
    onto: Revision, changed: Revision | None, patch: bytes | None, paths: PatchPaths, *also: str
) -> str:
    """Return the name of the directory of a conflict; another request has another directory."""
    chosen = [[list(paths.only), list(paths.excluded)]] if paths.only or paths.excluded else []
    text = "" if patch is None else content_key(patch.hex())
    return content_key(onto.id, changed.id if changed else "", text, *chosen, *also)[:12]


def _is_from_perftrail(file: Path) -> bool:
    with open_to_read(file) as opened:
        return opened.read(max(map(len, HEADERS))).startswith(HEADERS)


def _one_line(revision: Revision) -> str:
    """Return a revision in one line of text, whatever its message contains."""
    label = f" {revision.label}" if revision.label and revision.label != revision.id else ""
    line = f"{revision.id}{label} {revision.summary}"
    return escaped(line, longest=None).strip()
