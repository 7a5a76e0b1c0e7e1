"""Detect Python packages: pyproject.toml, or setup.py."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perftrail.model.placeholders import literal
from perftrail.verbs.init.draft import (
    BENCHMARK_NAME,
    PLACEHOLDER,
    BenchmarkDraft,
    BuildDraft,
    Step,
    SuiteDraft,
    is_safe_path,
    placeholder_benchmark,
    script_benchmark,
    table,
    text,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.verbs.init.draft import Tree

_SITE = "perftrail-site"
_NOT_THE_PACKAGE = frozenset({"test", "tests", "docs", "examples", "bench", "benchmarks", "scripts", "tools"})


def detect(tree: Tree) -> BuildDraft | None:
    """Read the package of a tree that pip can install; a pyproject.toml with only tool settings does not count."""
    project = _read(tree.text("pyproject.toml"))
    described = bool(table(project, "project") or table(project, "build-system"))
    manifest = "pyproject.toml" if described else tree.first("setup.py")
    if manifest is None:
        return None
    name = text(table(project, "project").get("name")) or text(table(project, "tool", "poetry").get("name"))
    module = _module(tree, name or tree.name)
    suite = _suite(tree)
    benchmark = _choose_benchmark(tree, table(project, "project", "scripts"), module, manifest)
    also = _packages(tree, suite, project) if suite else ""
    return BuildDraft(
        system="pyproject",
        manifest=manifest,
        tools=("python3",),
        steps=(
            Step(
                line=f"python3 -m pip install --quiet --disable-pip-version-check --no-compile --target {_SITE} ."
                f"{also}",
                why="the package with its dependencies, isolated from other installed packages; pins no versions",
            ),
            Step(
                line=f"python3 -m compileall -q --invalidation-mode unchecked-hash {_SITE}",
                why="compiled once, so that no start includes compilation",
            ),
        ),
        outputs=_outputs(tree, module, benchmark, suite),
        outputs_why="revisions with equal packages are measured once; add dependencies if they matter",
        benchmark=benchmark,
        notes=() if suite else _notes(tree),
        suite=suite,
    )


_TOOLS = {"pytest-benchmark": ("pytest", "pytest-benchmark"), "asv": ("asv_runner",)}
"""Packages that run a suite, for pip."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)[\w.\[\], <>=!~;'\"()*+-]*", re.ASCII)
"""Requirements that pip reads as such: a name, perhaps with extras, versions and markers; no address and no option."""

_MOST_PACKAGES, _LONGEST_REQUIREMENT = 50, 500


def _packages(tree: Tree, suite: SuiteDraft, project: Mapping[str, Any]) -> str:
    """Return the packages that a suite needs, as words for pip.

    They are the tool, and those of the project's extras and dependency groups that are for benchmarks, or whose name
    occurs in the files of the suite; of an extra, also if an import has its name.
    """
    texts = _texts(tree, suite)
    used = frozenset(word for each in texts for word in re.findall(r"\w+", each))
    imports = frozenset(
        word
        for each in texts
        for line in re.findall(r"^[ \t]*(?:from|import)\s.*", each, re.MULTILINE)
        for word in re.findall(r"\w+", line)
    )
    own = _import_name(text(table(project, "project").get("name")))
    chosen = {_import_name(each): each for each in _TOOLS[suite.kind]}
    extras, groups = table(project, "project", "optional-dependencies"), table(project, "dependency-groups")
    for group, requirements in (*extras.items(), *groups.items()):
        whole = BENCHMARK_NAME.search(group) or (group in extras and _import_name(group) in imports)
        for requirement in texts_of(requirements):
            found = _REQUIREMENT.fullmatch(requirement) if len(requirement) <= _LONGEST_REQUIREMENT else None
            name = _import_name(found[1]) if found else own
            if name != own and (whole or name in used):
                chosen.setdefault(name, requirement)
    return "".join(f" {literal(shlex.quote(each))}" for each in list(chosen.values())[:_MOST_PACKAGES])


def _texts(tree: Tree, suite: SuiteDraft) -> list[str]:
    """Return a suite's files, and the conftest.py files that they use, in lower case."""
    path = suite.path.removeprefix(f"{tree.prefix}/" if tree.prefix else "")
    return [
        tree.text(file).lower()
        for file in tree.texts
        if path in ("", file)
        or file.startswith(f"{path}/")
        or (file.endswith("conftest.py") and f"{path}/".startswith(file.removesuffix("conftest.py")))
    ]


def _import_name(name: str) -> str:
    """Return the name by which programs usually import a package.

    >>> _import_name("Foo-Bar.baz")
    'foo_bar_baz'
    """
    return re.sub(r"[-_.]+", "_", name).lower()


