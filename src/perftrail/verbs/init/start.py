"""Examine a program, choose a range of its history, and write a first study.

`examine` reads the program, `draft_of` drafts a study of what it found, `with_older_end` and `with_command` change the
draft as the user answers, and `write_draft` writes it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.errors import SourceError, UsageError
from perftrail.file_tree import real_path
from perftrail.model.source import Source
from perftrail.model.suite import SuiteKind
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.process.launcher import Launcher
from perftrail.sources.fossil import FossilSource
from perftrail.sources.git.command import GitObject, local_git, read_blobs
from perftrail.studyfile import FILE_NAME
from perftrail.studyfile.reading import mistake
from perftrail.verbs.init.draft import (
    BENCHMARK_NAME,
    OPTION_SOURCES,
    SOURCE_SUFFIXES,
    BenchmarkDraft,
    SourceDraft,
    StudyDraft,
    Tree,
)
from perftrail.verbs.init.study_text import NO_RANGE, study_text
from perftrail.verbs.init.systems import SYSTEMS, detect
from perftrail.verbs.init.systems.make import MANIFESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.model.subject import Revision
    from perftrail.ports import Starter
    from perftrail.sources.git.command import Git
    from perftrail.verbs.init.draft import BuildDraft


DEFAULT_REVISIONS = 50
"""Number of newest revisions in a first range without a suitable release."""

FEWEST_REVISIONS, MOST_REVISIONS = 5, 400
"""Limits on the number of revisions since a release in a first range."""

_OF_NEWEST = (
    f"the newest {DEFAULT_REVISIONS} revisions; a release without the regression would be a better start"
)

_PLAIN_NAME = re.compile(r"\w[\w./+-]*")
"""Names of tags that are valid in a range; the commit's id replaces other tags."""


def git_range(git: Git, directory: Path, location: str) -> SourceDraft:
    """Choose a range of a git history along first parents; an unsuitable history gets a remedy."""
    troubles = []
    if _git_output(git, directory, "rev-parse", "--is-shallow-repository") == "true":
        troubles.append(
            "a shallow clone has only a part of the history; complete it with: git fetch --unshallow"
        )
    count = _count(git, directory, "HEAD")
    if not count:
        troubles.append("the repository has no commit yet: commit the program first")
        return SourceDraft(kind="git", location=location, troubles=tuple(troubles))
    old, why = _git_start(git, directory)
    if not old:
        return SourceDraft(
            kind="git", location=location, range_why=NO_RANGE, revisions=count, troubles=tuple(troubles)
        )
    return SourceDraft(
        kind="git",
        location=location,
        range=f"{old}..HEAD",
        range_why=why,
        revisions=_count(git, directory, f"{old}..HEAD") + 1,
        troubles=tuple(troubles),
    )


def _git_start(git: Git, directory: Path) -> tuple[str, str]:
    """Return the old end and its reason; empty if the whole history is short enough."""
    for newest, since in (("HEAD", "the last tag"), ("HEAD^", "the tag before the last")):
        tag = _git_output(git, directory, "describe", "--tags", "--abbrev=0", "--first-parent", newest)
        spans = _count(git, directory, f"refs/tags/{tag}..HEAD") if tag else 0
        if FEWEST_REVISIONS <= spans <= MOST_REVISIONS:
            name = tag
            if not _PLAIN_NAME.fullmatch(tag):
                name = _git_output(
                    git, directory, "rev-parse", "--verify", "--end-of-options", f"refs/tags/{tag}^{{commit}}"
                )
            return name, f"since {since}, as the older end"
    ids = _git_output(
        git, directory, "rev-list", "--first-parent", f"--max-count={DEFAULT_REVISIONS}", "HEAD"
    ).split()
    if len(ids) < DEFAULT_REVISIONS:
        return "", ""
    return ids[-1], _OF_NEWEST


def fossil_range(revisions: Sequence[Revision], location: str) -> SourceDraft:
    """Choose a range of a Fossil history, from all revisions, oldest first, up to its newest check-in."""
    releases = [
        number
        for number, revision in enumerate(revisions)
        if revision.label and FEWEST_REVISIONS <= len(revisions) - 1 - number <= MOST_REVISIONS
    ]
    if not releases and len(revisions) <= DEFAULT_REVISIONS:
        return SourceDraft(kind="fossil", location=location, range_why=NO_RANGE, revisions=len(revisions))
    start = releases[-1] if releases else len(revisions) - DEFAULT_REVISIONS
    return SourceDraft(
        kind="fossil",
        location=location,
        range=f"{revisions[start].id}..{revisions[-1].id}",
        range_why="since the last tag, as the older end" if releases else _OF_NEWEST,
        revisions=len(revisions) - start,
    )


