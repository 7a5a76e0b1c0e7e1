"""Translate asv's configuration into a study: source, environments, matrix and suite; the rest becomes comments.

asv.conf.json is untrusted text: every value is checked, all mistakes are reported at once with their lines, and words
of its commands are quoted again for the shell.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import FormatError, Mistake, StudyError, UsageError
from perftrail.file_tree import open_to_read, real_path
from perftrail.formats.commented_json import MOST_BYTES, Located, NotJson, parse
from perftrail.model.field import ENVIRONMENT
from perftrail.model.placeholders import literal
from perftrail.model.process import Command, Exited
from perftrail.model.study import FindPolicy
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.process.launcher import Launcher
from perftrail.sources.git.command import local_git
from perftrail.studyfile import FILE_NAME
from perftrail.studyfile.writing import toml
from perftrail.verbs.init.draft import SourceDraft
from perftrail.verbs.init.start import git_range, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.verbs.init.start import FirstStudyJson

_ENVIRONMENT = "{build}/perftrail-env"
_WHEELS = "{build}/perftrail-wheels"
_MOST_COMBINATIONS = 64
_DEFAULT_TIMEOUT_SECONDS = 60.0
"""asv's time limit of a benchmark."""

_CONDA = {"conda": ("conda",), "mamba": ("mamba", "micromamba"), "rattler": ("micromamba", "mamba", "conda")}
_VIRTUAL = ("virtualenv", "venv", "uv")
_SECONDS_TO_START = 60.0
"""Time limit of a Python that prints its version."""

_NEWEST_PIP = "pip>=26"
"""The first version with --uploaded-prior-to; it needs Python 3.9."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?")
_PYTHON = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FIELD = re.compile(r"\{([^{}]*)\}")

_UNUSED: Mapping[str, str] = {
    "version": "the version of the file's format",
    "project_url": "only for asv's pages",
    "show_commit_url": "only for asv's pages",
    "html_dir": "only for asv's pages",
    "hash_length": "only for asv's files",
    "env_dir": "each build has its environment in its own directory",
    "wheel_cache_size": "perftrail keeps builds up to the quota of its store",
    "build_cache_size": "perftrail keeps builds up to the quota of its store",
    "uninstall_command": "each build has its own environment, so nothing is uninstalled",
    "launch_method": "perftrail measures in resident processes, or with resident = false in separate ones",
    "regressions_first_commits": "perftrail searches the range of [source]",
    "results_dir": "perftrail import reads the results that asv has stored there",
    "plugins": "plugins of asv do not run in perftrail",
    "conda_environment_file": "perftrail installs the packages of the matrix",
    "conda_channels": "used only for conda environments",
}
"""Keys of asv without a translation, with the reason."""

_USED = frozenset(
    {
        "project",
        "repo",
        "repo_subdir",
        "branches",
        "dvcs",
        "environment_type",
        "pythons",
        "matrix",
        "include",
        "exclude",
        "benchmark_dir",
        "build_command",
        "install_command",
        "default_benchmark_timeout",
        "install_timeout",
        "regressions_thresholds",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsvStudy:
    """A study that was written from asv's configuration `configuration`; `notes` name what the user must know."""

    file: Path
    configuration: Path
    source: SourceDraft
    steps: tuple[str, ...]
    variants: tuple[str, ...]
    notes: tuple[str, ...]

    def as_json(self) -> FirstStudyJson:
        """Return the findings as `init --json` prints them."""
        return {
            "file": str(self.file),
            "metric": "time",
            "source": {
                "kind": self.source.kind,
                "location": self.source.location,
                "range": self.source.range or None,
                "revisions": self.source.revisions,
                "troubles": list(self.source.troubles),
            },
            "build": {
                "system": "asv",
                "manifest": str(self.configuration),
                "directory": ".",
                "steps": list(self.steps),
                "outputs": [],
                "lacking": [],
                "others": [],
            },
            "benchmark": None,
            "suite": "asv",
            "notes": list(self.notes),
            "to_do": "",
        }


