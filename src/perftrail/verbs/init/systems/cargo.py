"""Detect Cargo."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perftrail.verbs.init.draft import (
    BenchmarkDraft,
    BuildDraft,
    Program,
    Step,
    SuiteDraft,
    choose_program,
    is_safe_path,
    program_benchmark,
    table,
    text,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perftrail.model.suite import SuiteKind
    from perftrail.verbs.init.draft import Tree

MANIFEST = "Cargo.toml"
_OWN_FLAGS = (".cargo/config.toml", ".cargo/config")
"""Files with a crate's own flags, which RUSTFLAGS would replace."""

_LENIENT = {"RUSTFLAGS": "--cap-lints=warn"}
_LENIENT_HINT = "--cap-lints: warnings of a newer compiler do not stop builds of old revisions"
_OWN_HINT = "RUSTFLAGS here would replace the flags in"
_DOCUMENTS = ("*.md", "LICENSE*", "COPYING*")
_DOCUMENT_DIRECTORIES = (".github", "doc", "docs")

_COPIES = "perftrail-bench"
"""Directory of copies of benchmark programs: cargo's own names contain a hash."""

_EXECUTABLE = r's/.*"executable":"\([^"]*\)".*/\1/p'
"""Expression of sed that prints the program of cargo's messages."""


def detect(tree: Tree) -> BuildDraft | None:
    """Read the programs and benchmarks of a crate, or of a workspace's crates."""
    if MANIFEST not in tree:
        return None
    crates = {"": _read(tree, MANIFEST)}
    for pattern in texts_of(table(crates[""], "workspace").get("members")):
        for path in tree.matching(f"{pattern.removeprefix('./').rstrip('/')}/{MANIFEST}"):
            crates[path.removesuffix(f"/{MANIFEST}")] = _read(tree, path)
    programs = [
        program for directory, crate in crates.items() for program in _programs(tree, directory, crate)
    ]
    program = choose_program(programs, tree.name)
    locked = " --locked" if "Cargo.lock" in tree else ""
    own = next(
        (
            found
            for directory, crate in crates.items()
            if (found := _own_benchmark(tree, directory, crate, locked)) is not None
        ),
        None,
    )
    everything = " --workspace" if len(crates) > 1 else ""
    pinned = (
        "with the versions that the revision pins" if locked else "no versions are pinned: see Cargo.lock"
    )
    build = Step(line=f"cargo build --release{locked}{everything}", why=f"optimised; {pinned}")
    steps: tuple[Step, ...] = (build,)
    if own is not None:
        benchmark, steps = own.benchmark, (replace(own.step, why=f"{own.step.why}; {pinned}"),)
    elif program is not None:
        benchmark = program_benchmark(tree, program, option="--version")
    else:
        tests = f"cargo test --release --no-run{locked}{everything}"
        benchmark = _tests(tree)
        steps = (build, Step(line=tests, why="built here, so that no start includes the build"))
    own_flags = tree.first(*_OWN_FLAGS)
    env = {} if own_flags else _LENIENT
    suite = _suite(tree, crates)
    if suite is not None:
        steps = _suite_steps(locked, pinned)
    return BuildDraft(
        system="cargo",
        manifest=MANIFEST,
        tools=("cargo",),
        steps=steps,
        outputs=benchmark.uses if suite is None else (tree.path(f"{_COPIES}/**"),),
        outputs_why="revisions with equal programs are measured once",
        unaffected_by=_unaffected(tree, crates),
        unaffected_why="cargo compiles none of these: perftrail builds revisions that differ only in them once; "
        "remove a path that the code includes, for example with include_str!",
        env=env,
        benchmark=benchmark if benchmark.uses else replace(benchmark, env=env),
        hints=(f"{_OWN_HINT} {own_flags}" if own_flags else _LENIENT_HINT,),
        suite=suite,
    )


_MESSAGES = f"{_COPIES}.json"
"""File with cargo's messages, which name the built programs."""

_COPY = (
    'sed -n \'s|.*"manifest_path":"\\([^"]*\\)/Cargo.toml","target":{"kind":\\["bench"\\],[^}]*'
    '"name":"\\([^"]*\\)".*"executable":"\\([^"]*\\)".*|\\1\\t\\2\\t\\3|p\' '
    f"{_MESSAGES} | while IFS=\"$(printf '\\t')\" read -r package name program; do "
    f'to="{_COPIES}${{package#"$(pwd -P)"}}"; mkdir -p "$to" && cp "$program" "$to/$name" || exit 1; done'
)
"""Copies each program into a directory named like its package, under a name without cargo's hash."""

_SUITES: tuple[SuiteKind, ...] = ("criterion", "divan")


def _suite(tree: Tree, crates: Mapping[str, Mapping[str, Any]]) -> SuiteDraft | None:
    """Return the suite of the crates whose own benchmarks use criterion or divan."""
    for kind in _SUITES:
        if any(
            kind in _used(crate) and any(each.get("harness") is False for each in _tables(crate.get("bench")))
            for crate in crates.values()
        ):
            why = f"every benchmark of these crates that uses {kind}"
            return SuiteDraft(kind=kind, program=(tree.path(f"{_COPIES}/**/*"),), why=why)
    return None


