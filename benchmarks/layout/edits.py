"""Edits of a C file: some that change only the layout of the program, and one that makes it slower.

Each returns the file's new text, or `None` if the file has no place for the edit. `history.py` checks the effect on the
compiled program.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchmarks.layout.c_source import read_source

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Edit = Callable[[str, random.Random], str | None]

ADDED = "perftrail_"
"""Prefix of the names of functions that edits add."""

MOST_STATEMENTS = 200
"""Maximum number of statements of a dead function; each is about four instructions."""

MOST_LETTERS = 300
"""Maximum number of letters that are added to a text."""

_BETWEEN_WORDS = re.compile(r"(?<=[a-z]{2}) (?=[a-z]{2})")

DEAD = """\
__attribute__((used, noinline)) static void {name}(volatile unsigned *at)
{{
{lines}
}}

"""

BUSY = """\
__attribute__((noinline)) static void {name}(void)
{{
    unsigned long long state = 88172645463325252ULL, step;
    for (step = 0; step < {steps}ULL; step++) {{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        __asm__ volatile("" : "+r"(state));
    }}
}}

"""


def reordered(text: str, rng: random.Random) -> str | None:
    """Move a function behind a later one; its prototype stays at the old position."""
    functions = [each for each in read_source(text).functions if each.name != "main"]
    pairs = [
        (moved, later)
        for number, moved in enumerate(functions)
        for later in functions[number + 1 :]
        if moved.block == later.block
    ]
    if not pairs:
        return None
    moved, later = rng.choice(pairs)
    return (
        f"{text[: moved.start]}{moved.prototype};\n{text[moved.end : later.end]}\n\n"
        f"{text[moved.start : moved.end]}\n{text[later.end :]}"
    )


def with_dead_code(text: str, rng: random.Random) -> str | None:
    """Add a function of random size without a caller, before an existing one."""
    functions = read_source(text).functions
    if not functions:
        return None
    number, factor = rng.randrange(10**9), rng.randrange(3, 10**6)
    statements = rng.randrange(1, MOST_STATEMENTS)
    lines = "\n".join(
        f"    at[{index}] = at[{index + 1}] * {factor + index}u ^ {index}u;" for index in range(statements)
    )
    start = rng.choice(functions).start
    return f"{text[:start]}{DEAD.format(name=f'{ADDED}dead_{number}', lines=lines)}{text[start:]}"


def with_longer_text(text: str, rng: random.Random) -> str | None:
    """Insert letters between two words of a text constant."""
    boundaries = [
        start + found.start()
        for start, end in read_source(text).texts
        for found in _BETWEEN_WORDS.finditer(text[start:end])
    ]
    if not boundaries:
        return None
    at = rng.choice(boundaries)
    letters = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(1, MOST_LETTERS)))
    return f"{text[:at]} {letters}{text[at:]}"


KINDS: dict[str, Edit] = {
    "functions reordered": reordered,
    "dead code": with_dead_code,
    "longer text": with_longer_text,
}
"""The edits that change only the layout, by their names in the table."""


def slower(text: str, steps: int) -> str | None:
    """Add `steps` steps of computation to the start of `main`, as in `benchmarks/verdicts/loop.c`."""
    main = next((each for each in read_source(text).functions if each.name == "main"), None)
    if main is None:
        return None
    name = f"{ADDED}busy"
    busy = BUSY.format(name=name, steps=steps)
    return f"{text[: main.start]}{busy}{text[main.start : main.body]}\n    {name}();\n{text[main.body :]}"
