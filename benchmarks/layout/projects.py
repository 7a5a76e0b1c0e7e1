"""The projects whose commits are measured: how each is compiled and linked, and the timed command.

Users fetch them; this repository contains nothing of them. Every file is compiled and linked directly, without the
build system of the project, so all projects relink in the same way.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROGRAM = "program"

LINK_ORDER = """\
#!/bin/sh
# link-order SEED COMPILER ARGUMENT...: run the compiler with its arguments that end in .o in another order
seed=$1
shift
words=$(for word in "$@"; do printf '%s\\n' "$word"; done | awk -v seed="$seed" '
    /\\.o$/ { at[++n] = NR; to[n] = NR }
    END {
        srand(seed)
        for (i = n; i > 1; i--) { j = int(rand() * i) + 1; swap = to[i]; to[i] = to[j]; to[j] = swap }
        for (i = 1; i <= n; i++) other[at[i]] = to[i]
        for (i = 1; i <= NR; i++) printf "\\"${%d}\\" ", (i in other) ? other[i] : i
    }')
eval "exec $words"
"""
"""The script of docs/how-to/layout-noise.md, for machines without lld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project in C.

    `sources` are the compiled files, with `*`, except those in `without`; `main` is the file with `main`. `paths` are
    copied from the project, and `added` are additional files. `flags` and `libraries` are for the compiler. `arguments`
    are those of the timed command, and `printing` those of a command that prints all results. Both may contain
    ``{input}``, the file with the content from `work`.
    """

    sources: tuple[str, ...]
    main: str
    arguments: str
    work: Callable[[], bytes]
    paths: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)
    flags: str = "-O2"
    libraries: str = ""
    printing: str = ""

    @property
    def compiler(self) -> str:
        """The command that compiles one file; the names of the file and its object follow."""
        return f"cc {self.flags} -ffunction-sections -w -c"

    @property
    def steps(self) -> tuple[str, ...]:
        """The lines that build everything in the root of the tree."""
        excluded = "|".join(self.without)
        skip = f"case $file in {excluded}) continue;; esac; " if excluded else ""
        files = " ".join(self.sources)
        return (
            f'for file in {files}; do {skip}{self.compiler} "$file" -o "$(basename "$file" .c).o"; done',
            self.link(),
        )

    @property
    def relink(self) -> tuple[str, ...]:
        """The lines that link in another order for each ``{layout}``."""
        if shutil.which("ld.lld"):
            return (self.link('-fuse-ld=lld "-Wl,--shuffle-sections=.text*={layout}"'),)
        return (self.link(before="sh {study}/link-order {layout} "),)

    def link(self, options: str = "", *, before: str = "") -> str:
        """Return the line that links the objects in the root of the tree."""
        return f"{before}cc {options} -o {PROGRAM} *.o {self.libraries}".strip().replace("  ", " ")


def _words(rng: random.Random, count: int) -> list[str]:
    known = ["".join(rng.choices("etaoinshrdlu", k=rng.randrange(1, 11))) for _ in range(3000)]
    return rng.choices(known, weights=[1 / (rank + 1) for rank in range(len(known))], k=count)


def _prose() -> bytes:
    return " ".join(_words(random.Random(1), 150_000)).encode()


def _markdown() -> bytes:
    rng = random.Random(2)
    words = iter(_words(rng, 400_000))

    def line(count: int) -> str:
        return " ".join(next(words) for _ in range(count))

    parts = []
    for number in range(2400):
        parts += [
            f"{'#' * (1 + number % 4)} {line(5)}",
            f'{line(40)} *{line(3)}* {line(20)} **{line(2)}** `{line(2)}` [{line(2)}](/{next(words)} "{next(words)}")',
            "\n".join(f"{'  ' * (item % 3)}- {line(8)}" for item in range(6)),
            f"> {line(15)}\n> {line(9)} &amp; {line(4)} <b>{next(words)}</b>",
        ]
    return "\n\n".join(parts).encode()


LUA_WORK = b"""\
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local sum, words = 0, {}
for i = 1, 20000 do words[#words + 1] = string.format("%d:%x", i * 7919 % 10007, i) end
table.sort(words)
for i, word in ipairs(words) do
  local a, b = word:match("^(%d+):(%x+)$")
  sum = (sum * 31 + tonumber(a) + tonumber(b, 16) + i) % 1000000007
end
local counts = {}
for _, word in ipairs(words) do local key = word:sub(1, 2); counts[key] = (counts[key] or 0) + #word end
for key, count in pairs(counts) do sum = (sum + count * key:byte()) % 1000000007 end
print(fib(24), sum)
"""


PROJECTS = {
    "lz4": Project(
        paths=("lib", "programs"),
        sources=("lib/*.c", "programs/*.c"),
        main="programs/lz4cli.c",
        flags="-O3 -Ilib -DXXH_NAMESPACE=LZ4_",
        arguments="-9 -q -f {input} /dev/null",
        printing="-9 -q -f -c {input}",
        work=_prose,
    ),
    "lua": Project(
        sources=("*.c",),
        without=("onelua.c", "ltests.c"),
        main="lua.c",
        flags="-O2 -std=c99 -DLUA_USE_POSIX",
        libraries="-lm",
        arguments="{input}",
        work=lambda: LUA_WORK,
    ),
    "cmark": Project(
        paths=("src",),
        sources=("src/*.c",),
        main="src/main.c",
        flags="-O2 -DNDEBUG -Isrc -DCMARK_STATIC_DEFINE",
        added={
            "src/cmark_export.h": "#define CMARK_EXPORT\n#define CMARK_NO_EXPORT\n#define CMARK_DEPRECATED\n",
            "src/cmark_version.h": '#define CMARK_VERSION 1\n#define CMARK_VERSION_STRING "1"\n',
        },
        arguments="{input}",
        work=_markdown,
    ),
}
"""The projects that can be named on the command line."""
