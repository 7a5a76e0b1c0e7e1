"""The toolchain of a recipe: the versions of the tools that it names, and of the machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

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
"""Tools whose version can change a build, with the argument that prints the version."""

_WORD = re.compile(r"[A-Za-z0-9_+.-]+")
_VERSION_SUFFIX = re.compile(r"-?\d+(\.\d+)*$")

VersionQuery = Callable[[str, str], str]
"""Runs a program with one argument and returns its output."""


class Toolchain:
    """The versions of tools, each determined once."""

    def __init__(self, query: VersionQuery, *, path: str) -> None:
        self._query = query
        self._path = path
        self._known: dict[str, str] = {}

    def fingerprint(self, texts: Iterable[str]) -> list[str]:
        """Return the machine's kind and the versions of the tools that shell lines and variables name."""
        named = {word for text in texts for word in _WORD.findall(text) if _arguments(word)}
        try:
            library = os.confstr("CS_GNU_LIBC_VERSION") or ""
        except (ValueError, OSError):
            library = "musl"  # it does not know this name
        return [
            platform.machine(),
            library,
            *(self._version(tool) for tool in sorted({*named, *_IMPLICIT_TOOLS})),
        ]

    def _version(self, tool: str) -> str:
        if tool not in self._known:
            program = shutil.which(tool, path=self._path)
            version = f": {self._query(program, _arguments(tool))}" if program else MISSING_TOOL
            self._known[tool] = f"{tool}{version}"
        return self._known[tool]


def local_tools(starter: Starter) -> Toolchain:
    """Return the tools of this machine, found in the search path of builds."""
    environment = {"PATH": search_path(), "LC_ALL": "C.UTF-8"}
    return Toolchain(
        lambda program, argument: version_of(starter, program, argument, environment), path=search_path()
    )


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
