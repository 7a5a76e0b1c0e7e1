"""Build with recorded links, and store layouts of a build: its outputs, linked again with code at drawn places.

A layout is a tree like the build's own: programs are replaced by newly linked ones, and every text that names the
build's directory names the layout's, which has an equally long name. So nothing in a layout leads to the original
programs.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of, is_linked, loader_texts, output_files
from perftrail.builds.build_log import Log
from perftrail.builds.links import elf
from perftrail.builds.links.record import (
    RECORD,
    CannotPin,
    RawRecord,
    program_content,
    programs_in,
    read_record,
    store_links,
    store_reason,
)
from perftrail.builds.links.replay import Replay
from perftrail.file_tree import entries_below, open_to_read, remove_tree
from perftrail.installed_programs import recorder_path
from perftrail.model.build import Failure
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.builds.build_runner import BuildRunner, StepFailure, Workspace
    from perftrail.builds.links.record import Pinned
    from perftrail.builds.steps import ShellSteps

LINKS = "links"
"""Directory of a build's record, next to its tree."""

MOST_PROGRAMS = 64
"""Number of programs of a whole tree that are linked again."""

MOST_OUTPUTS = 100_000
"""More files than a build with useful outputs has."""

MOST_FAILED_RECORDINGS = 2
"""Number of builds that fail with and without recording; later ones are repeated only if their words name tracing."""

_NAMES_TRACING = re.compile(r"(?i)ptrace|leaksanitizer|strace|\bgdb\b|sudo|setuid|operation not permitted")

_LARGEST_TEXT = 16 << 20
"""Larger files are not searched for the name of the build's directory."""

_EXECUTABLE = 0o111


def links_of_benchmark(out: Path) -> Path:
    """Return the directory of the record of a benchmark build; `out` is its output directory."""
    return out.with_name(f"{out.name}.{LINKS}")


def inputs_of_links(workspace: Workspace) -> Path:
    """Return the directory of what repeated links read, next to the temporary directory, which these can change."""
    return workspace.temporary.with_name(f"{workspace.temporary.name}.inputs")


@contextmanager
def place_for_links(workspace: Workspace) -> Iterator[None]:
    """Create the temporary directory in which links are repeated; at the end, remove it with their inputs."""
    directories = (workspace.temporary, inputs_of_links(workspace))
    try:
        for directory in directories:
            remove_tree(directory)
        workspace.temporary.mkdir()
        yield
    finally:
        for directory in directories:
            remove_tree(directory)


class Recordings:
    """Runs shell lines and records their links."""

    def __init__(self, runner: BuildRunner) -> None:
        self._runner = runner
        self._failed = 0

    def run(
        self,
        steps: ShellSteps,
        workspace: Workspace,
        raw: RawRecord,
        *,
        again: Callable[[], ShellSteps | Failure],
    ) -> StepFailure | Failure | str:
        """Run lines; return their failure, or why their links are not recorded, empty if they are.

        Lines that fail are repeated without recording if tracing may be the reason: `again` prepares them.
        """
        recorder = recorder_path()
        if recorder is None:
            return self._runner.run(steps, workspace) or "perftrail-recorder is not installed"
        remove_tree(raw.directory)
        raw.begin()
        failure = self._runner.run(steps.with_prefix(str(recorder), str(raw.directory)), workspace)
        if failure is None:
            return ""
        named = _NAMES_TRACING.search(failure.message) or raw.note("privileged")
        if not named and self._failed >= MOST_FAILED_RECORDINGS:
            return failure
        prepared = again()
        if isinstance(prepared, Failure):
            return prepared
        Log(path=workspace.log).note("# repeated without recording its links")
        remove_tree(raw.directory)
        failure = self._runner.run(prepared, workspace)
        if failure is not None:
            self._failed += 1
            return failure
        return "the build fails while its links are recorded"


def store_record(raw: RawRecord, root: Path, outputs: Sequence[str] | None, into: Path) -> None:
    """Store the links of the programs among outputs below a directory, or of all new ones without `outputs`."""
    try:
        names = tuple(_all_files(root)) if outputs is None else output_files(root, outputs, most=MOST_OUTPUTS)
        programs = programs_in(((name, root / name) for name in names), since_ns=raw.began_ns)
        store_links(raw, programs, into, most=MOST_PROGRAMS if outputs is None else None)
    except OSError as error:
        store_reason(into, f"its programs cannot be read: {error.strerror}")


def _all_files(root: Path) -> Iterator[str]:
    for entry in entries_below(root, skipped=(".git",)):
        if not entry.is_directory and entry.name != ".git":
            yield entry.path


