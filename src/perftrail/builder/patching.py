"""Applies a patch of the study to a tree with git, and says of one that does not fit which hunk and why."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builder.environment import search_path
from perftrail.builder.telling import MOST_LINES
from perftrail.model.process import Command, Exited
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.builder.steps import Log
    from perftrail.ports import Starter

SECONDS = 300.0
LARGEST_FILE_BYTES = 16 << 20
"""A larger file is not searched for the lines that a hunk lacks."""

_SOUGHT = re.compile(r"^error: while searching for:\n(.*?)\n?^error: patch failed: (.*):(\d+)$", re.M | re.S)
_ABSENT = re.compile(r"^error: (.*): No such file or directory$", re.M)
_THERE = re.compile(r"^error: (.*): already exists in working directory$", re.M)
_COMPLAINT = re.compile(r"^(?:error|fatal): (.*)$", re.M)
_APPLYING = re.compile(r"^Applying patch (.*) with \d+ rejects?\.\.\.$")
_REJECTED = re.compile(r"^Rejected hunk #(\d+)\.$")


@dataclass(frozen=True, slots=True)
class _Said:
    """What git said: whether it did what it was asked, and its words."""

    done: bool
    output: str
    errors: str


class Patcher:
    """Applies one patch file. git refuses by itself what would leave the tree, by ``..`` or by a link."""

    def __init__(self, starter: Starter, file: Path, *, named: str) -> None:
        self._starter = starter
        self._file = file
        self._named = named
        self._program = shutil.which("git", path=search_path())

    def apply(self, tree: Path, log: Log) -> str:
        """Apply the patch; give why it does not apply, line by line, else nothing.

        Where it does not, what fits of it is applied and the rest lies in ``.rej`` files.
        """
        if self._program is None:
            return f"{self._named}: git is not installed, and patches are applied with it"
        strip = self._strip(tree)
        said = self._git(tree, strip, "--verbose")
        log.note(said.errors.rstrip())
        if said.done:
            return ""
        if self._git(tree, strip, "--reverse", "--check").done:
            return f"{self._named}: this revision has the change already; let its range end before"
        left = self._git(tree, strip, "--reject", "--verbose")
        reasons = list(dict.fromkeys(self._reasons(left.errors, tree)))
        return "\n".join(f"{self._named}: {reason}" for reason in reasons[:MOST_LINES])

    def _strip(self, tree: Path) -> int:
        """How many directories to leave out of the patch's paths: one as git writes them, none as Fossil does."""

        def known(strip: int) -> int:
            said = self._git(tree, strip, "--numstat", "-z")
            paths = [field.split("\t", 2)[-1] for field in said.output.split("\0")[:-1]]
            if said.done:
                return sum((tree / path).exists() for path in paths)
            # git says of a broken patch what is wrong with it only where its paths make sense
            return -2 if "unable to find filename" in said.errors else -1

        return max((1, 0), key=known)

    def _reasons(self, said: str, tree: Path) -> Iterator[str]:
        numbers = _rejected(said)
        for sought, path, line in _SOUGHT.findall(said):
            hunks = numbers.get(path, [])
            which = f"hunk {hunks.pop(0)} of {quoted(path)}" if hunks else quoted(path)
            why = _why(sought.splitlines(), tree, path)
            yield f"{which} does not apply: {why} (sought near line {line})"
        for path in _ABSENT.findall(said):
            yield f"{quoted(path)} does not apply: this revision has no such file"
        for path in _THERE.findall(said):
            yield f"{quoted(path)} does not apply: this revision has a file of that name already"
        if not any(each.search(said) for each in (_SOUGHT, _ABSENT, _THERE)):
            complaint = _COMPLAINT.search(said)
            yield f"cannot be applied: {quoted(complaint[1] if complaint else said.strip())}"

    def _git(self, tree: Path, strip: int, *words: str) -> _Said:
        """Run ``git apply`` on a plain directory: no repository, no settings, none of the user's variables."""
        assert self._program is not None
        with tempfile.TemporaryDirectory(prefix="perftrail-patch-") as scratch:
            output, errors = Path(scratch) / "output", Path(scratch) / "errors"
            ran = self._starter.run(
                Command(
                    arguments=(
                        self._program, "apply", f"-p{strip}", "--whitespace=nowarn", *words,
                        "--", str(self._file),
                    ),
                    environment={
                        "PATH": search_path(), "LC_ALL": "C.UTF-8", "LANGUAGE": "", "HOME": "/nonexistent",
                        "GIT_DIR": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
                        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1",
                    },
                    directory=str(tree),
                    stdout=str(output),
                    stderr=str(errors),
                    timeout_seconds=SECONDS,
                    tree_memory="off",
                )
            )  # fmt: skip
            return _Said(done=ran.ended == Exited(code=0), output=_text(output), errors=_text(errors))


def _rejected(said: str) -> dict[str, list[int]]:
    """The numbers of the hunks that were rejected, by file."""
    found: dict[str, list[int]] = {}
    path = ""
    for line in said.splitlines():
        if applying := _APPLYING.match(line):
            path = applying[1]
        elif rejected := _REJECTED.match(line):
            found.setdefault(path, []).append(int(rejected[1]))
    return found


def _why(sought: list[str], tree: Path, path: str) -> str:
    """Say which of the lines that a hunk looks for the file lacks."""
    file = tree / path
    inside = file.resolve().is_relative_to(tree.resolve())
    if not inside or not file.is_file() or file.stat().st_size > LARGEST_FILE_BYTES:
        return "the lines that it changes are not there"
    there = set(_text(file).splitlines())
    lacking = next((line for line in sought if line.strip() and line not in there), None)
    if lacking is None:
        return "the lines that it changes are there, but not beside each other"
    return f"this revision has no line {quoted(lacking.strip())}"


def _text(file: Path) -> str:
    return file.read_text("utf-8", errors="replace") if file.exists() else ""
