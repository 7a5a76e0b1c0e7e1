"""Real git repositories for tests, made commit by commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Repository:
    """A repository that a test fills; commits are made without a checkout, at any date."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clock = 1_700_000_000
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

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
        index = str(self.path / ".git" / f"index-{self._clock}")
        lines = []
        for name, text in sorted(files.items()):
            if text.startswith("commit:"):
                lines.append(f"160000 {text.removeprefix('commit:')}\t{name}\0")
                continue
            blob = self.git("hash-object", "-w", "--stdin", stdin=text.removeprefix("link:").encode())
            mode = "120000" if text.startswith("link:") else "100644"
            lines.append(f"{mode} {blob}\t{name}\0")
        env = {"GIT_INDEX_FILE": index}
        self.git("update-index", "-z", "--index-info", stdin="".join(lines).encode(), env=env)
        return self.git("write-tree", env=env)

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
        when = f"@{date if date is not None else self._clock} +0000"
        if parents is None:
            tip = self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
            parents = [tip] if tip else []
        words = [word for parent in parents for word in ("-p", parent)]
        commit = self.git(
            "commit-tree",
            self.tree(files),
            *words,
            stdin=subject.encode() if isinstance(subject, str) else subject,
            env={"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when},
        )
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def tag(self, name: str, commit: str) -> None:
        """Tag a commit, whatever the name looks like."""
        self.git("update-ref", f"refs/tags/{name}", commit)

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the repository with its content, to be compared later."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file()
        }


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