def write_asv_study(configuration: Path, *, output: Path | None, force: bool) -> AsvStudy:
    """Write a study from asv's configuration, by default next to it.

    Raises `UsageError` if a file cannot be read or exists, and `StudyError` with all mistakes of the configuration.
    """
    place = output or configuration.parent
    file = place if place.suffix == ".toml" else place / FILE_NAME
    if file.exists() and not force:
        raise UsageError(f"{file}: a study exists already; overwrite it with --force")
    settings = _Settings(configuration)
    translation = _translate(settings, study=file.parent)
    settings.raise_mistakes()
    write_text(file, "\n".join(translation.lines()) + "\n")
    return AsvStudy(
        file=file,
        configuration=configuration,
        source=translation.source,
        steps=tuple(translation.steps),
        variants=tuple(translation.variants),
        notes=tuple(translation.notes),
    )


class _Settings:
    """The members of the configuration, and the mistakes in them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mistakes: list[Mistake] = []
        try:
            with open_to_read(file) as opened:
                content = opened.read(MOST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}") from error
        if len(content) > MOST_BYTES:
            raise UsageError(f"{file}: is larger than 1 MiB, so it is not asv's configuration")
        try:
            document = parse(content)
        except NotJson as error:
            wrong = f"is not valid JSON: {error.message}"
            raise StudyError([Mistake(file=str(file), line=error.line, key="asv", message=wrong)]) from error
        except FormatError as error:
            raise UsageError(f"{file}: {error}") from error
        if not isinstance(document.value, dict):
            raise UsageError(f"{file}: is not asv's configuration: it must be an object in braces")
        self.members = document.value

    def add(self, at: Located, key: str, message: str) -> None:
        self._mistakes.append(Mistake(file=str(self.file), line=at.line, key=key, message=message))

    def raise_mistakes(self) -> None:
        if self._mistakes:
            raise StudyError(self._mistakes)

    def get(self, key: str) -> Located | None:
        """Return a member; `None` if it is missing or null."""
        found = self.members.get(key)
        return None if found is None or found.value is None else found

    def text(self, key: str, default: str = "") -> str:
        found = self.get(key)
        return default if found is None else self.text_of(found, key)

    def text_of(self, found: Located, key: str) -> str:
        if not isinstance(found.value, str):
            self.add(found, key, "must be a text in quotes")
            return ""
        if not found.value.isprintable():
            self.add(found, key, "must not contain control characters")
            return ""
        return found.value

    def texts(self, key: str) -> tuple[tuple[str, Located], ...]:
        """Return a text or a list of texts, each with its place; nulls are left out."""
        found = self.get(key)
        if found is None:
            return ()
        each = found.value if isinstance(found.value, tuple) else (found,)
        return tuple((self.text_of(one, key), one) for one in each if one.value is not None)

    def seconds(self, key: str) -> float | None:
        found = self.get(key)
        if found is None:
            return None
        value = found.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e7:
            self.add(found, key, "must be a number of seconds above 0")
            return None
        return float(value)

    def table(self, found: Located, key: str) -> dict[str, Located]:
        if not isinstance(found.value, dict):
            self.add(found, key, "must be an object in braces")
            return {}
        return found.value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Combination:
    """One environment of the matrix; a value `None` means absent."""

    python: str
    requirements: Mapping[str, str | None]
    env: Mapping[str, str | None]
    env_nobuild: Mapping[str, str | None]

    @property
    def words(self) -> tuple[str, ...]:
        """The requirements for pip."""
        return tuple(
            _requirement(name, value) for name, value in self.requirements.items() if value is not None
        )

    @property
    def run_env(self) -> dict[str, str]:
        return {name: value for name, value in {**self.env, **self.env_nobuild}.items() if value is not None}

    @property
    def build_env(self) -> dict[str, str]:
        return {name: value for name, value in self.env.items() if value is not None}


@dataclass(slots=True, kw_only=True)
class _Translation:
    """The parts of the study, as they are found."""

    project: str
    configuration: Path
    source: SourceDraft
    suite_path: str = ""
    suite_timeout: float = _DEFAULT_TIMEOUT_SECONDS
    build_timeout: float | None = None
    threshold: float = FindPolicy().smallest_change
    program: str = "perftrail-env/bin/python"
    steps: dict[str, str] = field(default_factory=dict)
    build_env: Mapping[str, str] = field(default_factory=dict)
    run_env: Mapping[str, str] = field(default_factory=dict)
    variants: dict[str, tuple[dict[str, str], dict[str, str], str]] = field(default_factory=dict)
    virtual_instead: str = ""
    comments: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the study file."""
        yield f"# A study of {quoted(self.project)} from asv's {quoted(self.configuration.name)}, by perftrail init."
        yield "# `perftrail check --try 5` tries to build five revisions; `perftrail run` measures the suite."
        yield from self._source()
        yield from ("", "[build]", "# an environment for each build, in the build's directory")
        if self.virtual_instead:
            yield f"# {_one_line(self.virtual_instead)}"
        yield "steps = ["
        for line, why in self.steps.items():
            yield f"    # {why}"
            yield f"    {toml(line)},"
        yield "]"
        if self.build_env:
            yield f"env = {_inline(self.build_env)}"
        if self.build_timeout is not None:
            yield f"# {len(self.steps)} steps, each with asv's install_timeout"
            yield f"timeout = {self.build_timeout:g}"
        for name, (build_env, run_env, missing) in self.variants.items():
            mark = "# " if missing else ""
            yield ""
            if missing:
                yield f"# {missing}"
            yield f"{mark}[variants.{_key(name)}]"
            yield f"{mark}build.env = {_inline(build_env)}"
            if run_env:
                yield f"{mark}run.env = {_inline(run_env)}"
        yield from ("", "[suite.asv]", 'kind = "asv"')
        if self.program:
            yield f"program = {toml(self.program)}"
        yield f"path = {toml(self.suite_path)}"
        yield "# asv's default_benchmark_timeout; a benchmark's own timeout counts, too"
        yield f"timeout = {self.suite_timeout:g}"
        if self.run_env:
            yield f"env = {_inline(self.run_env)}"
        yield from ("", "[find]", "# the smallest change worth finding", f"threshold = {self.threshold:g}")
        if self.comments:
            yield ""
            yield f"# Not translated from {self.configuration.name}:"
            yield from (f"# {_one_line(each)}" for each in self.comments)

    def _source(self) -> Iterator[str]:
        yield from (
            "",
            "[source]",
            f"kind = {toml(self.source.kind)}",
            f"location = {toml(self.source.location)}",
        )
        for trouble in self.source.troubles:
            yield f"# {_one_line(trouble)}"
        if self.source.range:
            yield f"# {_one_line(self.source.range_why)}"
            yield f"range = {toml(self.source.range)}"
        elif self.source.range_why:
            yield f"# {_one_line(self.source.range_why)}"
        yield 'walk = "first-parent"'


