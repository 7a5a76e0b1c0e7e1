"""Names the tools that a recipe runs by what they say of their version."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ALWAYS = ("cc", "ld")
"""What nearly every recipe runs without naming it."""

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
"""The tools whose version may change what is built, and how each is asked for it."""

_WORD = re.compile(r"[A-Za-z0-9_+.-]+")
_VERSION_SUFFIX = re.compile(r"-?\d+(\.\d+)*$")

Ask = Callable[[str, str], str]
"""Runs a program with one argument and gives what it says."""


class Toolchain:
    """Knows tools by their versions, each asked once."""

    def __init__(self, ask: Ask, *, path: str) -> None:
        self._ask = ask
        self._path = path
        self._known: dict[str, str] = {}

    def fingerprint(self, texts: Iterable[str]) -> list[str]:
        """Say which versions the tools have that shell lines and variables name, and the machine's kind."""
        named = {word for text in texts for word in _WORD.findall(text) if _arguments(word)}
        library = os.confstr("CS_GNU_LIBC_VERSION") or ""
        return [platform.machine(), library, *(self._version(tool) for tool in sorted({*named, *_ALWAYS}))]

    def _version(self, tool: str) -> str:
        if tool not in self._known:
            program = shutil.which(tool, path=self._path)
            said = self._ask(program, _arguments(tool)) if program else "missing"
            self._known[tool] = f"{tool}: {said}"
        return self._known[tool]


def _arguments(tool: str) -> str:
    return _ARGUMENTS.get(tool) or _ARGUMENTS.get(_VERSION_SUFFIX.sub("", tool), "")
