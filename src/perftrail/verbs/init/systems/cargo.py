"""Detect Cargo."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from perftrail.verbs.init.draft import (
    LLD_SHUFFLES,
    BenchmarkDraft,
    BuildDraft,
    PrintedMetric,
    Program,
    Step,
    choose_program,
    is_safe_path,
    program_benchmark,
    table,
    text,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.verbs.init.draft import Tree

MANIFEST = "Cargo.toml"
_OWN_FLAGS = (".cargo/config.toml", ".cargo/config")
"""Files with a crate's own flags, which RUSTFLAGS would replace."""

_LENIENT = {"RUSTFLAGS": "--cap-lints=warn"}
_LENIENT_HINT = "--cap-lints: warnings of a newer compiler do not stop builds of old revisions"
_OWN_HINT = "RUSTFLAGS here would replace the flags in"
_PER_ITERATION = PrintedMetric(pattern=r"bench:\s+([0-9]+) ns/iter", unit="ns")


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
            if (found := _own_benchmark(tree, directory, crate)) is not None
        ),
        None,
    )
    everything = " --workspace" if len(crates) > 1 else ""
    build = Step(
        line=f"cargo build --release{locked}{everything}",
        why="optimised"
        + (
            "; with the versions that the revision pins"
            if locked
            else "; no versions are pinned: see Cargo.lock"
        ),
    )
    benchmark = own or (program_benchmark(tree, program, option="--version") if program else _tests(tree))
    prebuild = "cargo bench --no-run" if own else "cargo test --release --no-run" if program is None else ""
    prebuild_step = Step(
        line=f"{prebuild}{locked}{everything}", why="built here, so that no start includes the build"
    )
    own_flags = tree.first(*_OWN_FLAGS)
    env = {} if own_flags else _LENIENT
    return BuildDraft(
        system="cargo",
        manifest=MANIFEST,
        tools=("cargo",),
        steps=(build, prebuild_step) if prebuild else (build,),
        outputs=benchmark.uses,
        outputs_why="revisions with equal programs are measured once",
        env=env,
        benchmark=benchmark if benchmark.uses else replace(benchmark, env=env),
        hints=(f"{_OWN_HINT} {own_flags}" if own_flags else _LENIENT_HINT,),
        relink=_relink(program, crates, tree, locked) if program is not None and benchmark.uses else (),
    )


def _relink(
    program: Program, crates: Mapping[str, Mapping[str, Any]], tree: Tree, locked: str
) -> tuple[Step, ...]:
    """Return how to relink a binary; cargo recompiles the crate itself for that, but no dependency."""
    crate = next(
        (crate for directory, crate in crates.items() if program in _programs(tree, directory, crate)),
        crates[""],
    )
    package = text(table(crate, "package").get("name"))
    which = f" --package {package}" if len(crates) > 1 and is_safe_path(package) else ""
    flags = " ".join(f'"-Clink-arg={flag}"' for flag in LLD_SHUFFLES.split())
    return (
        Step(
            line=f"cargo rustc --release{locked}{which} --bin {shlex.quote(program.name)} -- {flags}",
            why="lld reorders functions; cargo recompiles this crate for that, but no dependency",
        ),
    )


def _read(tree: Tree, path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(tree.text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _programs(tree: Tree, directory: str, crate: Mapping[str, Any]) -> list[Program]:
    """Return the binaries of one crate: those that it names, its main.rs, and those below src/bin."""
    found = [text(each.get("name")) for each in _tables(crate.get("bin"))]
    if _path_in(directory, "src/main.rs") in tree:
        found.append(text(table(crate, "package").get("name")))
    for path in tree.matching(_path_in(directory, "src/bin/*.rs")):
        here = PurePosixPath(path)
        found.append(here.parent.name if here.name == "main.rs" else here.stem)
    return [Program(name=name, path=f"target/release/{name}") for name in dict.fromkeys(found) if name]


def _own_benchmark(tree: Tree, directory: str, crate: Mapping[str, Any]) -> BenchmarkDraft | None:
    """Return the first benchmark of a crate that runs with a stable compiler, with its own harness."""
    own = {text(each.get("name")) for each in _tables(crate.get("bench")) if each.get("harness") is False}
    name = next((each for each in sorted(own) if is_safe_path(each)), None)
    if name is None:
        return None
    command = f"cargo bench --manifest-path {tree.word(_path_in(directory, MANIFEST))} --bench {name}"
    if "criterion" in table(crate, "dev-dependencies"):
        return BenchmarkDraft(
            name="bench",
            command=f"{command} -- --output-format bencher",
            why="a benchmark of this crate; it chooses its duration: use the metrics that it prints, not wall",
            printed={"per_iteration": _PER_ITERATION},
        )
    return BenchmarkDraft(name="bench", command=command, why="a benchmark of this crate")


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
