"""Detect npm packages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from perftrail.verbs.init.draft import (
    PLACEHOLDER,
    BenchmarkDraft,
    BuildDraft,
    Step,
    is_safe_path,
    placeholder_benchmark,
    script_benchmark,
    table,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.verbs.init.draft import Tree

MANIFEST = "package.json"
_BENCHMARK_SCRIPTS = ("bench", "benchmark", "benchmarks", "perf")
_HINTS = ('outputs = ["dist"] measures revisions with equal dist once',)
_BUILD_SCRIPTS = ("preinstall", "install", "postinstall", "prepare", "build")
"""Scripts that build the package itself, which may need its development dependencies."""

_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")


def detect(tree: Tree) -> BuildDraft | None:
    """Read the scripts and programs of a package; a package.json only for tools does not count."""
    if MANIFEST not in tree:
        return None
    package = _read(tree.text(MANIFEST))
    scripts = table(package, "scripts")
    benchmark = _choose_benchmark(tree, package, scripts)
    if benchmark is None:
        return None
    return BuildDraft(
        system="npm",
        manifest=MANIFEST,
        tools=("node", "npm"),
        steps=_steps(tree, package, scripts, with_development=not benchmark.placeholder),
        benchmark=benchmark,
        hints=_HINTS if "build" in scripts else (),
    )


def _steps(
    tree: Tree, package: Mapping[str, Any], scripts: Mapping[str, Any], *, with_development: bool
) -> tuple[Step, ...]:
    """Return the install steps, `with_development` dependencies or if the package's build needs these."""
    developing = with_development or any(script in scripts for script in _BUILD_SCRIPTS)
    kinds = ("dependencies", "optionalDependencies", "peerDependencies")
    needed = any(table(package, kind) for kind in kinds + ("devDependencies",) * developing)
    only = "" if developing or not table(package, "devDependencies") else " --omit=dev"
    less = "; without --omit=dev also the development dependencies" if only else ""
    steps = []
    if needed and tree.first(*_LOCKS):
        why = f"with the versions that the revision pins{less}"
        steps.append(Step(line=f"npm ci --no-audit --no-fund{only}", why=why))
    elif needed:
        why = f"no versions are pinned: an old revision gets today's newest versions{less}"
        steps.append(Step(line=f"npm install --no-audit --no-fund --no-package-lock{only}", why=why))
    if "build" in scripts:
        steps.append(Step(line="npm run build", why="the package's own build"))
    return tuple(steps)


def _choose_benchmark(
    tree: Tree, package: Mapping[str, Any], scripts: Mapping[str, Any]
) -> BenchmarkDraft | None:
    script = next((each for each in _BENCHMARK_SCRIPTS if each in scripts), None)
    if script is not None:
        why = "the benchmark script of this package; running node directly, without npm, measures better"
        return BenchmarkDraft(
            name="bench", command=f"npm --prefix {tree.word()} run --silent {script}", why=why
        )
    found = script_benchmark(tree, (".js", ".mjs", ".cjs"))
    if found is not None:
        return found
    program = _program(package)
    if program:
        command = f"node {tree.word(program)} --version"
        return BenchmarkDraft(name="start", command=command, why=PLACEHOLDER, placeholder=True)
    main = text(package.get("main")) or (tree.first("index.js", "index.mjs") or "")
    main = main.removeprefix("./")
    if main and is_safe_path(main):
        command = f"node {tree.word(main)}"
        why = "a placeholder: it only loads the package; replace it by a script that uses the package"
        return BenchmarkDraft(name="start", command=command, why=why, placeholder=True)
    if package.get("private") is True and not scripts:
        return None
    return placeholder_benchmark(tree, MANIFEST)


def _program(package: Mapping[str, Any]) -> str:
    programs = package.get("bin")
    found = text(next(iter(programs.values()), "")) if isinstance(programs, dict) else text(programs)
    found = found.removeprefix("./")
    return found if found and is_safe_path(found) else ""


def _read(content: str) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