def _suite(tree: Tree) -> SuiteDraft | None:
    """Return the suite of a tree: the tests that use pytest-benchmark's fixture, else the benchmarks of asv."""
    env = {"PYTHONPATH": f"{{build}}/{tree.path(_SITE)}", "PYTHONDONTWRITEBYTECODE": "1"}
    files = [path for path in tree if path.endswith(".py") and _uses_fixture(tree.text(path))]
    if files and all(map(is_safe_path, files)):
        directories = [path.split("/")[:-1] for path in files]
        common = files[0] if len(files) == 1 else "/".join(_common(directories))
        why = "every test that uses the fixture of pytest-benchmark"
        return SuiteDraft(kind="pytest-benchmark", path=tree.path(common), env=env, why=why)
    settings = next((path for path in _ASV if path in tree), None)
    if settings is None:
        return None
    found = re.search(r'"benchmark_dir"\s*:\s*"([^"]*)"', tree.text(settings))
    base = settings.rpartition("/")[0]
    directory = "/".join(
        part for part in (base, found[1] if found else "benchmarks") if part not in ("", ".")
    )
    if not is_safe_path(directory) or not tree.has_directory(directory):
        return None
    return SuiteDraft(kind="asv", path=tree.path(directory), env=env, why=f"the benchmarks of {settings}")


def _common(directories: Sequence[Sequence[str]]) -> list[str]:
    """Return the parts that all paths begin with.

    >>> _common([["a", "b"], ["a", "c"]])
    ['a']
    """
    shortest = min(directories, key=len)
    length = next(
        (at for at, part in enumerate(shortest) if any(each[at] != part for each in directories)),
        len(shortest),
    )
    return list(shortest[:length])


def _uses_fixture(source: str) -> bool:
    """Return whether a file has a test with the fixture ``benchmark``, with or without parameters."""
    if "benchmark" not in source:
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        isinstance(each, ast.FunctionDef)
        and each.name.startswith("test")
        and "benchmark" in {argument.arg for argument in each.args.args}
        for each in ast.walk(tree)
    )


def _outputs(tree: Tree, module: str, benchmark: BenchmarkDraft, suite: SuiteDraft | None) -> tuple[str, ...]:
    """Return the installed package and what runs it; empty if the package is unknown."""
    if not module:
        return ()
    used = benchmark.uses if suite is None else ((suite.path,) if suite.path else ())
    return () if suite is not None and not suite.path else (tree.path(f"{_SITE}/{module}"), *used)


def _notes(tree: Tree) -> tuple[str, ...]:
    """Return how to measure or import a suite of asv, which the draft does not run."""
    settings = next((path for path in _ASV if path in tree), None)
    if settings is None:
        return ()
    return (
        f"{settings}: perftrail did not find its benchmark_dir; write a [suite.NAME] with kind asv and its path; "
        "perftrail import RESULTS reads asv's results",
    )


_ASV = ("asv.conf.json", "asv.conf.jsonc", "benchmarks/asv.conf.json", "asv_bench/asv.conf.json")
"""Usual places of asv's settings."""


def _choose_benchmark(tree: Tree, scripts: Mapping[str, Any], module: str, manifest: str) -> BenchmarkDraft:
    env = {"PYTHONPATH": f"{{build}}/{tree.path(_SITE)}"}
    script = script_benchmark(tree, (".py",))
    if script is not None:
        return replace(script, env=env)
    program = next((each for each in scripts if re.fullmatch(r"\w[\w.-]*", each)), None)
    if program is not None:
        command = f"python3 {tree.word(f'{_SITE}/bin/{program}')} --version"
        return BenchmarkDraft(name="start", command=command, why=PLACEHOLDER, placeholder=True, env=env)
    if module:
        why = "a placeholder: it only imports the package; replace it by a script that uses the package"
        command = f"python3 -c 'import {module.removesuffix('.py')}'"
        return BenchmarkDraft(name="start", command=command, why=why, placeholder=True, env=env)
    return placeholder_benchmark(tree, manifest)


def _module(tree: Tree, name: str) -> str:
    """Return the package or module to import, at its installed path; empty if there is none."""
    folded = _import_name(name)
    for root in ("", "src/", "lib/"):
        for path in (f"{folded}/__init__.py", f"{folded}.py"):
            if f"{root}{path}" in tree:
                return path.removesuffix("/__init__.py")
    packages = [
        path.split("/")[-2]
        for path in (*tree.matching("src/*/__init__.py"), *tree.matching("*/__init__.py"))
        if path.removeprefix("src/").count("/") == 1
    ]
    return next((each for each in packages if each not in _NOT_THE_PACKAGE and each.isidentifier()), "")


def _read(content: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
