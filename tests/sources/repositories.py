"""Real git repositories for tests, made commit by commit."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Repository:
    """A repository that a test fills; commits are made without a checkout, at any date."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clock = 1_700_000_000
        git = path / ".git"
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks", "info"):
            (git / name).mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text(_CONFIG)

    def git(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Run git there as its owner and return its output."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.path,
            input=stdin,
            capture_output=True,
            check=False,
            env={**_ENVIRONMENT, **(env or {})},
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.decode("utf-8", errors="surrogateescape").strip()

    def tree(self, files: Mapping[str, str]) -> str:
        """Write a tree of files; ``link:PLACE`` makes a symbolic link, ``commit:ID`` a submodule."""
        entries = {name.encode(): self._entry(text) for name, text in files.items()}
        return self._tree(entries)

    def _entry(self, text: str) -> tuple[str, str]:
        """Return the mode and id of a file with this text, which is written."""
        if text.startswith("commit:"):
            return "160000", text.removeprefix("commit:")
        mode = "120000" if text.startswith("link:") else "100644"
        return mode, self._object("blob", text.removeprefix("link:").encode())

    def _tree(self, entries: Mapping[bytes, tuple[str, str]]) -> str:
        """Write a tree, and those below it, from the modes and ids of its files."""
        below: dict[bytes, dict[bytes, tuple[str, str]]] = {}
        here: dict[bytes, tuple[str, str]] = {}
        for path, entry in entries.items():
            name, slash, rest = path.partition(b"/")
            assert name not in {b"", b".", b"..", b".git"}, path
            if slash:
                below.setdefault(name, {})[rest] = entry
            else:
                here[name] = entry
        here |= {name: ("40000", self._tree(inner)) for name, inner in below.items()}
        ordered = sorted(here.items(), key=lambda item: item[0] + (b"/" if item[0] in below else b""))
        return self._object(
            "tree",
            b"".join(
                b"%s %s\0%s" % (mode.encode(), name, bytes.fromhex(id_)) for name, (mode, id_) in ordered
            ),
        )

    def _object(self, kind: str, content: bytes) -> str:
        """Write an object as git does, which would start a process for each, and return its id."""
        whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
        id_ = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        file = self.path / ".git" / "objects" / id_[:2] / id_[2:]
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(zlib.compress(whole, 1))
            file.chmod(0o444)
        return id_

    def _tip(self, branch: str) -> str:
        """Return the commit of a branch, or an empty text."""
        file = self.path / ".git" / "refs" / "heads" / branch
        if file.is_file():
            return file.read_text().strip()
        if not (self.path / ".git" / "packed-refs").exists():
            return ""
        return self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def _move(self, reference: str, commit: str) -> None:
        file = self.path / ".git" / reference
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{commit}\n")

    def commit(
        self,
        files: Mapping[str, str],
        *,
        subject: str | bytes = "change",
        parents: Sequence[str] | None = None,
        branch: str = "main",
        date: int | None = None,
    ) -> str:
        """Commit files onto a branch's tip, or onto other parents, and move the branch there."""
        self._clock += 60
        when = f"{date if date is not None else self._clock} +0000"
        if parents is None:
            tip = self._tip(branch)
            parents = [tip] if tip else []
        lines = [f"tree {self.tree(files)}", *(f"parent {parent}" for parent in parents)]
        lines += [f"author A <a@example.invalid> {when}", f"committer C <c@example.invalid> {when}", "", ""]
        text = subject.encode() if isinstance(subject, str) else subject
        commit = self._object("commit", "\n".join(lines).encode() + text)
        self._move(f"refs/heads/{branch}", commit)
        return commit

    def tag(self, name: str, commit: str) -> None:
        """Tag a commit, whatever the name looks like."""
        self._move(f"refs/tags/{name}", commit)

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the repository with its content, to be compared later."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file()
        }


_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
"""
_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.invalid",
    "LC_ALL": "C.UTF-8",
}
