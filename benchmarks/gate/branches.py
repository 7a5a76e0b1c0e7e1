"""A repository with a base, a branch that is another build of the same speed, and one that is slower."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.planted import SOURCE, calibrate

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[study]
title = "Is the branch slower?"

[source]
kind = "git"
location = "repository"

[build]
steps = ["cc -O2 -o loop loop.c"]
outputs = ["loop"]

[benchmark.loop]
command = "{build}/loop"
timeout = "60s"

[measure]
invocations = "5..30"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """The file of the study, and its commits: `unchanged` contains another text than `base`, `slower` works longer."""

    study: str
    base: str
    unchanged: str
    slower: str
    steps: int
    effect: float

    def head(self, truth: str) -> str:
        """The commit that is compared with the base."""
        return self.slower if truth == "slower" else self.unchanged


def branches(directory: Path, *, milliseconds: float, effect: float) -> Branches:
    """Create the repository and its study, or return those of an earlier run."""
    file = directory / "branches.json"
    if file.exists():
        return Branches(**json.loads(file.read_text()))
    repository = directory / "repository"
    repository.mkdir(parents=True)
    _git(repository, "init", "-q", "-b", "main")
    program = directory / "loop"
    subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
    steps = calibrate(str(program), milliseconds)
    (directory / "perftrail.toml").write_text(STUDY)
    created = Branches(
        study=str(directory / "perftrail.toml"),
        base=_commit(repository, steps, "base"),
        unchanged=_commit(repository, steps, "unchanged"),
        slower=_commit(repository, round(steps * (1.0 + effect)), "slower"),
        steps=steps,
        effect=effect,
    )
    file.write_text(json.dumps(asdict(created)))
    return created


def _commit(repository: Path, steps: int, note: str) -> str:
    """Commit the program with its work and a text: without the text, the unchanged branch would be the same build."""
    text = SOURCE.read_text().replace("count > 1 ? strtoull(arguments[1], NULL, 10) : 0", f"{steps}ULL")
    text = text.replace(
        "int main(int count, char **arguments)", f'const char note[] = "{note}";\n\nint main(void)'
    )
    (repository / "loop.c").write_text(text)
    _git(repository, "add", "-A")
    _git(repository, "commit", "-q", "-m", note)
    return _git(repository, "rev-parse", "HEAD")


def _git(repository: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(repository.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{name}": text for role in ("AUTHOR", "COMMITTER") for name, text in _PERSON.items()},
    }
    done = subprocess.run(
        ["git", *arguments], cwd=repository, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


_PERSON = {"NAME": "A U Thor", "EMAIL": "author@example.invalid"}
