"""Detect Python packages: pyproject.toml, or setup.py."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perftrail.verbs.init.draft import (
    PLACEHOLDER,
    BenchmarkDraft,
    BuildDraft,
    Step,
    placeholder_benchmark,
    script_benchmark,
    table,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    benchmark = _choose_benchmark(tree, table(project, "project", "scripts"), module, manifest)
    return BuildDraft(
        system="pyproject",
        manifest=manifest,
        tools=("python3",),
        steps=(
            Step(
                line=f"python3 -m pip install --quiet --disable-pip-version-check --no-compile --target {_SITE} .",
                why="the package with its dependencies, isolated from other installed packages; pins no versions",
            ),
            Step(
                line=f"python3 -m compileall -q --invalidation-mode unchecked-hash {_SITE}",
                why="compiled once, so that no start includes compilation",
            ),
        ),
        outputs=(tree.path(f"{_SITE}/{module}"), *benchmark.uses) if module else (),
        outputs_why="revisions with equal packages are measured once; add dependencies if they matter",
        benchmark=benchmark,
        no_relink_reason="every pair of invocations uses random paths and hash seeds, which matter to Python",
    )


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
    folded = re.sub(r"[-_.]+", "_", name).lower()
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