def _inline(table: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{_key(name)} = {toml(value)}" for name, value in table.items()) + " }"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def _one_line(text: str) -> str:
    """Return a text for a comment: one line, without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _translate(settings: _Settings, *, study: Path) -> _Translation:
    here = settings.file.parent
    found = _Translation(
        project=settings.text("project", "the project") or "the project",
        configuration=settings.file,
        source=_source(settings, here, study),
    )
    if (timeout := settings.seconds("default_benchmark_timeout")) is not None:
        found.suite_timeout = timeout
    suite = settings.text("benchmark_dir", "benchmarks").rstrip("/") or "benchmarks"
    directory = real_path(here / suite)
    if not directory.is_dir():
        place = settings.get("benchmark_dir") or Located("", 1)
        settings.add(place, "benchmark_dir", f"{quoted(suite)}: no such directory next to the configuration")
    found.suite_path = f"perftrail-asv/{directory.name}"
    combinations = _combinations(settings, found)
    _build(settings, found, combinations, study=study)
    copied = literal(shlex.quote(os.path.relpath(directory, real_path(study))))
    found.steps[f"mkdir {{build}}/perftrail-asv && cp -R {{study}}/{copied} {{build}}/perftrail-asv/"] = (
        "as asv does, every revision runs the benchmarks as they are now; without this step, path may name those of "
        "the revision"
    )
    limit = settings.seconds("install_timeout")
    found.build_timeout = None if limit is None else limit * len(found.steps)
    _thresholds(settings, found)
    for key, value in settings.members.items():
        if key in _UNUSED:
            if key not in ("version", "conda_channels"):
                found.comments.append(f"{key}: {_UNUSED[key]}")
        elif key not in _USED:
            known = suggestion(key, [*_USED, *_UNUSED])
            found.comments.append(
                f"{quoted(key)} (line {value.line}): perftrail does not know this key{known}"
            )
    return found


def _source(settings: _Settings, here: Path, study: Path) -> SourceDraft:
    repo, dvcs = settings.text("repo"), settings.text("dvcs")
    at = settings.get("repo") or Located("", 1)
    if not repo:
        settings.add(at, "repo", "missing: the repository of the project")
    if dvcs not in ("", "git") or repo.startswith("hg+"):
        settings.add(
            settings.get("dvcs") or at,
            "dvcs",
            "perftrail reads git, not Mercurial; convert the repository to git",
        )
    branches = [name for name, _ in settings.texts("branches") if name]
    branch = branches[0] if branches else ""
    others = f"asv also measures {listed(branches[1:], 'and')}; measure them with range or a study each"
    troubles = (others,) if len(branches) > 1 else ()
    if "://" in repo or re.match(r"[\w.-]+@[\w.-]+:", repo):
        why = f'the whole history; to use a part, for example: range = "v1.0..{branch or "HEAD"}"'
        return SourceDraft(kind="git", location=repo.removeprefix("git+"), range_why=why, troubles=troubles)
    directory = here / repo
    if repo and not directory.is_dir():
        settings.add(at, "repo", f"{quoted(repo)}: no such directory, relative to the configuration")
    relative = os.path.relpath(real_path(directory), real_path(study))
    location = relative if relative.startswith(".") else f"./{relative}"
    if not directory.is_dir():
        return SourceDraft(kind="git", location=location)
    with tempfile.TemporaryDirectory(prefix="perftrail-init-") as cache, Launcher() as starter:
        git = local_git(starter, cache=Path(cache))
        draft = git_range(git, directory, location)
        start = draft.range.partition("..")[0]
        words = ("merge-base", "--is-ancestor", start, f"refs/heads/{branch}")
        usable = not branch or (start and not git.run(*words, repository=directory).failed)
    newest = branch if branch and usable and re.fullmatch(r"\w[\w./+-]*", branch) else "HEAD"
    return SourceDraft(
        kind="git",
        location=location,
        range=f"{start}..{newest}" if draft.range else "",
        range_why=draft.range_why,
        revisions=draft.revisions,
        troubles=(*draft.troubles, *troubles),
    )


def _combinations(settings: _Settings, found: _Translation) -> list[_Combination]:
    """Return the environments of the matrix, and note those that asv's rules exclude."""
    pythons = []
    for name, at in settings.texts("pythons"):
        if name and not _PYTHON.fullmatch(name):
            settings.add(at, "pythons", f"{quoted(name)} is not a version of Python, for example 3.12")
        pythons.append(name)
    axes: dict[tuple[str, str], tuple[str | None, ...]] = {}
    matrix = settings.get("matrix")
    if matrix is not None:
        members = settings.table(matrix, "matrix")
        kinds = ("req", "env", "env_nobuild")
        grouped = members if members and set(members) <= set(kinds) else {"req": matrix}
        for kind, table in grouped.items():
            if table.value is not None:
                for name, values in settings.table(table, f"matrix.{kind}").items():
                    axes[kind, name] = _values(settings, kind, name, values)
    own = f"3.{sys.version_info.minor}"
    combinations = [
        _Combination(
            python=str(python),
            requirements=_of_kind("req", axes, values),
            env=_of_kind("env", axes, values),
            env_nobuild=_of_kind("env_nobuild", axes, values),
        )
        for python, *values in itertools.islice(  # a product as one axis of another would be computed whole
            itertools.product(pythons or [own], *axes.values()), _MOST_COMBINATIONS + 1
        )
    ]
    if len(combinations) > _MOST_COMBINATIONS and matrix is not None:
        settings.add(
            matrix, "matrix", f"has more than {_MOST_COMBINATIONS} combinations; name those that matter"
        )
    for key in ("exclude", "include"):
        if settings.get(key) is not None:
            found.comments.append(f"{key}: remove or add variants above instead")
    return combinations[:_MOST_COMBINATIONS]


