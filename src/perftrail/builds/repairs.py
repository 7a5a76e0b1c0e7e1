"""Repair a tree before its recipe runs: copy the study's files into it and apply patches, never outside the tree.

A patch that does not apply is explained hunk by hunk.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.build_log import MOST_LINES
from perftrail.builds.environment import search_path
from perftrail.file_tree import real_path, temporary_directory
from perftrail.model.build import content_key
from perftrail.model.process import Command, Exited
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.builds.build_log import Log
    from perftrail.model.build import Repairs
    from perftrail.ports import Starter


TIMEOUT_SECONDS = 300.0
"""Time limit of one run of git."""

LARGEST_FILE_BYTES = 16 << 20
"""Larger files are not searched for the missing lines of a hunk."""

_MISSING_LINES = re.compile(
    r"^error: while searching for:\n(.*?)\n?^error: patch failed: (.*):(\d+)$", re.M | re.S
)
_ABSENT = re.compile(r"^error: (.*): No such file or directory$", re.M)
_EXISTING = re.compile(r"^error: (.*): already exists in working directory$", re.M)
_COMPLAINT = re.compile(r"^(?:error|fatal): (.*)$", re.M)
_APPLYING = re.compile(r"^Applying patch (.*) with \d+ rejects?\.\.\.$")
_REJECTED = re.compile(r"^Rejected hunk #(\d+)\.$")


@dataclass(frozen=True, slots=True)
class _GitResult:
    """Result of git: success, and its output."""

    succeeded: bool
    output: str
    errors: str


class Patcher:
    """Applies one patch file. git refuses paths outside the tree, through ``..`` or links."""

    def __init__(self, starter: Starter, file: Path, *, named: str) -> None:
        self._starter = starter
        self._file = file
        self._named = named
        self._program = shutil.which("git", path=search_path())

    def apply(self, tree: Path, log: Log) -> str:
        """Apply the patch; return why it does not apply, line by line, or an empty text.

        If it does not apply, the fitting hunks are applied and the others are in ``.rej`` files.
        """
        if self._program is None:
            return f"{self._named}: patches need git, which is not installed"
        strip = self._strip(tree)
        result = self._git(tree, strip, "--verbose")
        log.note(result.errors.rstrip())
        if result.succeeded:
            return ""
        if self._git(tree, strip, "--reverse", "--check").succeeded:
            return f"{self._named}: this revision already has the change; end the patch's range before it"
        rejected = self._git(tree, strip, "--reject", "--verbose")
        reasons = list(dict.fromkeys(self._reasons(rejected.errors, tree)))
        return "\n".join(f"{self._named}: {reason}" for reason in reasons[:MOST_LINES])

    def _strip(self, tree: Path) -> int:
        """Return how many leading directories the patch's paths have: one in git's format, none in Fossil's."""

        def known(strip: int) -> int:
            result = self._git(tree, strip, "--numstat", "-z")
            paths = [field.split("\t", 2)[-1] for field in result.output.split("\0")[:-1]]
            if result.succeeded:
                return sum(os.path.exists(tree / path) for path in paths)  # noqa: PTH110 - also of names too long
            # Git explains a broken patch only with a strip count that fits its paths.
            return -2 if "unable to find filename" in result.errors else -1

        return max((1, 0), key=known)

    def _reasons(self, output: str, tree: Path) -> Iterator[str]:
        numbers = _rejected(output)
        for sought, path, line in _MISSING_LINES.findall(output):
            hunks = numbers.get(path, [])
            which = f"hunk {hunks.pop(0)} of {quoted(path)}" if hunks else quoted(path)
            why = _why(sought.splitlines(), tree, path)
            yield f"{which} does not apply: {why} (near line {line})"
        for path in _ABSENT.findall(output):
            yield f"{quoted(path)} does not apply: this revision has no such file"
        for path in _EXISTING.findall(output):
            yield f"{quoted(path)} does not apply: this revision already has a file of that name"
        if not any(each.search(output) for each in (_MISSING_LINES, _ABSENT, _EXISTING)):
            complaint = _COMPLAINT.search(output)
            yield f"cannot be applied: {quoted(complaint[1] if complaint else output.strip())}"

    def _git(self, tree: Path, strip: int, *words: str) -> _GitResult:
        """Run ``git apply`` on a plain directory: without a repository, settings or the user's variables."""
        assert self._program is not None
        with temporary_directory() as scratch:
            output, errors = scratch / "output", scratch / "errors"
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
                    timeout_seconds=TIMEOUT_SECONDS,
                    tree_memory="off",
                )
            )  # fmt: skip
            return _GitResult(
                succeeded=ran.ended == Exited(code=0), output=_text(output), errors=_text(errors)
            )


