"""Run one target without Atheris: mutate inputs, and keep those that reach new lines of perftrail.

``python -m campaign.fuzz_parsers.guided TARGET [libFuzzer's options]`` understands the campaign's options.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.fuzz_parsers.targets import TARGETS

if TYPE_CHECKING:
    from types import FrameType

PIECES = (
    b"\0",
    b"\xff",
    b"9" * 5000,
    b"-1",
    b"1e999",
    b"nan",
    b"[" * 3000,
    b"{}",
    b'"',
    b"\n",
    b"..",
    b"\xc3\xa9",
)
"""Bytes that have broken parsers before."""

_PACKAGE = "/perftrail/"


class Lines:
    """Collects the lines of perftrail that run, by the frames' code."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int]] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> Lines | None:
        """Trace one event of the interpreter."""
        if _PACKAGE not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.seen.add((id(frame.f_code), frame.f_lineno))
        return self


def mutated(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return content with one to four changes: other bytes, pieces, a part removed, repeated, or of another input."""
    made = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(made))
        end = min(len(made), start + rng.choice((1, 2, 4, 16, 64)))
        match rng.randint(0, 5):
            case 0:
                made[start:end] = rng.randbytes(end - start)
            case 1:
                made[start:end] = rng.choice(PIECES)
            case 2:
                del made[start:end]
            case 3:
                made[start:start] = made[start:end] * rng.choice((1, 2, 50))
            case 4 if other:
                at = rng.randrange(len(other))
                made[start:end] = other[at : at + rng.choice((4, 16, 64))]
            case _ if start < len(made):
                made[start] ^= 1 << rng.randint(0, 7)
    return bytes(made[:16384])


def fuzz(target: str, *, seconds: float, seed: int, corpus: list[bytes], broken: str) -> int:
    """Parse inputs for some seconds; write each that breaks the target to a file that begins with `broken`."""
    parse, rng, reached = TARGETS[target], random.Random(seed), Lines()
    until, executions, kinds = time.monotonic() + seconds, 0, set()
    waiting = list(corpus)
    while waiting or time.monotonic() < until:
        content = waiting.pop() if waiting else mutated(rng.choice(corpus), rng.choice(corpus), rng)
        known = len(reached.seen)
        executions += 1
        try:
            sys.settrace(reached)
            parse(content)
        except Exception as error:
            sys.settrace(None)
            if type(error) not in kinds:
                kinds.add(type(error))
                Path(broken + hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
        finally:
            sys.settrace(None)
        if len(reached.seen) > known and content not in corpus:
            corpus.append(content)
    return executions


if __name__ == "__main__":
    options = dict(word[1:].split("=", 1) for word in sys.argv[2:] if word.startswith("-"))
    inputs = [file.read_bytes() for file in sorted(Path(sys.argv[-1]).iterdir())]
    done = fuzz(
        sys.argv[1],
        seconds=float(options["max_total_time"]),
        seed=int(options["seed"]),
        corpus=inputs,
        broken=options["artifact_prefix"],
    )
    print(f"Done {done} runs")
