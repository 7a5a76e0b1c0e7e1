"""A project's history of commits that change only the layout, with slower commits.

Every edit is compiled immediately. It counts if all other functions keep their sizes, the output of the program is the
same, and the program's file is different. The programs are stored for the peers, which do not build.
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
"""Maximum number of tried edits for one commit; about one in three counts."""

SECONDS = 60.0
"""A program that runs longer was broken by its edit."""

_SIZE = re.compile(r"^[0-9a-f]+ ([0-9a-f]+) [tTwW] (\S+)$", re.MULTILINE)
_IDENTITY = {
    f"GIT_{role}_{name}": text
    for role in ("AUTHOR", "COMMITTER")
    for name, text in {"NAME": "A U Thor", "EMAIL": "author@example.invalid"}.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit: its number, the kind of edit, the file, its id, and the id of its slower child."""

    number: int
    kind: str
    file: str
    commit: str
    slower: str = ""


class History:
    """The commits in `directory`, created one after the other; those of an earlier run stay.

    `source` is a repository of the project, bare or not. Raises `click.ClickException` if it cannot be built here.
    """

    def __init__(self, project: Project, source: Path, directory: Path, *, seed: int) -> None:
        self.project = project
        self.directory = directory.absolute()
        self._seed = seed
        self._repository = self.directory / "repository"
        self._file = self.directory / "commits.jsonl"
        if not self._file.exists():
            self._begin(source)
        lines = self._file.read_text().splitlines()
        self.steps = [Step(**json.loads(line)) for line in lines]
        """The commits so far; number 0 is the unchanged project."""
        (self._repository / ".git/index.lock").unlink(missing_ok=True)  # from a killed run
        self._git("checkout", "-q", "--force", "layout")
        self._git("reset", "-q", "--hard", self.steps[-1].commit)
        self._compile_all()
        self._sizes = self._functions()
        self._expected_output = self._output()

    @property
    def input(self) -> Path:
        """The input file of the timed command."""
        return self.directory / "input"

    def program(self, commit: str) -> Path:
        """The program of a commit. All paths have the same length."""
        return self.directory / "programs" / commit / PROGRAM

    def command(self, program: Path) -> tuple[str, ...]:
        """Return the timed command of a program."""
        arguments = self.project.arguments.split()
        return (str(program), *(each.replace("{input}", str(self.input)) for each in arguments))

    def extend(self, *, busy: int = 0) -> Step:
        """Create the next commit that changes only the layout, and a child that computes `busy` more steps."""
        number = self.steps[-1].number + 1
        rng = random.Random(f"{self._seed} {number}")
        kind = list(KINDS)[number % len(KINDS)]
        before = self._digest()
        for _ in range(ATTEMPTS):
            file = rng.choice(self._files())
            if self._edit(file, lambda text: KINDS[kind](text, rng)) and self._only_layout(before):
                commit = self._commit(f"{kind}: {file}")
                slower_commit = self._slower(number, busy) if busy else ""
                self._record(Step(number=number, kind=kind, file=file, commit=commit, slower=slower_commit))
                return self.steps[-1]
            self._undo(file)
        raise click.ClickException(f"no commit {number} in {ATTEMPTS} attempts: {kind}")

    def _slower(self, number: int, busy: int) -> str:
        """Commit a slower program on a branch, so that git keeps it, and restore the tree."""
        self._git("checkout", "-q", "-B", f"slower-{number}")
        if (
            not self._edit(self.project.main, lambda text: slower(text, busy))
            or self._output() != self._expected_output
        ):
            raise click.ClickException(f"{self.project.main}: main could not be made slower")
        commit = self._commit("slower")
        self._git("checkout", "-q", "layout")
        self._compile(self.project.main)
        self._sh(self.project.link())
        return commit

    def _begin(self, source: Path) -> None:
        """Copy the necessary files of the project, and create the first commit."""
        marker = self.directory / "begun"
        if self.directory.exists() and not marker.exists():
            raise click.ClickException(f"{self.directory} contains something else; choose another --into")
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        marker.touch()
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
        self._record(Step(number=0, kind="", file="", commit=self._commit("the project")))

    def _files(self) -> list[str]:
        excluded = set(self.project.without)
        found = (each for pattern in self.project.sources for each in self._repository.glob(pattern))
        return sorted(str(each.relative_to(self._repository)) for each in found if each.name not in excluded)

    def _edit(self, file: str, change: Callable[[str], str | None]) -> bool:
        """Change a file and build it; False if it has no place for the change, or no longer compiles."""
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
        return (
            self._functions() == self._sizes
            and self._digest() != before
            and self._output() == self._expected_output
        )

    def _compile(self, file: str) -> bool:
        return self._sh(f"{self.project.compiler} {file} -o {Path(file).stem}.o")

    def _compile_all(self) -> None:
        """Build the tree with the study's recipe."""
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
        """Count the functions of all objects by size and name, without the numbers that the compiler adds."""
        objects = sorted(str(each) for each in self._repository.glob("*.o"))
        listing = subprocess.run(
            ["nm", "-S", "--defined-only", *objects], check=True, capture_output=True, text=True
        ).stdout
        return Counter(
            (re.sub(r"\.\d+", "", name), size)
            for size, name in _SIZE.findall(listing)
            if not name.startswith(ADDED)
        )

    def _digest(self) -> str:
        return hashlib.sha256((self._repository / PROGRAM).read_bytes()).hexdigest()

    def _output(self) -> str:
        """Return a digest of the output of the program, with its exit code."""
        arguments = (
            (self.project.printing or self.project.arguments).replace("{input}", str(self.input)).split()
        )
        try:
            done = subprocess.run(
                [f"./{PROGRAM}", *arguments],
                cwd=self._repository,
                check=False,
                capture_output=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        return f"{done.returncode} {hashlib.sha256(done.stdout).hexdigest()}"

    def _commit(self, message: str) -> str:
        """Commit the tree and store its program."""
        self._git("add", "-A")
        self._git("commit", "-q", "-m", message)
        commit = self._git("rev-parse", "HEAD")
        stored = self.program(commit)
        stored.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._repository / PROGRAM, stored)
        return commit

    def _record(self, step: Step) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(step)) + "\n")
        if step.number:
            self.steps.append(step)

    def _git(self, *arguments: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            **_IDENTITY,
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self._repository,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()