class LayoutLinker:
    """Links the programs of one record in several layouts. Each link is first repeated unchanged, once."""

    def __init__(self, runner: BuildRunner, record: Path, scratch: Workspace) -> None:
        self._runner = runner
        self._record = record
        self._scratch = scratch
        self._pinned = read_record(record)
        self._replays: dict[int, Replay] = {}
        self.plain_files: set[str] = set()
        """Files of the build that do not name its directory; they are searched for the first layout only."""

    @property
    def pinned(self) -> Pinned:
        """The record."""
        return self._pinned

    def link(self, layout: int, rpaths: Callable[[str], str]) -> Mapping[str, Path]:
        """Link every program with a seed; return the new files by the programs' names. Raises `CannotPin`."""
        if self._pinned.unpinned:
            raise CannotPin(self._pinned.unpinned)
        linked: dict[int, Path] = {}
        with self._runner.linker(self._scratch) as run:
            for number in sorted(set(self._pinned.programs.values())):
                written = self._scratch.temporary
                if number not in self._replays:
                    own = inputs_of_links(self._scratch) / str(number)
                    own.mkdir(parents=True)
                    self._replays[number] = Replay(
                        self._pinned.links[number], self._record, own, written=written
                    )
                into = written / f"{number}-layout-{layout}"
                self._replays[number].link(layout, into, run, rpaths)
                linked[number] = into
        return {name: linked[number] for name, number in self._pinned.programs.items()}


def store_layout(
    tree: Path,
    below: Path,
    *,
    names: Sequence[str] | None,
    linked: Mapping[str, Path],
    keys: tuple[str, str],
    plain: set[str],
) -> None:
    """Copy a build's tree to the tree of a layout, with newly linked programs.

    `names` are the outputs, or `None` for all files. `keys` are the names of both directories, which have the same
    length. Files that cannot be executed are hard links. `plain` collects the names of files without texts to replace.
    Raises `CannotPin` if an output is a program that would load files of the original tree.
    """
    outputs = None if names is None else set(names)
    below.mkdir(parents=True)
    for entry in sorted(entries_below(tree, skipped=(".git",)), key=lambda each: each.path):
        name, target = entry.path, below / entry.path
        if entry.is_directory:
            target.mkdir()
        elif entry.name == ".git" or (outputs is not None and name not in outputs and is_linked(tree / name)):
            continue  # a benchmark that starts a program as linked must fail here: then nothing counts as pinned
        elif name in linked:
            _copy_linked(linked[name], target, mode=(tree / name).stat().st_mode, keys=keys)
        elif name in plain or not _names_key(tree / name, keys[0]):
            plain.add(name)
            _copy_plain(tree / name, target, share=outputs is None or name not in outputs)
        else:
            _copy_relocated(tree / name, target, keys)
        if not entry.is_directory and (outputs is None or name in outputs):
            _refuse_original(target, name, keys[0])


def replace_programs(root: Path, linked: Mapping[str, Path]) -> None:
    """Replace programs below a directory by newly linked ones."""
    for name, source in linked.items():
        target = root / name
        mode = target.stat(follow_symlinks=False).st_mode
        target.unlink()
        _copy_linked(source, target, mode=mode)


def _copy_linked(source: Path, target: Path, *, mode: int, keys: tuple[str, str] | None = None) -> None:
    content = program_content(source)
    if keys is not None:
        _refuse_key(target.name, content, keys[0])
        content = content.replace(keys[0].encode(), keys[1].encode())
    with target.open("xb") as file:
        file.write(content)
    target.chmod(mode & 0o777)


def _names_key(path: Path, key: str) -> bool:
    """Whether a link or a file that is not a program names a directory."""
    if path.is_symlink():
        return key in str(path.readlink())
    if not path.is_file() or path.stat().st_size > _LARGEST_TEXT:
        return False
    with open_to_read(path, follow=False) as file:
        start = file.read(len(elf.MAGIC))
        return start != elf.MAGIC and key.encode() in start + file.read(_LARGEST_TEXT)


def _copy_relocated(source: Path, target: Path, keys: tuple[str, str]) -> None:
    if source.is_symlink():
        target.symlink_to(str(source.readlink()).replace(*keys))
        return
    old, new = (key.encode() for key in keys)
    target.write_bytes(source.read_bytes().replace(old, new))
    shutil.copystat(source, target)


def _copy_plain(source: Path, target: Path, *, share: bool) -> None:
    if share and not source.is_symlink() and not source.stat().st_mode & _EXECUTABLE:
        with suppress(OSError):
            os.link(source, target, follow_symlinks=False)
            return
    shutil.copy2(source, target, follow_symlinks=False)


def _refuse_original(path: Path, name: str, key: str) -> None:
    if path.is_symlink() or not path.stat().st_mode & _EXECUTABLE:
        return
    _refuse_key(name, program_content(path), key)


def _refuse_key(name: str, content: bytes, key: str) -> None:
    if elf.type_of(content) in elf.LINKED_TYPES and key.encode() in loader_texts(content):
        raise CannotPin(
            f"{quoted(name)} names its build's directory, so that it would load files of the original build; use "
            "relative paths, for example -Wl,-rpath,'$ORIGIN/lib'"
        )


def has_record(directory: Path) -> bool:
    """Return whether a directory has a record, or the reason for having no links."""
    return (directory / RECORD).is_file()


def names_of_outputs(tree: Path, outputs: Sequence[str]) -> Sequence[str] | None:
    """Return the names of a build's outputs, `None` for the whole tree."""
    return tuple(content_of(tree, outputs, keys=()).parts) if outputs else None
