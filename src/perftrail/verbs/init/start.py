"""Examine a program, choose the range of a first study, write the study as TOML, and report the findings."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import SourceError, UsageError
from perftrail.model.source import Source
from perftrail.model.study import FindPolicy
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.process.launcher import Launcher
from perftrail.sources.fossil import FossilSource
from perftrail.sources.git.command import GitObject, local_git, read_blobs
from perftrail.studyfile import FILE_NAME
from perftrail.studyfile.writing import toml
from perftrail.verbs.init.draft import BENCH, MAIN, SOURCES, Draft, History, Tree, Trial
from perftrail.verbs.init.systems import SYSTEMS, detect
from perftrail.verbs.init.systems.make import MANIFESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.model.subject import Revision
    from perftrail.ports import Starter
    from perftrail.sources.git.command import Git
    from perftrail.verbs.init.draft import Building, Step


NEWEST = 50
FEWEST = 5
MOST = 400
"""Maximum number of revisions since a release for a first range."""

WHOLE = "without a range, the whole history; to use less, for example:"
_OF_NEWEST = f"the newest {NEWEST} revisions; a release without the regression is a better start"

_PLAIN_NAME = re.compile(r"\w[\w./+-]*")
"""Names of tags that are valid in a range as they are; other tags are replaced by the commit's id."""