def _git_output(git: Git, directory: Path, *words: str) -> str:
    result = git.run(*words, repository=directory)
    return "" if result.failed else "\n".join(result.lines()).strip()


def _count(git: Git, directory: Path, what: str) -> int:
    counted = _git_output(git, directory, "rev-list", "--count", "--first-parent", "--end-of-options", what)
    return int(counted) if counted.isdigit() else 0


LARGEST_TEXT_BYTES = 512 << 10
MOST_TEXTS = 1000
MOST_FILES = 200_000
"""Limits on the files that perftrail reads: manifests are small and few; it ignores the rest."""

_MANIFESTS = frozenset(
    {
        *MANIFESTS,
        "Makefile.am",
        "Makefile.in",
        "configure.ac",
        "configure.in",
        "CMakeLists.txt",
        "meson.build",
        "Cargo.toml",
        "go.mod",
        "package.json",
        "pyproject.toml",
        "asv.conf.json",
        "asv.conf.jsonc",
        "pom.xml",
    }
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IGNORED = frozenset({".git", ".hg", ".svn", ".perftrail", "node_modules", "__pycache__", ".venv", "venv"})
_FOSSIL = (".fslckout", "_FOSSIL_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedProgram:
    """A program's source of revisions, and its files below the given directory."""

    source: SourceDraft
    tree: Tree


def examine(directory: Path, starter: Starter, *, study: Path) -> ExaminedProgram:
    """Examine a directory for a study in the directory `study`.

    Runs no program or build of it. Raises `UsageError` if the directory does not exist.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such directory; name the program's directory")
    location = _location(directory, study)
    with tempfile.TemporaryDirectory(prefix="perftrail-init-") as cache:
        examined = _examine_git(directory, location, starter, cache=Path(cache))
        examined = examined or _examine_fossil(directory, location, starter, cache=Path(cache))
    return examined or _examine_files(directory, location)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryRoot:
    """The check-out that contains a directory: its root, and the path from there, empty for the root itself."""

    kind: Literal["git", "fossil"]
    directory: Path
    prefix: str


def repository_root(directory: Path) -> RepositoryRoot | None:
    """Return the git or Fossil check-out that contains a directory; `None` if there is none.

    Raises `UsageError` if a path has control characters.
    """
    here = real_path(directory)
    with tempfile.TemporaryDirectory(prefix="perftrail-init-") as cache, Launcher() as starter:
        try:
            git = local_git(starter, cache=Path(cache))
            top = _git_output(git, here, "rev-parse", "--show-toplevel")
        except SourceError:
            top = ""
    root = Path(top) if top else _fossil_root(here)
    if root is None:
        return None
    prefix = _nameable(here.relative_to(real_path(root)).as_posix())
    return RepositoryRoot(
        kind="git" if top else "fossil", directory=root, prefix="" if prefix == "." else prefix
    )


def _fossil_root(here: Path) -> Path | None:
    above = (here, *here.parents)
    return next((each for each in above if any((each / name).is_file() for name in _FOSSIL)), None)


def _location(directory: Path, study: Path) -> str:
    """Return the directory as a study names it: relative, and distinct from an address or an option."""
    path = os.path.relpath(real_path(directory), real_path(study))
    return _nameable(path) if path in (".", "..") or path.startswith("../") else _nameable(f"./{path}")


def _examine_git(directory: Path, location: str, starter: Starter, *, cache: Path) -> ExaminedProgram | None:
    try:
        git = local_git(starter, cache=cache)
    except SourceError:
        return None
    shown = git.run("rev-parse", "--show-prefix", repository=directory)
    if shown.failed:
        return None
    prefix = _nameable("".join(shown.lines()).rstrip("/"))
    source = git_range(git, directory, location)
    if not source.revisions:
        return ExaminedProgram(source=source, tree=_files(directory, prefix=prefix))
    listed = git.run("ls-tree", "-r", "-l", "-z", "HEAD", repository=directory)
    blobs = dict(_blobs(listed.fields()))
    if not blobs:
        return None
    tree = Tree(
        name=real_path(directory).name.removesuffix(".git"),
        is_executable={path: mode == "100755" for path, (mode, _) in blobs.items()},
        texts=_committed(git, directory, {path: found for path, (_, found) in blobs.items()}),
        prefix=prefix,
    )
    return ExaminedProgram(source=source, tree=tree)


def _blobs(fields: Iterable[str]) -> Iterator[tuple[str, tuple[str, GitObject]]]:
    for field in fields:
        words, _, path = field.partition("\t")
        parts = words.split()
        if len(parts) == 4 and parts[1] == "blob" and parts[0] != "120000" and parts[3].isdigit():
            yield path, (parts[0], GitObject(id=parts[2], kind="blob", size_bytes=int(parts[3])))


def _committed(git: Git, directory: Path, blobs: dict[str, GitObject]) -> dict[str, str]:
    wanted = [path for path in _informative(blobs) if blobs[path].size_bytes <= LARGEST_TEXT_BYTES][
        :MOST_TEXTS
    ]
    read = read_blobs(git, directory, [blobs[path] for path in wanted])
    return {
        path: read[blobs[path].id].decode("utf-8", errors="replace")
        for path in wanted
        if blobs[path].id in read
    }


def _examine_fossil(
    directory: Path, location: str, starter: Starter, *, cache: Path
) -> ExaminedProgram | None:
    """Examine a Fossil checkout, and its repository."""
    here = real_path(directory)
    root = _fossil_root(here)
    if root is None:
        return None
    prefix = _nameable(here.relative_to(root).as_posix())
    prefix = "" if prefix == "." else prefix
    try:
        source = FossilSource(Source(kind="fossil", location=str(root)), cache=str(cache), starter=starter)
        revisions = source.history()
        source.materialise(revisions[-1], str(cache / "newest"), str(cache / "log"))
    except SourceError as error:
        draft = SourceDraft(kind="fossil", location=location, troubles=tuple(str(error).splitlines()))
        return ExaminedProgram(source=draft, tree=_files(here, prefix=prefix))
    committed = _files(cache / "newest" / prefix, prefix=prefix, name=here.name)
    return ExaminedProgram(source=fossil_range(revisions, location), tree=committed)


def _nameable(path: str) -> str:
    """Return a directory's path for a study. Raises `UsageError` for a path with control characters."""
    if _CONTROL.search(path):
        raise UsageError(f"{quoted(path)}: a study cannot name this directory; rename the directory")
    return f"./{path}" if path.startswith("-") else path


def _examine_files(directory: Path, location: str) -> ExaminedProgram:
    trouble = "no git or Fossil history here, so the study has only one revision: the present files"
    source = SourceDraft(kind="directory", location=location, revisions=1, troubles=(trouble,))
    return ExaminedProgram(source=source, tree=_files(directory))


def _files(directory: Path, *, prefix: str = "", name: str = "") -> Tree:
    """Return the files on disk, without links, and without files of version control and tools."""
    is_executable = {path: os.access(directory / path, os.X_OK) for path in _readable_files(directory)}
    texts = {}
    for path in _informative(is_executable)[:MOST_TEXTS]:
        file = directory / path
        if file.stat().st_size <= LARGEST_TEXT_BYTES:
            texts[path] = file.read_text("utf-8", errors="replace")
    return Tree(
        name=name or real_path(directory).name, is_executable=is_executable, texts=texts, prefix=prefix
    )


def _readable_files(directory: Path) -> Iterator[str]:
    count = 0
    for here, inside, names in os.walk(directory):
        inside[:] = sorted(name for name in inside if name not in _IGNORED)
        for name in names:
            path = Path(here, name)
            if path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK):
                continue
            count += 1
            if count > MOST_FILES:
                return
            yield path.relative_to(directory).as_posix()


def _informative(paths: Iterable[str]) -> list[str]:
    """Return the files whose text shows how to build or run a program: manifests first, shallow ones first."""
    return sorted((path for path in paths if _is_informative(PurePosixPath(path))), key=_order)


def _order(path: str) -> tuple[bool, bool, int, str]:
    here = PurePosixPath(path)
    return here.name not in _MANIFESTS, not OPTION_SOURCES.search(here.stem), path.count("/"), path


_TEST = re.compile(r"^test_|_test$")
"""Names of Python tests, which may use pytest-benchmark."""


def _is_informative(path: PurePosixPath) -> bool:
    if path.name in _MANIFESTS or path.suffix == ".go":
        return True
    if path.suffix == ".py":
        is_benchmark = any(BENCHMARK_NAME.search(part) for part in path.parts)
        return is_benchmark or path.stem == "conftest" or _TEST.search(path.stem) is not None
    if path.suffix == ".rs":
        return path.parent.name == "benches"
    return path.suffix in SOURCE_SUFFIXES and len(path.parts) <= 3


class FirstSourceJson(TypedDict):
    """The source of revisions that init found."""

    kind: str
    location: str
    range: str | None
    revisions: int
    troubles: list[str]


class FirstBuildJson(TypedDict):
    """The build that init proposes."""

    system: str
    manifest: str
    directory: str
    steps: list[str]
    outputs: list[str]
    lacking: Annotated[list[str], "programs that the build needs and this machine lacks"]
    others: Annotated[list[str], "other build systems found"]


class FirstBenchmarkJson(TypedDict):
    """The benchmark that init proposes."""

    command: str
    placeholder: Annotated[bool, "whether the command must be replaced"]


class FirstStudyJson(TypedDict):
    """The study file that init wrote, and what it found."""

    file: str
    metric: Annotated[str, "the metric to search"]
    source: FirstSourceJson
    build: FirstBuildJson | None
    benchmark: FirstBenchmarkJson | None
    suite: Annotated[
        SuiteKind | None, "the tool of the benchmark suite that init found; it replaces the benchmark"
    ]
    notes: Annotated[list[str], "problems to solve, each with its remedy"]
    to_do: Annotated[str, "what to write into the study before check; empty if it is complete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStudy:
    """A first study that was written to `file`.

    `missing_tools` are programs that the build needs and that are not installed here.
    """

    file: Path
    draft: StudyDraft
    missing_tools: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Problems of the history and of this machine, each with its remedy."""
        notes = list(self.draft.source.troubles)
        if self.missing_tools:
            notes.append(
                f"not installed here: {', '.join(self.missing_tools)}; install it before perftrail check --try"
            )
        if self.draft.build is not None:
            notes += self.draft.build.notes
        return tuple(notes)

    @property
    def to_do(self) -> str:
        """What the user must write into the study before anything can be measured; empty if it is complete."""
        build = self.draft.build
        if build is None:
            return f"write [build] and the command of {_place(self.file, 'start')}"
        if build.suite is None and build.benchmark.placeholder:
            return f"replace the placeholder {_place(self.file, build.benchmark.name)}"
        return ""

    def as_json(self) -> FirstStudyJson:
        """Return the findings as `init --json` prints them."""
        source, build = self.draft.source, self.draft.build
        return {
            "file": str(self.file),
            "metric": self.draft.metric,
            "source": {
                "kind": source.kind,
                "location": source.location,
                "range": source.range or None,
                "revisions": source.revisions,
                "troubles": list(source.troubles),
            },
            "build": None
            if build is None
            else {
                "system": build.system,
                "manifest": build.manifest,
                "directory": self.draft.directory or ".",
                "steps": [step.line for step in build.steps],
                "outputs": list(build.outputs),
                "lacking": list(self.missing_tools),
                "others": [other.system for other in self.draft.others],
            },
            "benchmark": None
            if build is None
            else {
                "command": build.benchmark.command if build.suite is None else "",
                "placeholder": build.suite is None and build.benchmark.placeholder,
            },
            "suite": None if build is None or build.suite is None else build.suite.kind,
            "notes": list(self.notes),
            "to_do": self.to_do,
        }


def _place(file: Path, benchmark: str) -> str:
    """Return where a study names the command of a benchmark: FILE:LINE (KEY)."""
    found = mistake(str(file), ("benchmark", benchmark, "command"), "")
    return f"{found.file}:{found.line} ({found.key})"


def write_first_study(directory: Path, *, output: Path, system: str | None, force: bool) -> FirstStudy:
    """Write a first study of a directory into a file, or into the directory `output`.

    `system` selects one of several build systems. Raises `UsageError` if a study exists and `force` is not set, if the
    directory does not use `system`, and if the file cannot be written.
    """
    file = new_file(output, force=force)
    return write_draft(draft_study(directory, study=file.parent, system=system), file)


def new_file(output: Path, *, force: bool) -> Path:
    """Return the file of a study: `output`, or in that directory.

    Raises `UsageError` if it exists and `force` is not set.
    """
    file = output if output.suffix == ".toml" else output / FILE_NAME
    if file.exists() and not force:
        raise UsageError(f"{file}: a study exists already; overwrite it with --force")
    return file


def write_draft(draft: StudyDraft, file: Path) -> FirstStudy:
    """Write a drafted study. Raises `UsageError` if the file cannot be written."""
    write_text(file, study_text(draft))
    tools = draft.build.tools if draft.build else ()
    return FirstStudy(
        file=file, draft=draft, missing_tools=tuple(tool for tool in tools if shutil.which(tool) is None)
    )


def draft_study(directory: Path, *, study: Path, system: str | None) -> StudyDraft:
    """Return a first study of a directory, for a file in the directory `study`; `system` selects a build system.

    Raises `UsageError` if the directory does not use `system`.
    """
    with Launcher() as starter:
        examined = examine(directory, starter, study=study)
    return draft_of(examined, system=system)


def draft_of(examined: ExaminedProgram, *, system: str | None) -> StudyDraft:
    """Return a first study of an examined program; `system` selects a build system.

    Raises `UsageError` if the program does not use `system`.
    """
    tree = examined.tree
    found = detect(tree)
    if system is not None:
        _check_known(system, [build.system for build, _ in found])
        found = tuple(sorted(found, key=lambda each: each[0].system != system))
    # Of several systems, prefer one whose tools are installed, because it works at once.
    elif found and _lacks(found[0][0]):
        found = tuple(sorted(found, key=lambda each: _lacks(each[0])))
    build, directory = found[0] if found else (None, tree.prefix)
    return StudyDraft(
        name=tree.name,
        directory=directory,
        source=examined.source,
        build=build,
        others=tuple(other for other, _ in found[1:]),
        load=os.getloadavg()[0],
        cpus=len(os.sched_getaffinity(0)),
    )


def with_older_end(draft: StudyDraft, old: str, directory: Path) -> StudyDraft:
    """Return a draft whose range begins at a revision of the git repository of a directory.

    Raises `UsageError` if there is no such revision, or no newer one on the main branch.
    """
    with tempfile.TemporaryDirectory(prefix="perftrail-init-") as cache, Launcher() as starter:
        git = local_git(starter, cache=Path(cache))
        found = _git_output(git, directory, "rev-parse", "--verify", "--end-of-options", f"{old}^{{commit}}")
        newer = _count(git, directory, f"{found}..HEAD") if found else 0
    if not found:
        raise UsageError(f"{quoted(old)}: no such revision here; name a tag, a branch or a commit")
    if not newer:
        raise UsageError(f"{quoted(old)}: HEAD has no newer revisions; name an older one")
    name = old if _PLAIN_NAME.fullmatch(old) else found
    source = replace(
        draft.source, range=f"{name}..HEAD", range_why="the older end that you named", revisions=newer + 1
    )
    return replace(draft, source=source)


def with_command(draft: StudyDraft, command: str, *, prefix: str) -> StudyDraft:
    """Return a draft that measures this command instead of the detected one.

    Without ``{build}``, it runs in the revision's tree, in the directory `prefix` from its root, as in a check-out.
    Outputs are kept only if the command names all of them: it may use other files.
    """
    build = draft.build
    assert build is not None
    benchmark = BenchmarkDraft(
        name=NAMED,
        command=command,
        why="the command that you named",
        needs_shell=bool(set(command) & _SHELL_CHARACTERS),
        directory="" if "{build}" in command else prefix or ".",
        env=build.benchmark.env,
    )
    build = replace(build, benchmark=benchmark, suite=None)
    if not all(f"{{build}}/{output}" in command for output in build.outputs):
        build = replace(build, outputs=(), outputs_why="")
    return replace(draft, build=build)


NAMED = "command"
"""Name of the benchmark of a command that the user named."""

_SHELL_CHARACTERS = frozenset("|&;<>$`*?~")


def _lacks(build: BuildDraft) -> bool:
    return any(shutil.which(tool) is None for tool in build.tools)


def _check_known(system: str, found: list[str]) -> None:
    if system in found:
        return
    if system not in SYSTEMS:
        raise UsageError(f"--build {system}: unknown build system{suggestion(system, SYSTEMS)}")
    choices = f"it uses {listed(found, 'and')}" if found else "perftrail found no build system there"
    raise UsageError(f"--build {system}: the directory does not use {system}; {choices}")


def write_text(file: Path, text: str) -> None:
    """Write a study's text atomically. Raises `UsageError` if the file cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as opened:
            opened.write(text)
        temporary = Path(opened.name)
        temporary.chmod(0o644)
        temporary.replace(file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {(error.strerror or str(error)).lower()}") from error
