"""`perftrail build --shell` as people use it: on a real terminal, and with commands from a pipe."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path


class Terminal:
    """`perftrail build --shell` on a terminal of its own."""

    def __init__(self, study: Path, revision: str, *options: str) -> None:
        self.said = ""
        self.child, self._terminal = pty.fork()
        if not self.child:
            words = [sys.executable, "-m", "perftrail", "build", revision, str(study), "--shell", *options]
            os.execvp(words[0], words)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._terminal)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, words: str) -> str:
        """Read until some words were said; give what was said since the last ones."""
        end = time.monotonic() + 60
        while words not in self.said:
            assert time.monotonic() < end, self.said
            assert self._read(), self.said
        said, _, self.said = self.said.partition(words)
        return said + words

    def ended(self) -> int:
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])

    def _read(self) -> bool:
        if not select.select([self._terminal], [], [], 60)[0]:
            return False
        try:
            piece = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.said += piece.decode(errors="replace")
        return bool(piece)


def piped(study: Path, revision: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perftrail", "build", revision, str(study), "--shell", *options],
        input=script,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PERFTRAIL_TEST": "ours"},
    )