def _of_kind(
    wanted: str, axes: Iterable[tuple[str, str]], values: Sequence[str | None]
) -> dict[str, str | None]:
    return {name: value for (kind, name), value in zip(axes, values, strict=True) if kind == wanted}


def _values(settings: _Settings, kind: str, name: str, values: Located) -> tuple[str | None, ...]:
    key = f"matrix.{kind}.{_one_line(name)}"
    plain = name.removeprefix("pip+")
    if kind == "req" and not (_NAME.fullmatch(plain) or re.match(r"git\+https://\S+$", plain)):
        settings.add(values, key, f"{quoted(name)} is not the name of a package")
    elif kind != "req" and not re.fullmatch(ENVIRONMENT, name):
        settings.add(values, key, f"{quoted(name)} is not the name of a variable")
    each = values.value if isinstance(values.value, tuple) else (values,)
    result: list[str | None] = []
    for one in each:
        if one.value is None:
            result.append(None)
            continue
        text = settings.text_of(one, key)
        if kind == "req" and not re.fullmatch(r"[A-Za-z0-9.*+!_<>=~, -]*", text):
            settings.add(one, key, f"{quoted(text)} is not a version")
        result.append(text)
    if not result and kind == "req":
        return ("",)  # asv: the newest version
    if not result:
        settings.add(values, key, "has no value; write null for absent, or remove it")
    return tuple(result)


