"""Store the links of a build that produced its outputs, with everything that repeats them.

perftrail-recorder writes what it sees into a directory (`RawRecord`). After the build, `store_links` matches its
outputs with these links and keeps those, below the build's directory. Everything in both directories is untrusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import write_durably
from perftrail.builds.links import elf
from perftrail.file_tree import open_to_read, remove_tree
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

VERSION = 1
"""Version of the record and of the places that its links get: part of the content keys of layouts."""

RECORD = "links.json"
"""File of a record, in the directory of its links."""

_STORED = re.compile(r"files/[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+(-copy)?")
_LARGEST_LIST = 64 << 20
_LARGEST_PROGRAM = 1 << 30
_MOST_READ = 256 << 20
MOST_LINKS = 10_000
"""Bytes of all records of links that are read, and their number: a hostile build may write any."""

_PROBES = re.compile(
    r"conftest|cmTC_|CMakeFiles/(CMakeTmp|[\d.]+/Comp|[\d.]+/CMakeDetermine)|meson-private|sanitycheck"
    r"|build[-_]script[-_]build|/\.git/"
)
"""Programs that a build links for itself: to learn what the compiler can do, or to generate files."""


class CannotPin(Exception):
    """A program's code cannot be placed; the text is one sentence with the file and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An input of a link by the name that the linker used, its size, its date in nanoseconds.

    `stored` is the file's copy in the record; empty for a file of the system, which is used at its place.
    """

    name: str
    stored: str
    size: int
    date: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A linker's successful run. `output` is absolute; `sha256` and `loaded` describe the file when it was linked."""

    program: str
    directory: str
    output: str
    arguments: tuple[str, ...]
    environment: tuple[str, ...]
    files: tuple[Kept, ...]
    sha256: str = ""
    loaded: Mapping[str, str] = field(default_factory=dict)

    @property
    def own_files(self) -> Iterator[str]:
        """The names of the stored copies."""
        return (each.stored for each in self.files if each.stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The links of a build's programs: `links` by the number in `programs`, which maps outputs to links.

    `unpinned` is the sentence why the build's programs cannot be placed; empty if nothing is known against it.
    """

    links: tuple[Link, ...] = ()
    programs: Mapping[str, int] = field(default_factory=dict)
    unpinned: str = ""
    digest: str = ""


NOT_RECORDED = "its links were not recorded"


def read_record(directory: Path) -> Pinned:
    """Return the stored record in a directory; one that states why nothing is pinned if it is missing or damaged."""
    try:
        state = os.lstat(directory / RECORD)
    except OSError:
        return Pinned(unpinned=NOT_RECORDED)
    return _read(directory / RECORD, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1024)
def _read(path: Path, date: int, size: int) -> Pinned:  # noqa: ARG001 - parts of the cache's key
    try:
        with open_to_read(path, follow=False) as file:
            content = file.read(_LARGEST_LIST)
        facts = json.loads(content)
        return Pinned(
            links=tuple(_link(each) for each in facts["links"]),
            programs={str(name): int(number) for name, number in facts["programs"].items()},
            unpinned=str(facts["unpinned"]),
            digest=hashlib.sha256(content).hexdigest()[:32],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Pinned(unpinned="the record of its links is damaged")


def _link(facts: Mapping[str, object]) -> Link:
    words = {name: facts[name] for name in ("arguments", "environment", "files")}
    assert all(isinstance(each, list) for each in words.values())
    files = [each if isinstance(each, dict) else {} for each in facts["files"]]  # type: ignore[attr-defined] # a list
    loaded = facts["loaded"]
    assert isinstance(loaded, dict)
    return Link(
        program=str(facts["program"]),
        directory=str(facts["directory"]),
        output=str(facts["output"]),
        arguments=tuple(map(str, words["arguments"])),  # type: ignore[call-overload] # a list
        environment=tuple(map(str, words["environment"])),  # type: ignore[call-overload] # a list
        files=tuple(_kept(each) for each in files),
        sha256=str(facts["sha256"]),
        loaded={str(name): str(digest) for name, digest in loaded.items()},
    )


def _kept(facts: Mapping[str, object]) -> Kept:
    stored = str(facts["stored"])
    if stored and not _STORED.fullmatch(stored):
        raise ValueError(stored)
    return Kept(
        name=str(facts["name"]), stored=stored, size=int(str(facts["size"])), date=int(str(facts["date"]))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _RawLink:
    link: Link
    linked: str
    complete: bool


@dataclass(frozen=True, slots=True)
class RawRecord:
    """The directory into which perftrail-recorder writes."""

    directory: Path

    def begin(self) -> None:
        """Create the directory, and note the time: files of the revision are older.

        File dates have the resolution of a tick of the kernel, so the next one is awaited.
        """
        (self.directory / "files").mkdir(parents=True, exist_ok=True)
        for note in ("refused", "privileged"):
            (self.directory / note).unlink(missing_ok=True)
        began = self.directory / "began"
        began.touch()
        before = self.began_ns
        while self.began_ns == before:
            time.sleep(0.001)
            os.utime(began)

    @property
    def began_ns(self) -> int:
        """When the recording began, as a file date."""
        return os.lstat(self.directory / "began").st_ctime_ns

    def note(self, name: str) -> str:
        """Return the recorder's note of this name, empty without one."""
        try:
            with open_to_read(self.directory / name, follow=False) as file:
                return file.read(_LONGEST_NOTE).decode(errors="replace").strip()
        except OSError:
            return ""

    def links(self) -> list[_RawLink]:
        """Return the links; of several with one output, the last one. Raises `CannotPin` if they are too many."""
        if (self.directory / "files").is_symlink():
            return []
        numbers = sorted(int(path.stem) for path in self.directory.glob("*.link") if path.stem.isdecimal())
        room = _MOST_READ if len(numbers) <= MOST_LINKS else 0
        found: dict[str, _RawLink] = {}
        for number in numbers:
            if room <= 0:
                raise CannotPin("the records of its links are too many or too large")
            try:
                with open_to_read(self.directory / f"{number}.link", follow=False) as file:
                    content = file.read(min(_LARGEST_LIST, room))
                room -= len(content)
                raw = _parsed(content)
            except (OSError, ValueError, LookupError):
                continue
            found.pop(raw.link.output, None)
            found[raw.link.output] = raw
        return list(found.values())


_LONGEST_NOTE = 1000


def _parsed(content: bytes) -> _RawLink:
    """Return a link from what the recorder wrote. Raises `ValueError` or `LookupError`."""
    words: dict[str, list[str]] = {}
    for each in content.split(b"\0")[:-1]:
        key, _, value = os.fsdecode(each).partition("=")
        words.setdefault(key, []).append(value)
    files = zip(*(words.get(key, []) for key in ("file", "as", "size", "date")), strict=True)
    kept = [
        _kept({"name": name, "stored": stored, "size": size, "date": date})
        for name, stored, size, date in files
    ]
    linked = words["linked"][0]
    if not _STORED.fullmatch(linked):
        raise ValueError(linked)
    return _RawLink(
        link=Link(
            program=words["exe"][0],
            directory=words["cwd"][0],
            output=words["out"][0],
            arguments=tuple(words["arg"]),
            environment=tuple(words.get("env", ())),
            files=tuple(dict.fromkeys(kept)),
        ),
        linked=linked,
        complete=words["complete"] == ["yes"],
    )


def store_links(
    raw: RawRecord, programs: Iterable[tuple[str, Path]], into: Path, *, most: int | None = None
) -> None:
    """Store the links of a build's programs, each with its name, in a new directory.

    With `most`, a build with more different programs is not pinned.
    """
    remove_tree(into)
    (into / "files").mkdir(parents=True)
    try:
        pinned = _matched(raw, programs, most=most)
        _keep_files(raw, pinned, into)
    except CannotPin as reason:
        pinned = Pinned(unpinned=str(reason))
    except OSError as error:
        pinned = Pinned(unpinned=f"the inputs of its links cannot be stored: {error.strerror}")
    write_durably(
        into / RECORD,
        {
            "links": [asdict(link) for link in pinned.links],
            "programs": dict(pinned.programs),
            "unpinned": pinned.unpinned,
        },
    )


def store_reason(into: Path, unpinned: str) -> None:
    """Store that the programs of a build cannot be placed, and why."""
    remove_tree(into)
    into.mkdir(parents=True)
    write_durably(into / RECORD, {"links": [], "programs": {}, "unpinned": unpinned})


def programs_in(paths: Iterable[tuple[str, Path]], *, since_ns: int) -> Iterator[tuple[str, Path]]:
    """Yield the programs and shared objects among files that changed since a time; `paths` are names and files."""
    for name, path in paths:
        if path.is_symlink() or _PROBES.search(name):
            continue
        with open_to_read(path, follow=False) as file:
            head = file.read(18)
            is_new = os.fstat(file.fileno()).st_ctime_ns >= since_ns
        if is_new and elf.type_of(head) in elf.LINKED_TYPES:
            yield name, path


def _matched(raw: RawRecord, programs: Iterable[tuple[str, Path]], *, most: int | None) -> Pinned:
    if refused := raw.note("refused"):
        raise CannotPin(f"this system does not let perftrail trace builds ({refused})")
    known = raw.links()
    described: dict[int, Link] = {}
    found: dict[str, int] = {}
    for name, path in programs:
        content = program_content(path)
        if not elf.has_code(content):
            continue
        loaded = elf.loaded_sections(content)
        if not loaded:
            raise CannotPin(f"{quoted(name)} is not a 64-bit program of this machine")
        found[name] = _match(name, loaded, known, described, raw)
        if most is not None and len(set(found.values())) > most:
            raise CannotPin(
                f"the build links more than {most} programs; name those that the benchmarks use in build.outputs"
            )
    used = sorted(set(found.values()))
    return Pinned(
        links=tuple(described[number] for number in used),
        programs={name: used.index(number) for name, number in found.items()},
    )


def _match(
    name: str,
    loaded: Mapping[str, str],
    known: Sequence[_RawLink],
    described: dict[int, Link],
    raw: RawRecord,
) -> int:
    """Return the number of the last link with equal loaded sections, and describe the links that were compared."""
    base = name.rsplit("/", 1)[-1]
    likely = sorted(
        range(len(known)), key=lambda at: (known[at].link.output.endswith(f"/{base}"), at), reverse=True
    )
    for number in likely:
        if number not in described:
            described[number] = _described(raw, known[number])
        if described[number].loaded == loaded:
            if not known[number].complete:
                raise CannotPin(f"{quoted(name)}: an input of its link could not be stored")
            return number
    for link in described.values():
        if link.output.endswith(f"/{name}"):
            differing = {part for part, _ in {*loaded.items()} ^ {*link.loaded.items()}}
            changed = ", ".join(sorted(differing)[:_MOST_NAMED]) + (
                ", …" if len(differing) > _MOST_NAMED else ""
            )
            raise CannotPin(f"{quoted(name)} was changed after its link ({changed})")
    raise CannotPin(f"no recorded link produced {quoted(name)}")


_MOST_NAMED = 3


def _described(raw: RawRecord, found: _RawLink) -> Link:
    link = found.link
    try:
        content = program_content(raw.directory / found.linked)
    except OSError:
        return link
    return replace(link, sha256=hashlib.sha256(content).hexdigest(), loaded=elf.loaded_sections(content))


def program_content(path: Path) -> bytes:
    """Return the content of an untrusted program, of its first gibibyte at most. Raises `OSError`."""
    with open_to_read(path, follow=False) as file:
        return file.read(_LARGEST_PROGRAM)


def _keep_files(raw: RawRecord, pinned: Pinned, into: Path) -> None:
    """Move the inputs of links into their record: as hard links, because a reused tree needs them again."""
    for stored in dict.fromkeys(name for link in pinned.links for name in link.own_files):
        source, target = raw.directory / stored, into / stored
        with open_to_read(source, follow=False):  # a regular file
            pass
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:
            shutil.copy2(source, target, follow_symlinks=False)
