"""The programs of this machine that recipes and benchmarks name: their versions, paths and contents."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of_files
from perftrail.builds.environment import search_path
from perftrail.file_tree import temporary_directory
from perftrail.model.measurement import MISSING_TOOL
from perftrail.model.process import Command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perftrail.ports import Starter

VERSION_SECONDS = 20.0

_IMPLICIT_TOOLS = ("cc", "ld")
"""Tools that nearly every recipe uses without naming them."""

_ARGUMENTS = {
    **dict.fromkeys(
        (
            "as", "autoconf", "automake", "bazel", "c++", "cabal", "cargo", "cc", "clang", "clang++", "cmake",
            "dotnet", "g++", "gcc", "gfortran", "ghc", "javac", "ld", "ld.gold", "ld.lld", "lld", "libtool",
            "make", "meson", "mold", "musl-gcc", "ninja", "node", "npm", "ocamlc", "ocamlfind", "ocamlopt",
            "m4", "perl", "pip", "python", "python3", "ruby", "rustc", "scons", "swiftc", "tcc", "uv",
        ),
        "--version",
    ),
    "go": "version",
    "java": "-version",
    "zig": "version",
}  # fmt: skip
"""Tools that state their version, with the argument that prints it: a script that starts another one, for example."""

_WORD = re.compile(r"[A-Za-z0-9_+.-]+")
_PROGRAM = re.compile(r"(?<![\w/{.+-])[A-Za-z0-9_][\w+.-]*(?![\w/}.+-])")
"""A word that a shell would search in the search path: not a part of a path or a placeholder."""

_VERSION_SUFFIX = re.compile(r"-?\d+(\.\d+)*$")

VersionQuery = Callable[[str, str], str]
"""Runs a program with one argument and returns its output."""


class Toolchain:
    """The programs of this machine, each identified once by its version, path and content.

    The path counts, because it decides about the packages of a virtual environment; below the study's directory, it is
    relative to `study`.
    """

    def __init__(self, query: VersionQuery, *, path: str, study: Path | None = None) -> None:
        self._query = query
        self._path = path
        self._study = study
        self._known: dict[tuple[str, str], str] = {}

    def fingerprint(self, texts: Iterable[str]) -> list[str]:
        """Return the machine's kind and the identities of the programs that shell lines and variables name.

        A tool that states its version is returned also if it is missing here.
        """
        lines = tuple(texts)
        tools = {word for text in lines for word in _WORD.findall(text) if _arguments(word)}
        try:
            library = os.confstr("CS_GNU_LIBC_VERSION") or ""
        except (ValueError, OSError):
            library = "musl"  # it does not know this name
        found = map(self._identity, sorted({*tools, *_programs(lines), *_IMPLICIT_TOOLS}))
        return [platform.machine(), library, *filter(None, found)]

    def programs(self, texts: Iterable[str], *, path: str = "") -> list[str]:
        """Return the identities of the programs in the search path, or in another `path`, that texts name."""
        found = (self._identity(each, path) for each in sorted(_programs(texts)))
        return [each for each in found if each and not each.endswith(MISSING_TOOL)]

    def _identity(self, tool: str, path: str = "") -> str:
        """Return a tool's version, if it states one, with its path and content; empty for a word without a program."""
        path = path or self._path
        name, arguments = (tool, path), _arguments(tool)
        if name not in self._known:
            program = shutil.which(tool, path=path)
            if program is None:
                self._known[name] = f"{tool}{MISSING_TOOL}" if arguments else ""
            else:
                version = f"{tool}: {self._query(program, arguments).rstrip()}" if arguments else tool
                content = content_of_files([program], below=Path("/"))[:12]
                where = Path(program)
                if self._study and where.is_relative_to(self._study):
                    where = Path("{study}", where.relative_to(self._study))
                self._known[name] = f"{version}\n{tool} is {where}, content {content}"
        return self._known[name]


def local_tools(starter: Starter, *, study: Path) -> Toolchain:
    """Return the tools of this machine, found in the search path of builds."""
    environment = {"PATH": search_path(), "LC_ALL": "C.UTF-8"}
    return Toolchain(
        lambda program, argument: version_of(starter, program, argument, environment),
        path=search_path(),
        study=study,
    )


def _programs(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _PROGRAM.findall(text)}


def _arguments(tool: str) -> str:
    return _ARGUMENTS.get(tool) or _ARGUMENTS.get(_VERSION_SUFFIX.sub("", tool), "")


def version_of(starter: Starter, program: str, argument: str, environment: Mapping[str, str]) -> str:
    """Return the complete output of a program's version query."""
    with temporary_directory() as scratch:
        output = scratch / "output"
        starter.run(
            Command(
                arguments=(program, argument),
                environment=environment,
                directory=str(scratch),
                stdout=str(output),
                stderr=str(output),
                output_cap_bytes=1 << 16,
                timeout_seconds=VERSION_SECONDS,
                tree_memory="off",
            )
        )
        return output.read_text("utf-8", errors="replace") if output.exists() else ""
