"""perftrail as people use it on a real terminal, and `perftrail build --shell` also with commands from a pipe."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path


class Terminal:
    """A program, by default perftrail, on a new terminal."""

    def __init__(
        self,
        *arguments: str,
        program: tuple[str, ...] = (sys.executable, "-m", "perftrail"),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.output = ""
        self.child, self._terminal = pty.fork()
        if not self.child:
            if cwd is not None:
                os.chdir(cwd)
            os.execvpe(program[0], [*program, *arguments], {**os.environ, **(env or {})})

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._terminal)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read_until(self, words: str) -> str:
        """Read until the terminal shows these words; return the output up to them, without earlier results."""
        end = time.monotonic() + 60
        while words not in self.output:
            assert time.monotonic() < end, self.output
            assert self._read(), self.output
        before, _, self.output = self.output.partition(words)
        return before + words

    def exit_code(self) -> int:
        """Wait for the end of perftrail, and return its exit code."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])

    def _read(self) -> bool:
        if not select.select([self._terminal], [], [], 60)[0]:
            return False
        try:
            part = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.output += part.decode(errors="replace")
        return bool(part)


def build_shell(study: Path, revision: str, *options: str) -> Terminal:
    """Start `perftrail build --shell` on a new terminal."""
    return Terminal("build", revision, str(study), "--shell", *options)


def run_from_pipe(study: Path, revision: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a script in `perftrail build --shell`, whose standard input is a pipe."""
    return subprocess.run(
        [sys.executable, "-m", "perftrail", "build", revision, str(study), "--shell", *options],
        input=script,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PERFTRAIL_TEST": "ours"},
    )
