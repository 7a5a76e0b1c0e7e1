"""Rules for `[source]`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.wording import listed, quoted
from perftrail.studyfile.fields import keys_of
from perftrail.studyfile.locations import is_address, local_path
from perftrail.studyfile.rules.packages import check_package, package_wrong
from perftrail.studyfile.rules.texts import (
    control_wrong,
    inside_wrong,
    pattern_wrong,
    range_wrong,
    revision_wrong,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.source import Archive, Source, SourceKind
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints

_ONLY_HISTORY = ("range", "at", "skip", "walk", "touching", "label", "link")
_ONLY_GIT = ("sparse", "submodules")
_ONLY_PACKAGES = ("requires", "distribution", "index", "prereleases", "yanked")
_KEYS: Mapping[SourceKind, tuple[str, ...]] = {
    "git": (*_ONLY_HISTORY, *_ONLY_GIT),
    "fossil": _ONLY_HISTORY,
    "release": ("range", "at", "skip", *_ONLY_PACKAGES, "archives"),
    "directory": ("label",),
    "samples": ("format",),
}
"""What each kind takes beside its kind and location."""

_DOWNLOADS = ("https://", "http://")


def check_source(study: Study, complaints: Complaints, *, written_location: str) -> None:
    """Complain about a source that cannot be read as it is described."""
    source = study.source
    if complaints.trusts(("source", "kind")):
        _check_keys(source, complaints)
        wrong = _location_wrong(source, written_location, Path(study.directory))
        if wrong is not None:
            complaints.add(("source", "location"), wrong)
    in_words = source.kind in {"git", "fossil"}
    if source.range is not None and (wrong := range_wrong(source.range, words=in_words)):
        complaints.add(("source", "range"), wrong)
    if source.at is not None and (wrong := revision_wrong(source.at)):
        complaints.add(("source", "at"), wrong)
    for path in source.touching:
        if wrong := inside_wrong(path, of="the revision's root"):
            complaints.add(("source", "touching"), wrong)
    for path in source.sparse:
        if wrong := inside_wrong(path.removeprefix("!"), of="the revision's root"):
            complaints.add(("source", "sparse"), wrong)
    if source.label is not None:
        if wrong := inside_wrong(source.label.file, of="the revision's root"):
            complaints.add(("source", "label", "file"), wrong)
        if wrong := pattern_wrong(source.label.pattern):
            complaints.add(("source", "label", "pattern"), wrong)
    _check_links(source, complaints)
    check_package(source, complaints)
    _check_archives(source, complaints)


def _check_keys(source: Source, complaints: Complaints) -> None:
    for key in keys_of(type(source)):
        if key.name in ("kind", "location", *_KEYS[source.kind]):
            continue
        if complaints.stands(("source", key.name)):
            kinds = listed(kind for kind, names in _KEYS.items() if key.name in names)
            complaints.add(
                ("source", key.name), f"says nothing about a {source.kind} source; it is for {kinds}"
            )


def _location_wrong(source: Source, written: str, directory: Path) -> str | None:
    if not written.strip():
        return "is empty"
    if written.startswith("-"):
        return f'{quoted(written)} begins with "-"; write {quoted("./" + written)} for a path'
    if source.kind == "release" and not source.archives:
        return control_wrong(written) or package_wrong(written)
    wrong = _address_wrong(source, written) or control_wrong(written)
    return wrong or _path_wrong(source, written, directory)


def _address_wrong(source: Source, written: str) -> str | None:
    if source.kind in ("directory", "samples") and "://" in written:
        return f"{quoted(written)} is an address; a {source.kind} source needs a path"
    if "::" in written.partition("/")[0]:
        return f"{quoted(written)} is not an address that can be read; use https://, ssh:// or a path"
    if source.archives and is_address(written) and not written.startswith(("https://", "http://", "file://")):
        return f"{quoted(written)} is not where archives can be had from; write a directory or https://…"
    return None


def _path_wrong(source: Source, written: str, directory: Path) -> str | None:
    path = local_path(source, directory)
    if path is None or source.kind == "samples":  # its files may come later
        return None
    resolved = str(path) if str(path).isprintable() else quoted(str(path))
    told = quoted(written) if Path(written).is_absolute() else f"{quoted(written)} ({resolved})"
    try:
        there, is_directory = path.exists(), path.is_dir()
    except OSError as error:
        return f"{told} cannot be read: {(error.strerror or str(error)).lower()}"
    if not there:
        return f"{told} does not exist"
    if not is_directory and source.kind != "fossil":
        return f"{told} is a file, not a directory"
    return None


def _check_links(source: Source, complaints: Complaints) -> None:
    for number, link in enumerate(source.link):
        for key, name in (("branch", link.branch), ("merge", link.merge)):
            if wrong := revision_wrong(name):
                complaints.add(("source", "link", number, key), wrong)


def _check_archives(source: Source, complaints: Complaints) -> None:
    if not source.archives:
        return
    for name in _ONLY_PACKAGES:
        if complaints.stands(("source", name)):
            complaints.add(("source", name), "says nothing about archives; it is for packages")
    versions = [archive.version for archive in source.archives]
    for number, archive in enumerate(source.archives):
        path = ("source", "archives", number)
        if wrong := revision_wrong(archive.version):
            complaints.add((*path, "version"), wrong)
        elif archive.version in versions[:number]:
            complaints.add((*path, "version"), f"{quoted(archive.version)} is there twice")
        if wrong := _archive_wrong(source, archive):
            complaints.add((*path, "file"), wrong)
        if archive.sha256 and re.fullmatch(r"[0-9A-Fa-f]{64}", archive.sha256) is None:
            wrong = f"{quoted(archive.sha256)} is no SHA-256, which has 64 digits"
            complaints.add((*path, "sha256"), wrong)


def _archive_wrong(source: Source, archive: Archive) -> str | None:
    if not archive.file.strip():
        return "is empty"
    is_downloaded = archive.file.startswith(_DOWNLOADS) or source.location.startswith(_DOWNLOADS)
    if is_downloaded and not archive.sha256:
        return f"{quoted(archive.file)} is downloaded, so it needs sha256, its checksum, beside it"
    return control_wrong(archive.file)