def _requirement(name: str, value: str) -> str:
    """Return a requirement for pip.

    >>> _requirement("pip+numpy", "1.20"), _requirement("numpy", ""), _requirement("numpy", ">=1.2")
    ('numpy==1.20', 'numpy', 'numpy>=1.2')
    """
    plain = name.removeprefix("pip+")
    return f"{plain}{value.replace(' ', '')}" if value[:1] in "<>=~!" else f"{plain}=={value}"


def _conda(settings: _Settings, found: _Translation) -> str:
    """Return the program that makes conda environments; empty for a virtual one, also where no such program is."""
    kind = settings.text("environment_type", "virtualenv") or "virtualenv"
    at = settings.get("environment_type") or Located("", 1)
    tool = next((tool for tool in _CONDA.get(kind, ()) if shutil.which(tool)), "")
    if kind in _CONDA and not tool:
        found.notes.append(
            f"no {listed(_CONDA[kind], 'or')} for environment_type {quoted(kind)}: the study uses virtualenv"
        )
        found.virtual_instead = found.notes[-1]
    elif kind not in (*_CONDA, *_VIRTUAL):
        choices = listed([*_VIRTUAL, *_CONDA], "or")
        settings.add(
            at, "environment_type", f"{quoted(kind)} is not known{suggestion(kind, _VIRTUAL)}; use {choices}"
        )
    return tool


def _build(
    settings: _Settings, found: _Translation, combinations: Sequence[_Combination], *, study: Path
) -> None:
    """Add the steps that make the environment, install the project and the runner."""
    conda = _conda(settings, found)
    uses_uv = not conda and shutil.which("uv") is not None
    one = combinations[0] if len(combinations) == 1 else None
    python = one.python if one else '"$PERFTRAIL_PYTHON"'
    packages = " ".join(map(shlex.quote, one.words)) if one else "$PERFTRAIL_REQUIREMENTS"
    if one:
        found.build_env, found.run_env = one.build_env, one.run_env
    else:
        _add_variants(found, combinations, checks_pythons=not (uses_uv or conda))
    has_commands = settings.get("build_command") is not None or settings.get("install_command") is not None
    dated = not conda and (uses_uv or all(_has_new_pip(each.python) for each in combinations))
    if conda:
        channels = "".join(f" -c {shlex.quote(name)}" for name, _ in settings.texts("conda_channels"))
        create = (
            f"{conda} create --yes --quiet --prefix {_ENVIRONMENT}{literal(channels)} python={python} pip"
        )
        install = _pip(f"{_ENVIRONMENT}/bin/python -m pip install --quiet")
    elif uses_uv:
        seed = " --seed" if has_commands else ""
        create = f"uv venv --quiet{seed} --python {python} {_ENVIRONMENT}"
        install = f"uv pip install --quiet --python {_ENVIRONMENT}/bin/python"
    else:
        is_version = one is None or one.python[:1].isdigit()
        create = f"{'python' if is_version else ''}{python} -m venv {_ENVIRONMENT}"
        install = _pip(f"{_ENVIRONMENT}/bin/python -m pip install --quiet")
    found.steps[create] = "asv's environment"
    if dated and not uses_uv:
        found.steps[f"{install} --upgrade {shlex.quote(_NEWEST_PIP)}"] = (
            "the first pip with --uploaded-prior-to"
        )
    date = ""
    if dated:
        date = " --exclude-newer {date}" if uses_uv else " --uploaded-prior-to {date}"
    else:
        found.notes.append(
            "packages are the newest: install uv, whose --exclude-newer {date} chooses those of a revision's date"
        )
    when = ", in the versions of the revision's date" if dated else ", in the newest versions that fit"
    if any(each.words for each in combinations):
        line = f"{install}{date} {packages}"
        found.steps[line if one else f"set -f; [ -z {_quoted_variable(packages)} ] || {line}"] = (
            f"asv's matrix{when}"
        )
    _install_project(settings, found, install + date, study=study, dated=dated, when=when)
    found.steps[f"{install} asv_runner"] = (
        "what runs the benchmarks, in its newest version; mem_ also needs pympler"
    )