def _rejected(output: str) -> dict[str, list[int]]:
    """Return the numbers of the rejected hunks, by file."""
    found: dict[str, list[int]] = {}
    path = ""
    for line in output.splitlines():
        if applying := _APPLYING.match(line):
            path = applying[1]
        elif rejected := _REJECTED.match(line):
            found.setdefault(path, []).append(int(rejected[1]))
    return found


def _why(sought: list[str], tree: Path, path: str) -> str:
    """Return why a hunk does not apply: its first line that the file lacks."""
    file = tree / path
    # Path.resolve fails for a loop of links.
    inside = real_path(file).is_relative_to(real_path(tree))
    if not inside or not os.path.isfile(file) or file.stat().st_size > LARGEST_FILE_BYTES:  # noqa: PTH113
        return "the lines that it changes are missing"
    present = set(_text(file).splitlines())
    missing = next((line for line in sought if line.strip() and line not in present), None)
    if missing is None:
        return "the lines that it changes exist, but not next to each other"
    return f"this revision has no line {quoted(missing.strip())}"


def _text(file: Path) -> str:
    return file.read_text("utf-8", errors="replace") if file.exists() else ""


def repairs_key(repairs: Repairs, study: Path) -> tuple[str, ...]:
    """Return the content key of repairs, from the content of the study's files; empty without repairs.

    The name of a patch does not count; the path of a file and its executable bit do.
    """
    if not repairs:
        return ()
    overlay = {path: _content(study / file) for path, file in repairs.overlay.items()}
    return (content_key(overlay, [_content(study / file) for file in repairs.patches]),)


def repair(repairs: Repairs, tree: Path, *, study: Path, starter: Starter, log: Log) -> str:
    """Copy files into a tree and apply patches; return why that failed, or an empty text.

    The first failure ends the work; the log lists every step. Hunks that fit stay applied, and the others are in
    ``.rej`` files for a person who inspects the tree.
    """
    for path, file in repairs.overlay.items():
        log.note(f"# {file} of the study, copied to {path}")
        if failure := _copy_overlay(study / file, tree, path):
            log.note(f"[{failure}]")
            return failure
    for file in repairs.patches:
        log.note(f"# {file} of the study applied")
        if failure := Patcher(starter, study / file, named=file).apply(tree, log):
            log.note(f"[{failure}]")
            return failure
    return ""


def _copy_overlay(file: Path, tree: Path, path: str) -> str:
    """Copy a file to its path, replacing an existing file; return why that failed, or an empty text."""
    target = tree / path
    subject = f"overlay to {quoted(path)}"
    if not real_path(target.parent).is_relative_to(real_path(tree)):
        return f"{subject}: the path contains a link of this revision that leads out of its tree"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir() and not target.is_symlink():
            return f"{subject}: this revision has a directory there"
        # A link is replaced, not followed; a hard-linked file is not written to.
        target.unlink(missing_ok=True)
        shutil.copyfile(file, target)
        target.chmod(0o755 if _is_program(file) else 0o644)
    except (FileExistsError, NotADirectoryError):
        return f"{subject}: a directory of the path is a file in this revision"
    except OSError as error:
        return f"{subject}: {(error.strerror or str(error)).lower()}"
    return ""


def _content(file: Path) -> list[str | bool]:
    if not file.is_file():
        return ["missing"]
    return [hashlib.sha256(file.read_bytes()).hexdigest(), _is_program(file)]


def _is_program(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o100)