def git_range(git: Git, directory: Path, location: str) -> History:
    """Choose a range of a git history along first parents; a history without one gets the remedy."""
    troubles = []
    if _said(git, directory, "rev-parse", "--is-shallow-repository") == "true":
        troubles.append(
            "a shallow clone lacks the history to search; complete it with: git fetch --unshallow"
        )
    count = _count(git, directory, "HEAD")
    if not count:
        troubles.append("the repository has no commit yet: commit the program first")
        return History(kind="git", location=location, troubles=tuple(troubles))
    old, why = _git_start(git, directory)
    if not old:
        return History(
            kind="git", location=location, range_why=WHOLE, revisions=count, troubles=tuple(troubles)
        )
    return History(
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
        tag = _said(git, directory, "describe", "--tags", "--abbrev=0", "--first-parent", newest)
        spans = _count(git, directory, f"refs/tags/{tag}..HEAD") if tag else 0
        if FEWEST <= spans <= MOST:
            name = tag
            if not _PLAIN_NAME.fullmatch(tag):
                name = _said(
                    git, directory, "rev-parse", "--verify", "--end-of-options", f"refs/tags/{tag}^{{commit}}"
                )
            return name, f"since {since}, the known-old end"
    ids = _said(git, directory, "rev-list", "--first-parent", f"--max-count={NEWEST}", "HEAD").split()
    if len(ids) < NEWEST:
        return "", ""
    return ids[-1], _OF_NEWEST


def fossil_range(revisions: Sequence[Revision], location: str) -> History:
    """Choose a range of a Fossil history, from all revisions, oldest first, up to its newest check-in."""
    releases = [
        number
        for number, revision in enumerate(revisions)
        if revision.label and FEWEST <= len(revisions) - 1 - number <= MOST
    ]
    if not releases and len(revisions) <= NEWEST:
        return History(kind="fossil", location=location, range_why=WHOLE, revisions=len(revisions))
    start = releases[-1] if releases else len(revisions) - NEWEST
    return History(
        kind="fossil",
        location=location,
        range=f"{revisions[start].id}..{revisions[-1].id}",
        range_why="since the last tag, the known-old end" if releases else _OF_NEWEST,
        revisions=len(revisions) - start,
    )


def _said(git: Git, directory: Path, *words: str) -> str:
    answer = git.run(*words, repository=directory)
    return "" if answer.failed else "\n".join(answer.lines()).strip()


def _count(git: Git, directory: Path, what: str) -> int:
    counted = _said(git, directory, "rev-list", "--count", "--first-parent", "--end-of-options", what)
    return int(counted) if counted.isdigit() else 0


_NEWEST = {"git": "HEAD", "fossil": "trunk"}
"""The usual name of the newest revision."""

_NOTHING = Trial(
    name="start",
    command="test -e {build}",
    why="a placeholder that runs anywhere: replace it by the command whose speed matters",
    placeholder=True,
)
"""The benchmark if no build system was found."""


def write(draft: Draft) -> str:
    """Return the text of a study file; choices without a finding become comments."""
    trial = draft.building.trial if draft.building else _NOTHING
    parts = (
        _head(draft),
        _source(draft.history),
        _build(draft),
        _benchmark(trial),
        _measure(),
        _find(trial),
    )
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _head(draft: Draft) -> Iterable[str]:
    return (
        f"# A first study of {quoted(draft.name)}, as perftrail init found it. You may change every line;",
        "# `perftrail check` shows whether it is valid, `perftrail check --try 5` whether it builds.",
        "",
        "[study]",
        f"title = {toml(f'Which change made {draft.name} faster or slower?')}",
    )


def _source(history: History) -> Iterable[str]:
    yield "[source]"
    yield f"kind = {toml(history.kind)}"
    yield "# relative to this file; an address like https://… is fetched once"
    yield f"location = {toml(history.location)}"
    for trouble in history.troubles:
        yield f"# {trouble}"
    if history.range:
        yield f"# {history.range_why}"
        yield f"range = {toml(history.range)}"
    elif history.kind != "directory":
        yield f"# {history.range_why or WHOLE}"
        yield f'# range = "v1.0..{_NEWEST[history.kind]}"'
    if history.kind != "directory":
        yield '# only merges into the main branch; "all" also includes the commits of branches'
        yield 'walk = "first-parent"'


def _build(draft: Draft) -> Iterable[str]:
    yield "[build]"
    building = draft.building
    if building is None:
        yield "# no build system was found: write the build commands here, one per line"
        yield '# steps = ["make -j{cpus}"]'
        return
    yield f"# build system: {building.system}, found {quoted(building.manifest)}; {{cpus}} is the number of CPUs"
    yield from (f"# {hint}" for hint in building.hints)
    if draft.directory:
        yield "# where the steps run, from the revision's root"
        yield f"directory = {toml(draft.directory)}"
    if building.steps:
        yield "steps = ["
        for step in building.steps:
            yield f"    # {step.why}"
            yield f"    {toml(step.line)},"
        yield "]"
    else:
        yield "# nothing to build: the files are used as they are"
        yield "steps = []"
    if building.env:
        yield "# the build's environment contains only these variables and a few defaults"
        yield f"env = {_table(building.env.items())}"
    yield "# a build that takes longer is killed, and recorded as failed"
    yield 'timeout = "30min"'
    yield from _outputs(building)


def _outputs(building: Building) -> Iterable[str]:
    if building.outputs:
        yield f"# what the benchmark uses: {building.outputs_why}"
        yield f"outputs = [{', '.join(toml(path) for path in dict.fromkeys(building.outputs))}]"
    else:
        yield "# name the files that the benchmark uses; revisions with equal files are measured once"
        yield '# outputs = ["path/of/a/program"]'
    yield from _relink(building.relink)
    if building.never_linked:
        yield f"# nothing to relink: {building.never_linked}"


def _relink(steps: Sequence[Step]) -> Iterable[str]:
    """Write relink lines as comments: they cost seconds for each layout, and may need a linker."""
    if not steps:
        return
    yield "# moving code in memory can change its speed without a change of its source; uncomment these lines to"
    yield "# link it in another order for each {layout}, and verdicts are about the source (docs/how-to/layout-noise)"
    yield "# relink = ["
    for step in steps:
        yield f"#     # {step.why}"
        yield f"#     {toml(step.line)},"
    yield "# ]"


def _benchmark(trial: Trial) -> Iterable[str]:
    yield f"[benchmark.{trial.name}]"
    if trial.build:
        yield "build = ["
        for step in trial.build:
            yield f"    # {step.why}"
            yield f"    {toml(step.line)},"
        yield "]"
    yield from _relink(trial.relink)
    yield f"# {trial.why}"
    yield f"command = {toml(trial.command)}"
    if trial.env:
        yield "# variables with which it finds the built files"
        yield f"env = {_table(trial.env.items())}"
    yield "# a start that takes longer is killed, and recorded as failed"
    yield 'timeout = "5min"'
    yield "# a parameter; {size} in command is replaced by its value"
    yield "# parameters = { size = [1000, 10000] }"
    if trial.printed:
        yield "# perftrail measures wall and peak_memory of every benchmark; this one also prints a metric"
    else:
        yield "# perftrail measures wall and peak_memory of every benchmark; to read a metric that it prints:"
        yield '# metrics.rate = { pattern = \'rate=([0-9.]+)\', unit = "1/s", better = "higher" }'
    for name, printed in trial.printed.items():
        yield f"metrics.{name} = {{ pattern = {toml(printed.pattern)}, unit = {toml(printed.unit)} }}"


def _measure() -> Iterable[str]:
    return (
        "[measure]",
        "# invocations of each revision: at least, and at most while its interval is too wide",
        'invocations = "5..30"',
        "# noisy samples are flagged; to wait for a quiet machine first, at most a minute:",
        '# quiet = "wait 60s"',
    )


def _find(trial: Trial) -> Iterable[str]:
    metric = next(iter(trial.printed), "wall")
    usual = FindPolicy()
    return (
        "[find]",
        "# the metric to search: wall, cpu, peak_memory, or one that the benchmark prints",
        f"metric = {toml(metric)}",
        "# the smallest change worth finding; smaller ones take more invocations",
        f"threshold = {usual.threshold}",
        "# the probability that the answer is right",
        f"confidence = {usual.confidence}",
        "# a search that takes longer ends with a partial answer",
        '# budget = "1h"',
    )


def _table(items: Iterable[tuple[str, str]]) -> str:
    return "{ " + ", ".join(f"{name} = {toml(value)}" for name, value in items) + " }"


LARGEST_TEXT_BYTES = 512 << 10
MOST_TEXTS = 1000
MOST_FILES = 200_000
"""Limits on the texts that are read: manifests are small and few; the rest is ignored."""

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
    }
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LEFT_OUT = frozenset({".git", ".hg", ".svn", ".perftrail", "node_modules", "__pycache__", ".venv", "venv"})
_FOSSIL = (".fslckout", "_FOSSIL_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedProgram:
    """What was found of a program: its history, and its files below the given directory."""

    history: History
    tree: Tree


def look(directory: Path, starter: Starter, *, study: Path) -> ExaminedProgram:
    """Examine a directory for a study in the directory `study`.

    Runs nothing that it finds. Raises `UsageError` if the directory does not exist.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such directory; name the program's directory")
    location = _location(directory, study)
    with tempfile.TemporaryDirectory(prefix="perftrail-init-") as cache:
        seen = _git(directory, location, starter, cache=Path(cache))
        seen = seen or _fossil(directory, location, starter, cache=Path(cache))
    return seen or _plain(directory, location)


def _location(directory: Path, study: Path) -> str:
    """Return the directory as the study names it: relative, and distinct from an address or an option."""
    path = os.path.relpath(directory.resolve(), study.resolve())
    return _fit(path) if path in (".", "..") or path.startswith("../") else _fit(f"./{path}")


def _git(directory: Path, location: str, starter: Starter, *, cache: Path) -> ExaminedProgram | None:
    try:
        git = local_git(starter, cache=cache)
    except SourceError:
        return None
    place = git.run("rev-parse", "--show-prefix", repository=directory)
    if place.failed:
        return None
    within = _fit("".join(place.lines()).rstrip("/"))
    history = git_range(git, directory, location)
    if not history.revisions:
        return ExaminedProgram(history=history, tree=_files(directory, place=within))
    listed = git.run("ls-tree", "-r", "-l", "-z", "HEAD", repository=directory)
    blobs = dict(_blobs(listed.fields()))
    if not blobs:
        return None
    tree = Tree(
        name=directory.resolve().name.removesuffix(".git"),
        programs={path: mode == "100755" for path, (mode, _) in blobs.items()},
        texts=_committed(git, directory, {path: found for path, (_, found) in blobs.items()}),
        place=within,
    )
    return ExaminedProgram(history=history, tree=tree)


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


def _fossil(directory: Path, location: str, starter: Starter, *, cache: Path) -> ExaminedProgram | None:
    """Examine a Fossil checkout, and its repository."""
    here = directory.resolve()
    above = (here, *here.parents)
    root = next((each for each in above if any((each / name).is_file() for name in _FOSSIL)), None)
    if root is None:
        return None
    place = _fit(here.relative_to(root).as_posix())
    place = "" if place == "." else place
    try:
        source = FossilSource(Source(kind="fossil", location=str(root)), cache=str(cache), starter=starter)
        revisions = source.history()
        source.materialise(revisions[-1], str(cache / "newest"), str(cache / "log"))
    except SourceError as error:
        history = History(kind="fossil", location=location, troubles=tuple(str(error).splitlines()))
        return ExaminedProgram(history=history, tree=_files(here, place=place))
    committed = _files(cache / "newest" / place, place=place, name=here.name)
    return ExaminedProgram(history=fossil_range(revisions, location), tree=committed)


def _fit(place: str) -> str:
    """Return a directory's path for a study. Raises `UsageError` for a path that no study can name."""
    if _CONTROL.search(place):
        raise UsageError(f"{quoted(place)}: a study cannot name this directory; rename it")
    return f"./{place}" if place.startswith("-") else place


def _plain(directory: Path, location: str) -> ExaminedProgram:
    trouble = "no git or Fossil history here: the study has one revision, the current files"
    history = History(kind="directory", location=location, revisions=1, troubles=(trouble,))
    return ExaminedProgram(history=history, tree=_files(directory))


def _files(directory: Path, *, place: str = "", name: str = "") -> Tree:
    """Return the files on disk, without links and without version control's own."""
    programs = {path: os.access(directory / path, os.X_OK) for path in _walk(directory)}
    texts = {}
    for path in _informative(programs)[:MOST_TEXTS]:
        file = directory / path
        if file.stat().st_size <= LARGEST_TEXT_BYTES:
            texts[path] = file.read_text("utf-8", errors="replace")
    return Tree(name=name or directory.resolve().name, programs=programs, texts=texts, place=place)


def _walk(directory: Path) -> Iterator[str]:
    count = 0
    for here, inside, names in os.walk(directory):
        inside[:] = sorted(name for name in inside if name not in _LEFT_OUT)
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
    return here.name not in _MANIFESTS, not MAIN.search(here.stem), path.count("/"), path


def _is_informative(path: PurePosixPath) -> bool:
    if path.name in _MANIFESTS or path.suffix == ".go":
        return True
    if path.suffix == ".py":
        return any(BENCH.search(part) for part in path.parts)
    return path.suffix in SOURCES and len(path.parts) <= 3


class FirstSourceJson(TypedDict):
    """The repository that init found."""

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
    source: FirstSourceJson
    build: FirstBuildJson | None
    benchmark: FirstBenchmarkJson | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStudy:
    """A first study that was written to `file`, and the findings to report before it runs.

    `lacking` are programs that the build starts and that are not installed here.
    """

    file: Path
    draft: Draft
    lacking: tuple[str, ...]

    def as_json(self) -> FirstStudyJson:
        """Return the findings as `init --json` prints them."""
        history, building = self.draft.history, self.draft.building
        return {
            "file": str(self.file),
            "source": {
                "kind": history.kind,
                "location": history.location,
                "range": history.range or None,
                "revisions": history.revisions,
                "troubles": list(history.troubles),
            },
            "build": None
            if building is None
            else {
                "system": building.system,
                "manifest": building.manifest,
                "directory": self.draft.directory or ".",
                "steps": [step.line for step in building.steps],
                "outputs": list(building.outputs),
                "lacking": list(self.lacking),
                "others": [other.system for other in self.draft.others],
            },
            "benchmark": None
            if building is None
            else {"command": building.trial.command, "placeholder": building.trial.placeholder},
        }


def begin(directory: Path, *, output: Path, system: str | None, force: bool) -> FirstStudy:
    """Write a first study of a directory into a file, or into the directory `output`.

    `system` selects one of the build systems that are found. Raises `UsageError` if a study exists
    and not `force`, if `system` is not found there, and if the file cannot be written.
    """
    file = output if output.suffix == ".toml" else output / FILE_NAME
    if file.exists() and not force:
        raise UsageError(f"{file}: a study exists already; --force overwrites it")
    with Launcher() as starter:
        seen = look(directory, starter, study=file.parent)
    draft = _draft(seen.tree, system=system, history=seen.history)
    _write(file, write(draft))
    tools = draft.building.tools if draft.building else ()
    return FirstStudy(
        file=file, draft=draft, lacking=tuple(tool for tool in tools if shutil.which(tool) is None)
    )


def _draft(tree: Tree, *, system: str | None, history: History) -> Draft:
    found = detect(tree)
    if system is not None:
        _check_known(system, [building.system for building, _ in found])
        found = tuple(sorted(found, key=lambda each: each[0].system != system))
    # If two fit, prefer the one whose tools are installed, because it works at once.
    elif found and _lacks(found[0][0]):
        found = tuple(sorted(found, key=lambda each: _lacks(each[0])))
    building, place = found[0] if found else (None, tree.place)
    return Draft(
        name=tree.name,
        directory=place,
        history=history,
        building=building,
        others=tuple(other for other, _ in found[1:]),
    )


def _lacks(building: Building) -> bool:
    return any(shutil.which(tool) is None for tool in building.tools)


def _check_known(system: str, found: list[str]) -> None:
    if system in found:
        return
    if system not in SYSTEMS:
        raise UsageError(f"--build {system}: not known{suggestion(system, SYSTEMS)}")
    there = f"; found {listed(found, 'and')}" if found else "; no build system was found"
    raise UsageError(f"--build {system}: found nothing that it builds{there}")


def _write(file: Path, text: str) -> None:
    """Write the text atomically."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as ours:
            ours.write(text)
        made = Path(ours.name)
        made.chmod(0o644)
        made.replace(file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {(error.strerror or str(error)).lower()}") from error