def _quoted_variable(variable: str) -> str:
    return f'"{variable}"'


def _pip(line: str) -> str:
    return f"{line} --disable-pip-version-check"


def _has_new_pip(python: str) -> bool:
    """Whether a version of Python is known to have pip 26.

    >>> [_has_new_pip(each) for each in ("3.8", "3.12", "pypy3.10", "2.7")]
    [False, True, False, False]
    """
    found = re.fullmatch(r"3\.(\d{1,3})(?:\.\d{1,3})?", python)
    return found is not None and int(found[1]) >= 9


def _add_variants(found: _Translation, combinations: Sequence[_Combination], *, checks_pythons: bool) -> None:
    installed = _InstalledPythons()
    if checks_pythons and not any(installed.runs(each.python) for each in combinations):
        own = f"3.{sys.version_info.minor}"
        if installed.runs(own):
            wanted = listed(tuple(dict.fromkeys(each.python for each in combinations)), "or")
            found.notes.append(
                f"Python {wanted} is not installed here, or does not run; the study uses {own}"
            )
            first = combinations[0].python
            combinations = [replace(each, python=own) for each in combinations if each.python == first]
    for each in combinations:
        parts = [f"py{each.python}"]
        for table in (each.requirements, each.env, each.env_nobuild):
            parts += [
                f"{name.removeprefix('pip+')}{value or ''}"
                for name, value in table.items()
                if value is not None
            ]
        name = re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9_+.-]+", "_", "-".join(parts)))[:60].rstrip(".")
        while name in found.variants:
            name += "_"
        build_env = {
            "PERFTRAIL_PYTHON": each.python,
            "PERFTRAIL_REQUIREMENTS": " ".join(each.words),
            **each.build_env,
        }
        missing = checks_pythons and not installed.runs(each.python)
        why = f"python{each.python} is not installed here, or does not run" if missing else ""
        found.variants[name] = (build_env, each.run_env, why)
    if all(why for _, _, why in found.variants.values()):
        found.notes.append(
            "no Python of the matrix is installed here: install one, or uv, and uncomment a variant"
        )


