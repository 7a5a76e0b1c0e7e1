"""Real Fossil repositories for tests, made artifact by artifact, with any dates and names."""

from __future__ import annotations

import hashlib
import os
import socketserver
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.needs import needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

needs_fossil = needs("fossil")

PROGRAM = "program:"
LINK = "link:"


class FossilRepository:
    """A repository that a test fills; `make` writes all its check-ins into the file at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clock = 1_700_000_000
        self._artifacts: dict[str, bytes] = {}
        self._tips: dict[str, str] = {}

    def commit(
        self,
        files: Mapping[str, str],
        *,
        subject: str = "change",
        parents: Sequence[str] | None = None,
        branch: str = "trunk",
        date: int | None = None,
        tags: Sequence[str] = (),
        renamed: Mapping[str, str] | None = None,
    ) -> str:
        """Check files in on a branch's tip, or on other parents; a new branch begins where it is first named.

        A text that begins with ``link:`` makes a symbolic link, with ``program:`` a program. `renamed` gives
        the old names of files.
        """
        self._clock += 60
        if parents is None:
            parents = [self._tips[branch]] if branch in self._tips else []
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._clock if date is None else date))
        cards = [f"C {_fossilised(subject)}", f"D {when}"]
        cards += [
            self._file_card(name, text, renamed or {}) for name, text in sorted(files.items(), key=_bytes)
        ]
        cards += [f"P {' '.join(parents)}"] if parents else []
        cards += self._tag_cards(branch, tags, begins=branch not in self._tips)
        cards += ["U tester", ""]
        text = "\n".join(cards).encode("utf-8", errors="surrogateescape")
        md5 = hashlib.md5(text, usedforsecurity=False).hexdigest()
        self._tips[branch] = self._keep(text + f"Z {md5}\n".encode())
        return self._tips[branch]

    def tag(self, name: str, check_in: str) -> None:
        """Tag a check-in, whatever the name looks like."""
        self._clock += 60
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._clock))
        text = f"D {when}\nT +sym-{_fossilised(name)} {check_in}\nU tester\n".encode()
        md5 = hashlib.md5(text, usedforsecurity=False).hexdigest()
        self._keep(text + f"Z {md5}\n".encode())

    def lose(self, text: str) -> None:
        """Remove the content of a file, as in a repository that never received it."""
        del self._artifacts[_id(text.encode())]

    def make(self) -> Path:
        """Write the repository's file anew."""
        with tempfile.TemporaryDirectory() as scratch:
            for id_, content in self._artifacts.items():
                (Path(scratch) / id_).write_bytes(content)
            new = self.path.with_name(f"{self.path.name}.new")
            fossil("reconstruct", str(new), scratch, directory=scratch)
            new.rename(self.path)
        return self.path

    def _file_card(self, name: str, text: str, renamed: Mapping[str, str]) -> str:
        kind = " x" if text.startswith(PROGRAM) else " l" if text.startswith(LINK) else ""
        id_ = self._keep(text.removeprefix(LINK).encode())
        old = f"{kind or ' w'} {_fossilised(renamed[name])}" if name in renamed else kind
        return f"F {_fossilised(name)} {id_}{old}"

    def _tag_cards(self, branch: str, tags: Sequence[str], *, begins: bool) -> list[str]:
        cards = [f"T +sym-{_fossilised(tag)} *" for tag in tags]
        if begins:
            cards += [f"T *branch * {_fossilised(branch)}", f"T *sym-{_fossilised(branch)} *"]
            cards += [f"T -sym-{_fossilised(other)} *" for other in self._tips]
        return sorted(cards)

    def _keep(self, content: bytes) -> str:
        self._artifacts[_id(content)] = content
        return _id(content)


def fossil(*words: str, directory: Path | str, home: Path | str | None = None) -> str:
    """Run Fossil as its owner, with separate settings, and return its output."""
    with tempfile.TemporaryDirectory() as settings:
        done = subprocess.run(
            ["fossil", *words],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "FOSSIL_HOME": str(home or settings), "USER": "tester"},
        )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def _id(content: bytes) -> str:
    return hashlib.sha3_256(content).hexdigest()


def _bytes(item: tuple[str, str]) -> bytes:
    return item[0].encode()


def _fossilised(text: str) -> str:
    """Write a text as one word of a manifest."""
    for plain, written in (
        ("\\", "\\\\"),
        (" ", "\\s"),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("\r", "\\r"),
        ("\v", "\\v"),
    ):
        text = text.replace(plain, written)
    return text


@contextmanager
def serving(repository: Path) -> Iterator[str]:
    """Serve a repository on a free port of loopback for as long as the context lasts."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with tempfile.TemporaryDirectory() as settings:
                subprocess.run(
                    ["fossil", "http", str(repository)],
                    stdin=self.request,
                    stdout=self.request,
                    stderr=subprocess.DEVNULL,
                    check=False,
                    env={"PATH": os.environ["PATH"], "FOSSIL_HOME": settings, "USER": "tester"},
                )

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
