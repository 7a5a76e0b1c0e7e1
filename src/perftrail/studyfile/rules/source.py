"""Rules for `[source]` and `[sources]`: locations, packages, skips, and unused sources."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_tree import expanded
from perftrail.model.placeholders import sources_named
from perftrail.model.source import MAIN, Ecosystem, read_package
from perftrail.model.wording import listed, nearest, quoted, suggestion
from perftrail.studyfile.problems import MissingFile, RelocatedProblems
from perftrail.studyfile.rules.texts import (
    control_wrong,
    inside_wrong,
    pattern_wrong,
    range_wrong,
    revision_wrong,
)
from perftrail.studyfile.structure import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.model.source import Archive, Skip, Source, SourceKind
    from perftrail.model.study import Study
    from perftrail.studyfile.key_lines import KeyPath
    from perftrail.studyfile.problems import Problems


_ONLY: Mapping[str, tuple[Ecosystem, ...]] = {
    "requires": ("pypi",),
    "distribution": ("pypi",),
    "yanked": ("pypi", "crates", "npm"),
}
"""Keys that only apply to some ecosystems."""

_ADDRESSES: Mapping[Ecosystem, str] = {
    "pypi": r"(?:https?|file)://\S+",
    "crates": r"https?://\S+",
    "npm": r"https?://\S+",
}
_SOURCE_LINE = re.compile(
    r"""(?:deb-src\s+)? (?:\[[^\]]*\]\s+)?
    (?: (?:https?://|(?:file|copy):/)\S+ (?:\s+[^-\s]\S*)+   # ADDRESS SUITE COMPONENT
      | (?!deb\s) [^-\s:/\[][^\s:]* (?:\s+[^-\s:][^\s:]*)+   # SUITE COMPONENT
      | [^-\s:/\[][^\s:]*/                                   # a flat archive's directory
    ) \s*""",
    re.VERBOSE,
)
"""A line of `index` for Debian; without an address it uses the archive of the machine's own packages."""


def package_wrong(written: str) -> str | None:
    """Return what is wrong with ``ECOSYSTEM:NAME``, `None` if it is valid."""
    try:
        read_package(written)
    except ValueError as error:
        return str(error)
    return None


def check_package(source: Source, problems: Problems) -> None:
    """Report keys that do not fit the package's ecosystem, or each other."""
    if source.kind != "release" or source.archives:
        return
    _check_requirements(source, problems)
    try:
        ecosystem = read_package(source.location).ecosystem
    except ValueError:
        ecosystem = None
    for name, ecosystems in _ONLY.items():
        if ecosystem not in {None, *ecosystems} and problems.has_key(("source", name)):
            problems.add(
                ("source", name),
                f"does not apply to {ecosystem} packages, only to {listed(ecosystems, 'and')}",
            )
    if source.index is not None and (wrong := _index_wrong(source.index, ecosystem)):
        problems.add(("source", "index"), wrong)


def _check_requirements(source: Source, problems: Problems) -> None:
    if not source.requires:
        return
    # Few studies need this import.
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415

    for text in source.requires:
        try:
            Requirement(text)
        except InvalidRequirement:
            wrong = f"{quoted(text)} is not a valid requirement; write it as for pip, for example numpy>=1.26"
            problems.add(("source", "requires"), wrong)


def _index_wrong(index: str, ecosystem: Ecosystem | None) -> str | None:
    if ecosystem != "debian":
        form = _ADDRESSES[ecosystem or "pypi"]
        return (
            None if re.fullmatch(form, index) else f"{quoted(index)} is not a valid address; write https://…"
        )
    lines = [line.strip() for line in index.splitlines() if line.strip()]
    for line in lines or [index]:
        if _SOURCE_LINE.fullmatch(line) is None:
            return f"{quoted(line)} is not a valid archive; write it as in sources.list, https://… SUITE COMPONENT"
    return None


def check_skips(study: Study, problems: Problems) -> None:
    """Report skips without a revision, or with both a revision and a range."""
    for name, source in study.every_source.items():
        path: KeyPath = ("source",) if name == MAIN else ("sources", name)
        for number, skip in enumerate(source.skip):
            _check_skip(skip, (*path, "skip", number), problems)


def _check_skip(skip: Skip, path: KeyPath, problems: Problems) -> None:
    if not skip.reason.strip():
        problems.add((*path, "reason"), "is empty; write why perftrail must skip these revisions")
    elif wrong := control_wrong(skip.reason):
        problems.add((*path, "reason"), wrong)
    if skip.range is None and skip.revision is None:
        if problems.clean(path):
            problems.add(path, 'names no revision; write revision = "…" or range = "OLD..NEW"')
    elif skip.range is not None and skip.revision is not None:
        problems.add((*path, "revision"), "occurs together with range; write an entry for each")
    elif skip.range is not None and (wrong := range_wrong(skip.range, words=False)):
        problems.add((*path, "range"), wrong)
    elif skip.revision is not None and (wrong := revision_wrong(skip.revision)):
        problems.add((*path, "revision"), wrong)


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(?:[^/@\s]+@)?[^/:\s]+:(?!:)")


def is_address(location: str) -> bool:
    """Return whether a location is an address: ``https://…``, ``ssh://…`` or ``git@host:path``.

    >>> [is_address(text) for text in ("https://x.org/y", "git@host:y", "../y", "./a:b", "/a")]
    [True, True, False, False, False]
    """
    return _ADDRESS.match(location) is not None


def local_path(source: Source, directory: Path) -> Path | None:
    """Return the absolute path of a local source, `None` for a remote one."""
    location = source.location
    if source.kind == "release" and not source.archives:
        return None
    if source.kind not in ("directory", "samples"):
        if location.startswith("file://"):
            return Path(location.removeprefix("file://"))
        if is_address(location):
            return None
    with_home = location if not location.startswith("~") else str(expanded(location))
    # normpath does not follow symbolic links, resolve() would.
    return Path(os.path.normpath(directory / with_home))


def absolute_location(source: Source, directory: Path) -> str:
    """Return a location that does not depend on the current directory."""
    if source.location.startswith("file://"):
        return source.location
    path = local_path(source, directory)
    return source.location if path is None else str(path)


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
"""Keys of each kind, in addition to kind and location; other kinds have `_KEYS_OF_OTHERS`."""

_KEYS_OF_OTHERS = ("range", "at", "skip")

_DOWNLOADS = ("https://", "http://")


def check_source(study: Study, problems: Problems, *, written_location: str) -> None:
    """Report a source that cannot be read."""
    source = study.source
    if problems.is_correct(("source", "kind")):
        _check_keys(source, problems)
        wrong = _location_wrong(source, written_location, Path(study.directory))
        if wrong is not None:
            problems.add(("source", "location"), wrong)
    in_words = source.kind in {"git", "fossil"}
    if source.range is not None and (wrong := range_wrong(source.range, words=in_words)):
        problems.add(("source", "range"), wrong)
    if source.at is not None and (wrong := revision_wrong(source.at)):
        problems.add(("source", "at"), wrong)
    for index, path in enumerate(source.touching):
        if wrong := inside_wrong(path, of="the revision's root"):
            problems.add(("source", "touching"), wrong, item=index)
    for index, path in enumerate(source.sparse):
        if wrong := inside_wrong(path.removeprefix("!"), of="the revision's root"):
            problems.add(("source", "sparse"), wrong, item=index)
    if source.label is not None:
        if wrong := inside_wrong(source.label.file, of="the revision's root"):
            problems.add(("source", "label", "file"), wrong)
        if wrong := pattern_wrong(source.label.pattern):
            problems.add(("source", "label", "pattern"), wrong)
    _check_links(source, problems)
    check_package(source, problems)
    _check_archives(source, problems)


def _check_keys(source: Source, problems: Problems) -> None:
    for key in keys_of(type(source)):
        if key.name in ("kind", "location", *_KEYS.get(source.kind, _KEYS_OF_OTHERS)):
            continue
        if problems.has_key(("source", key.name)):
            kinds = listed(kind for kind, names in _KEYS.items() if key.name in names)
            problems.add(("source", key.name), f"does not apply to a {source.kind} source, only to {kinds}")


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
        return f"{quoted(written)} is not a valid location of archives; write a directory or https://…"
    return None


def _names_in(directory: Path) -> list[str]:
    try:
        return sorted(each.name for each in directory.iterdir())
    except OSError:
        return []


def _path_wrong(source: Source, written: str, directory: Path) -> str | None:
    path = local_path(source, directory)
    if path is None or source.kind == "samples":  # its files may come later
        return None
    resolved = str(path) if str(path).isprintable() else quoted(str(path))
    shown = quoted(written) if Path(written).is_absolute() else f"{quoted(written)} ({resolved})"
    try:
        exists, is_directory = path.exists(), path.is_dir()
    except OSError as error:
        return f"{shown} cannot be read: {(error.strerror or str(error)).lower()}"
    if not exists:
        near = nearest(path.name, _names_in(path.parent))
        return MissingFile(f"{shown} does not exist" + (f"; did you mean {quoted(near)}?" if near else ""))
    if not is_directory and source.kind in ("git", "directory", "release"):
        return f"{shown} is a file, not a directory"
    return None


def _check_links(source: Source, problems: Problems) -> None:
    for number, link in enumerate(source.link):
        for key, name in (("branch", link.branch), ("merge", link.merge)):
            if wrong := revision_wrong(name):
                problems.add(("source", "link", number, key), wrong)


def _check_archives(source: Source, problems: Problems) -> None:
    if not source.archives:
        return
    for name in _ONLY_PACKAGES:
        if problems.has_key(("source", name)):
            problems.add(("source", name), "does not apply to archives, only to packages")
    versions = [archive.version for archive in source.archives]
    for number, archive in enumerate(source.archives):
        path = ("source", "archives", number)
        if wrong := revision_wrong(archive.version):
            problems.add((*path, "version"), wrong)
        elif archive.version in versions[:number]:
            problems.add((*path, "version"), f"{quoted(archive.version)} occurs twice; remove one of them")
        if wrong := _archive_wrong(source, archive):
            problems.add((*path, "file"), wrong)
        if archive.sha256 and re.fullmatch(r"[0-9A-Fa-f]{64}", archive.sha256) is None:
            wrong = f"{quoted(archive.sha256)} is not a SHA-256 checksum, which has 64 digits"
            problems.add((*path, "sha256"), wrong)


def _archive_wrong(source: Source, archive: Archive) -> str | None:
    if not archive.file.strip():
        return "is empty"
    is_downloaded = archive.file.startswith(_DOWNLOADS) or source.location.startswith(_DOWNLOADS)
    if is_downloaded and not archive.sha256:
        return f"{quoted(archive.file)} is downloaded and needs sha256, its checksum"
    return control_wrong(archive.file)


def check_sources(study: Study, problems: Problems, *, written_locations: Mapping[str, str]) -> None:
    """Report every source that cannot be read, or that nothing uses.

    `written_locations` are the locations as written in the file, by name.
    """
    check_source(study, problems, written_location=written_locations[MAIN])
    check_skips(study, problems)
    for name, source in study.sources.items():
        as_main, relocated = (
            replace(study, source=source),
            RelocatedProblems(problems, table="source", to=("sources", name)),
        )
        check_source(as_main, relocated, written_location=written_locations[name])
        if name == MAIN:
            problems.add(("sources", name), f"{quoted(MAIN)} is the name of [source]; choose another name")
    if study.along not in study.every_source:
        wrong = f"no source {quoted(study.along)}{suggestion(study.along, study.every_source)}"
        problems.add(("study", "along"), wrong, about=("sources",))
    used = sources_named(_texts(study))
    is_misspelt = any(name not in study.sources for name in used)
    if not is_misspelt and all(map(problems.readable, (("build",), ("variants",), ("benchmark",)))):
        for name in study.sources:
            if name not in used and name != MAIN:
                wrong = f"nothing uses it; write {{source.{name}}} in build.steps or in a benchmark's lines"
                problems.add(("sources", name), wrong)


def _texts(study: Study) -> Iterator[str]:
    """Yield every text that may name a source."""
    recipes: tuple[Build | Era | VariantBuild, ...] = (
        study.build,
        *study.build.when,
        *(variant.build for variant in study.variants.values()),
    )
    for recipe in recipes:
        yield from (*(recipe.steps or ()), *recipe.env.values(), *(recipe.outputs or ()))
    for variant in study.variants.values():
        yield from (*variant.run.env.values(), *variant.run.prefix, *variant.run.parts.values())
    for benchmark in study.benchmarks.values():
        yield from (benchmark.command, benchmark.stdin or "", *benchmark.build, *benchmark.env.values())