class _InstalledPythons:
    """The versions of Python that run here: a program's file is not enough, as pyenv has one for each known version."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def runs(self, version: str) -> bool:
        """Whether ``pythonVERSION --version`` succeeds."""
        if version not in self._known:
            program = shutil.which(f"python{version}")
            self._known[version] = program is not None and _succeeds((program, "--version"))
        return self._known[version]


def _succeeds(words: tuple[str, ...]) -> bool:
    with tempfile.TemporaryDirectory(prefix="perftrail-init-") as directory, Launcher() as starter:
        command = Command(
            arguments=words,
            environment=dict(os.environ),
            directory=directory,
            timeout_seconds=_SECONDS_TO_START,
        )
        return starter.run(command).ended == Exited(code=0)


def _install_project(
    settings: _Settings, found: _Translation, install: str, *, study: Path, dated: bool, when: str
) -> None:
    subdirectory = settings.text("repo_subdir").strip("/")
    tree = "{build}" + (f"/{literal(shlex.quote(subdirectory))}" if subdirectory else "")
    builds, installs = settings.texts("build_command"), settings.texts("install_command")
    if not builds and not installs:
        found.steps[f"{install} {tree}"] = f"the project with its dependencies{when}"
        return
    prefix = f'export PATH={_ENVIRONMENT}/bin:"$PATH"'
    if dated:
        prefix += " PIP_UPLOADED_PRIOR_TO={date} UV_EXCLUDE_NEWER={date}"
    conf = os.path.relpath(real_path(settings.file.parent), real_path(study))
    values = {
        "build_dir": tree,
        "build_cache_dir": _WHEELS,
        "env_dir": _ENVIRONMENT,
        "env_name": "perftrail",
        "env_type": settings.text("environment_type", "virtualenv"),
        "commit": "{revision}",
        "project": literal(shlex.quote(found.project)),
        "wheel_file": f'"$(echo {_WHEELS}/*.whl)"',
        "conf_dir": f"{{study}}/{literal(shlex.quote(conf))}",
    }
    for key, commands in (("build_command", builds), ("install_command", installs)):
        for command, at in commands:
            line = _shell_line(settings, command, at, key, values, tree)
            if line:
                found.steps[f"{prefix}; mkdir -p {_WHEELS}; {line}"] = f"asv's {key}{when}"
    if not installs:
        found.steps[f"{install} {_WHEELS}/*.whl"] = f"the wheel that build_command built{when}"


def _shell_line(
    settings: _Settings, command: str, at: Located, key: str, values: Mapping[str, str], tree: str
) -> str:
    """Return one of asv's commands as a shell line; asv starts it without a shell, so its words are quoted."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        settings.add(at, key, f"cannot be split into words: {str(error).lower()}")
        return ""
    codes, directory = ("0",), tree
    while words and (found := re.match(r"(return-code|in-dir)=(.*)", words[0])):
        if found[1] == "in-dir":
            directory = _filled(settings, found[2], at, key, values)
        else:
            codes = tuple(found[2].split(","))
        words = words[1:]
    variables = list(itertools.takewhile(lambda word: re.match(r"[A-Za-z_]\w*=", word), words))
    if len(words) == len(variables):
        settings.add(at, key, "names no program to run")
        return ""
    if not all(code == "any" or code.isdigit() for code in codes):
        settings.add(at, key, f"return-code={quoted(','.join(codes))}: write numbers or any")
    texts = [_filled(settings, word, at, key, values) for word in words]
    for index, variable in enumerate(variables):
        name, _, value = variable.partition("=")
        texts[index] = f"{name}={_filled(settings, value, at, key, values)}"
    line = f"cd {directory} && {' '.join(texts)}"
    if "any" in codes:
        return f"{line} || true"
    if codes != ("0",):
        accepted = " || ".join(f'[ "$code" = {int(code)} ]' for code in codes if code.isdigit())
        return f"code=0; {{ {line}; }} || code=$?; {accepted}"
    return line


def _filled(settings: _Settings, word: str, at: Located, key: str, values: Mapping[str, str]) -> str:
    """Return a word of a command, quoted, with asv's names in braces translated."""
    parts, end = [], 0
    for found in _FIELD.finditer(word):
        if found[1] not in values:
            near = suggestion(found[1], values)
            settings.add(
                at, key, f"{quoted(found.group())}: asv has no such name{near}; known: {', '.join(values)}"
            )
            continue
        parts += [_literal_word(word[end : found.start()]), values[found[1]]]
        end = found.end()
    parts.append(_literal_word(word[end:]))
    return "".join(parts) or "''"


def _literal_word(text: str) -> str:
    return literal(shlex.quote(text.replace("{{", "{").replace("}}", "}"))) if text else ""


def _thresholds(settings: _Settings, found: _Translation) -> None:
    table = settings.get("regressions_thresholds")
    if table is None:
        return
    members = settings.table(table, "regressions_thresholds")
    for pattern, value in members.items():
        share = value.value
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            settings.add(
                value, f"regressions_thresholds.{_one_line(pattern)}", "must be a number between 0 and 1"
            )
        elif pattern in (".*", ""):
            found.threshold = float(share)
        else:
            found.comments.append(
                f"regressions_thresholds {quoted(pattern)} = {share:g}: a study has one threshold for all benchmarks"
            )


def asv_lines(study: AsvStudy) -> Iterable[tuple[str, str]]:
    """Return what init prints about a study from asv's configuration, each with its heading."""
    span = f" {study.source.range}" if study.source.range else ""
    count = f", {study.source.revisions} revisions" if study.source.revisions else ""
    yield "wrote", str(study.file)
    yield "history", f"{study.source.kind} {study.source.location}{span}{count}"
    yield "build", f"{len(study.steps)} steps from {study.configuration}"
    if study.variants:
        yield "variants", ", ".join(study.variants)
    yield from (("note", note) for note in (*study.source.troubles, *study.notes))