def _used(crate: Mapping[str, Any]) -> set[str]:
    """Return the dependencies of a crate and of its tests, on any target."""
    on_targets = [each for each in table(crate, "target").values() if isinstance(each, dict)]
    return {
        name
        for each in (crate, *on_targets)
        for kind in ("dependencies", "dev-dependencies")
        for name in table(each, kind)
    }


def _suite_steps(locked: str, pinned: str) -> tuple[Step, ...]:
    return (
        Step(
            line=f"rm -rf {_COPIES}; cargo bench --no-run{locked} --workspace --benches "
            f"--message-format=json-render-diagnostics > {_MESSAGES}",
            why=f"the programs of all benchmarks; {pinned}",
        ),
        Step(
            line=_COPY, why="each program under a name without cargo's hash, in the directory of its package"
        ),
    )


def _unaffected(tree: Tree, crates: Iterable[str]) -> tuple[str, ...]:
    """Return globs of the tree's documents and CI settings, which no crate's code is part of."""
    files = [pattern for pattern in _DOCUMENTS if any("/" not in path for path in tree.matching(pattern))]
    directories = [
        f"{name}/**"
        for name in _DOCUMENT_DIRECTORIES
        if tree.has_directory(name) and not any(f"{each}/".startswith(f"{name}/") for each in crates)
    ]
    return tuple(map(tree.path, (*files, *directories)))


def _read(tree: Tree, path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(tree.text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _programs(tree: Tree, directory: str, crate: Mapping[str, Any]) -> list[Program]:
    """Return the binaries of one crate: those that it names, and those that cargo infers from its files."""
    package, named = table(crate, "package"), _tables(crate.get("bin"))
    found = {text(each.get("name")): not each.get("required-features") for each in named}
    # Editions after 2015 also infer programs if the crate names some.
    is_inferred = package.get("autobins", not named or package.get("edition", "2015") != "2015")
    if is_inferred is not False:
        taken = {_path_in(directory, text(each.get("path"))) for each in named}
        for path in (_path_in(directory, "src/main.rs"), *tree.matching(_path_in(directory, "src/bin/*.rs"))):
            if path in tree and path not in taken and (name := _inferred_name(path, directory, package)):
                found.setdefault(name, True)
    return [
        Program(name=name, path=f"target/release/{name}", unconditional=unconditional)
        for name, unconditional in found.items()
        if name
    ]


def _inferred_name(path: str, directory: str, package: Mapping[str, Any]) -> str:
    """Return the program that cargo infers from a source file; empty for a module of a program."""
    within = path.removeprefix(_path_in(directory, "src/"))
    if within == "main.rs":
        return text(package.get("name"))
    parts = within.removeprefix("bin/").split("/")
    if len(parts) == 1:
        return parts[0].removesuffix(".rs")
    return parts[0] if parts[1:] == ["main.rs"] else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnBenchmark:
    """A benchmark of a crate, and the step that builds it."""

    step: Step
    benchmark: BenchmarkDraft


def _own_benchmark(tree: Tree, directory: str, crate: Mapping[str, Any], locked: str) -> _OwnBenchmark | None:
    """Return the first benchmark of a crate that runs with a stable compiler, with its own harness."""
    own = {
        text(each.get("name")): each for each in _tables(crate.get("bench")) if each.get("harness") is False
    }
    name = next((each for each in sorted(own) if is_safe_path(each)), None)
    if name is None:
        return None
    package = text(table(crate, "package").get("name"))
    which = f" --package {package}" if directory and is_safe_path(package) else ""
    building = f"cargo bench --no-run{locked}{which} --bench {name}"
    used = table(crate, "dev-dependencies")
    if any(each.startswith("iai") for each in used):
        manifest = tree.word(_path_in(directory, MANIFEST))
        return _OwnBenchmark(
            step=Step(line=building, why="built here, so that no start includes the build"),
            benchmark=BenchmarkDraft(
                name="bench",
                command=f"cargo bench --manifest-path {manifest} --bench {name}",
                why="a benchmark of this crate",
            ),
        )
    program = f"{_COPIES}/{name}"
    executable = f"{building} --message-format=json-render-diagnostics | sed -n '{_EXECUTABLE}'"
    step = Step(
        line=f'mkdir -p {_COPIES} && cp "$({executable})" {program}',
        why="the benchmark's program, under a name without cargo's hash",
    )
    command, path = f"{tree.word(program)} --bench", tree.path(program)
    benchmark = BenchmarkDraft(name="bench", command=command, why="a benchmark of this crate", uses=(path,))
    return _OwnBenchmark(step=step, benchmark=benchmark)


def _tests(tree: Tree) -> BenchmarkDraft:
    return BenchmarkDraft(
        name="bench",
        command=f"cargo test --release --quiet --manifest-path {tree.word(MANIFEST)}",
        why="no benchmark and no program was found: the tests are real work; replace them by a benchmark",
    )


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _path_in(directory: str, path: str) -> str:
    return f"{directory}/{path}".lstrip("/")
