"""A project's history of commits that change only the layout, and beside each one that is really slower.

Every edit is compiled at once. It counts when all other functions keep their sizes, the program prints what it printed
before, and the program's file is another one. The programs are kept for the peers, which build nothing themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import tarfile
from collections import Counter
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.layout.edits import ADDED, KINDS, slower
from benchmarks.layout.projects import LINK_ORDER, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.layout.projects import Project

ATTEMPTS = 200
"""Edits that are tried for one commit; one in three or so counts."""

SECONDS = 60.0
"""A program that runs longer was broken by its edit."""

_SIZE = re.compile(r"^[0-9a-f]+ ([0-9a-f]+) [tTwW] (\S+)$", re.MULTILINE)
_IDENTITY = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in {"NAME": "A U Thor", "EMAIL": "author@example.invalid"}.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit: its number, the kind of edit, the file, its id, and the id of the slower one upon it."""

    number: int
    kind: str
    file: str
    commit: str
    slower: str = ""


class History:
    """The commits in `directory`, made one after the other; those of an earlier run are kept.

    `source` is a repository of the project, bare or not. Raises `click.ClickException` where it cannot be built here.
    """

    def __init__(self, project: Project, source: Path, directory: Path, *, seed: int) -> None:
        self.project = project
        self.directory = directory.absolute()
        self._seed = seed
        self._repository = self.directory / "repository"
        self._noted = self.directory / "commits.jsonl"
        if not self._noted.exists():
            self._begin(source)
        lines = self._noted.read_text().splitlines()
        self.steps = [Step(**json.loads(line)) for line in lines]
        """The commits so far; number 0 is the project as it was taken."""
        (self._repository / ".git/index.lock").unlink(missing_ok=True)  # of a run that was killed
        self._git("checkout", "-q", "--force", "layout")
        self._git("reset", "-q", "--hard", self.steps[-1].commit)
        self._compile_all()
        self._sizes = self._functions()
        self._shown = self._output()

    @property
    def input(self) -> Path:
        """The file that the timed command works on."""
        return self.directory / "input"

    def program(self, commit: str) -> Path:
        """The program of a commit, at a path as long as that of any other."""
        return self.directory / "programs" / commit / PROGRAM

    def command(self, program: Path) -> tuple[str, ...]:
        """The timed command, of a program."""
        words = self.project.arguments.split()
        return (str(program), *(word.replace("{input}", str(self.input)) for word in words))

    def extend(self, *, busy: int = 0) -> Step:
        """Make the next commit that changes only the layout, and one upon it that computes for `busy` steps more."""
        number = self.steps[-1].number + 1
        rng = random.Random(f"{self._seed} {number}")
        kind = list(KINDS)[number % len(KINDS)]
        before = self._digest()
        for _ in range(ATTEMPTS):
            file = rng.choice(self._files())
            if self._edit(file, lambda text: KINDS[kind](text, rng)) and self._only_layout(before):
                commit = self._commit(f"{kind}: {file}")
                worse = self._slower(number, busy) if busy else ""
                self._note(Step(number=number, kind=kind, file=file, commit=commit, slower=worse))
                return self.steps[-1]
            self._undo(file)
        raise click.ClickException(f"no commit {number} in {ATTEMPTS} attempts: {kind}")

    def _slower(self, number: int, busy: int) -> str:
        """Commit a slower program on a branch, so that git keeps it, and go back to where the tree was."""
        self._git("checkout", "-q", "-B", f"slower-{number}")
        if (
            not self._edit(self.project.main, lambda text: slower(text, busy))
            or self._output() != self._shown
        ):
            raise click.ClickException(f"{self.project.main}: main could not be made slower")
        commit = self._commit("slower")
        self._git("checkout", "-q", "layout")
        self._compile(self.project.main)
        self._sh(self.project.link())
        return commit

    def _begin(self, source: Path) -> None:
        """Take what is needed of the project, and make the first commit."""
        ours = self.directory / "begun"
        if self.directory.exists() and not ours.exists():
            raise click.ClickException(f"{self.directory} holds something else; choose another --into")
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        ours.touch()
        self._repository.mkdir()
        packed = subprocess.run(
            ["git", "-C", source, "archive", "HEAD", *self.project.paths], check=False, capture_output=True
        )
        if packed.returncode:
            raise click.ClickException(f"{source}: {packed.stderr.decode(errors='replace').strip()}")
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(self._repository, filter="data")
        for name, text in self.project.added.items():
            (self._repository / name).write_text(text)
        (self.directory / "input").write_bytes(self.project.work())
        (self.directory / "link-order").write_text(LINK_ORDER)
        self._git("init", "-q", "-b", "layout")
        (self._repository / ".git/info/exclude").write_text(f"*.o\n/{PROGRAM}\n")
        self._compile_all()
        self._note(Step(number=0, kind="", file="", commit=self._commit("the project")))

    def _files(self) -> list[str]:
        left_out = set(self.project.without)
        found = (each for pattern in self.project.sources for each in self._repository.glob(pattern))
        return sorted(str(each.relative_to(self._repository)) for each in found if each.name not in left_out)

    def _edit(self, file: str, change: Callable[[str], str | None]) -> bool:
        """Change a file and build it; False where it has no place for the change, or no longer compiles."""
        path = self._repository / file
        text = change(path.read_text(errors="surrogateescape"))
        if text is None:
            return False
        path.write_text(text, errors="surrogateescape")
        return self._compile(file) and self._sh(self.project.link())

    def _undo(self, file: str) -> None:
        self._git("checkout", "-q", "--", file)
        self._compile(file)

    def _only_layout(self, before: str) -> bool:
        return self._functions() == self._sizes and self._digest() != before and self._output() == self._shown

    def _compile(self, file: str) -> bool:
        return self._sh(f"{self.project.compiler} {file} -o {Path(file).stem}.o")

    def _compile_all(self) -> None:
        """Build the tree as it is, as the study's recipe does."""
        for each in self._repository.glob("*.o"):
            each.unlink()
        script = "\n".join(self.project.steps)
        done = subprocess.run(["sh", "-euc", script], cwd=self._repository, check=False, capture_output=True)
        if done.returncode:
            raise click.ClickException(f"{self._repository}: {done.stderr.decode(errors='replace')[-2000:]}")

    def _sh(self, line: str) -> bool:
        done = subprocess.run(["sh", "-euc", line], cwd=self._repository, check=False, capture_output=True)
        return done.returncode == 0

    def _functions(self) -> Counter[tuple[str, str]]:
        """Count the functions of all objects by name, without what the compiler numbers, and size."""
        objects = sorted(str(each) for each in self._repository.glob("*.o"))
        told = subprocess.run(
            ["nm", "-S", "--defined-only", *objects], check=True, capture_output=True, text=True
        ).stdout
        return Counter(
            (re.sub(r"\.\d+", "", name), size)
            for size, name in _SIZE.findall(told)
            if not name.startswith(ADDED)
        )

    def _digest(self) -> str:
        return hashlib.sha256((self._repository / PROGRAM).read_bytes()).hexdigest()

    def _output(self) -> str:
        """Name what the program prints, and how it ends."""
        words = (self.project.shown or self.project.arguments).replace("{input}", str(self.input)).split()
        try:
            done = subprocess.run(
                [f"./{PROGRAM}", *words],
                cwd=self._repository,
                check=False,
                capture_output=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        return f"{done.returncode} {hashlib.sha256(done.stdout).hexdigest()}"

    def _commit(self, message: str) -> str:
        """Commit the tree and keep its program."""
        self._git("add", "-A")
        self._git("commit", "-q", "-m", message)
        commit = self._git("rev-parse", "HEAD")
        kept = self.program(commit)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._repository / PROGRAM, kept)
        return commit

    def _note(self, step: Step) -> None:
        with self._noted.open("a") as file:
            file.write(json.dumps(asdict(step)) + "\n")
        if step.number:
            self.steps.append(step)

    def _git(self, *words: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            **_IDENTITY,
        }
        done = subprocess.run(
            ["git", *words], cwd=self._repository, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()
