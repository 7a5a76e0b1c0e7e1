"""Stale inputs: every kind of input of a benchmark is changed, one after the other, between two runs.

Each benchmark prints the number in its input. After a change, `perftrail run` must measure the new number. Variables of
the shell must not reach a benchmark at all. `NOT_TRACKED` are the inputs whose change perftrail does not see: the
documentation names each of them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

from campaign import Result, command_line
from perftrail.builds import named_files
from perftrail.model.measurement import Measurement
from perftrail.process.machine import read_machine
from perftrail.store import open_store

if TYPE_CHECKING:
    from campaign.command_line import Ended

NOT_TRACKED = (
    "programs that a script starts",
    "packages of a virtual environment",
    "shared libraries",
    "files that a program opens by itself",
    "headers outside of the study and the tree",
    "files of the home directory",
)
"""Inputs whose change is not seen, in the words of docs/explanation/limits.md."""

_STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cp program.sh program"]
outputs = ["program"]

[measure]
warmups = 0
invocations = 1

[service.numbers]
command = "{study}/serve.sh {data}"
ready = { line = "ready" }
"""
_PROGRAM = """\
#!/bin/sh
IFS=:
[ $# -gt 0 ] || set -- $FILES
case $1 in --file=*) set -- "${1#--file=}" ;; esac
exec cat "$@"
"""
_PRINTS_HEADER = (
    '#include <stdio.h>\n#include "number.h"\nint main(void) { printf("number %d\\n", NUMBER); }\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """A kind of input: the keys of its benchmark in TOML, and the file to change; `{}` in its text is the number."""

    keys: str
    file: str
    text: str = "number {}\n"


def _inputs(outside: Path) -> dict[str, _Input]:
    """Return every kind of input; files of other programs are below `outside`."""
    tool = "#!/bin/sh\necho number {}\n"
    return {
        "plain": _Input(keys='command = "{build}/program {study}/plain.txt"', file="plain.txt"),
        "quoted": _Input(keys="command = \"{build}/program '{study}/a quoted.txt'\"", file="a quoted.txt"),
        "glob": _Input(keys='shell = true\ncommand = "cat {study}/glob/*.txt"', file="glob/1.txt"),
        "list": _Input(
            keys='command = "{build}/program"\nenv = { FILES = "{study}/main.c:{study}/list/1" }', file="list/1"
        ),
        "directory": _Input(keys='shell = true\ncommand = "cd {study} && cat near/1.txt"', file="near/1.txt"),
        "option": _Input(keys='command = "{build}/program --file={study}/option.txt"', file="option.txt"),
        "absolute": _Input(keys=f'command = "{{build}}/program {outside}/1.txt"', file=f"{outside}/1.txt"),
        "stdin": _Input(keys='command = "cat"\nstdin = "{study}/standard input.txt"', file="standard input.txt"),
        "tool": _Input(keys='command = "planted-tool"', file=f"{outside}/bin/planted-tool", text=tool),
        "setup": _Input(
            keys='command = "{build}/program {data}/n"\nsetup = ["cp {study}/setup.txt {data}/n"]', file="setup.txt"
        ),
        "service": _Input(
            keys='services = ["numbers"]\ncommand = "{build}/program {data.numbers}/n"',
            file="serve.sh",
            text="#!/bin/sh\necho number {} > $1/n\necho ready\nexec sleep 1000\n",
        ),
        "header": _Input(
            keys='command = "{out}/main"\nbuild = ["cc -o {out}/main -I{study}/include {study}/main.c"]',
            file="include/number.h",
            text="#define NUMBER {}\n",
        ),
    }  # fmt: skip


class _Trial:
    """A study in a directory with one benchmark for each kind of input."""

    def __init__(self, directory: Path) -> None:
        self.outside = directory / "outside"
        self.study = directory / "study"
        self.inputs = _inputs(self.outside)
        self.numbers = dict.fromkeys(self.inputs, 1)
        repository = self.study / "repository"
        repository.mkdir(parents=True)
        (repository / "program.sh").write_text(_PROGRAM)
        (repository / "program.sh").chmod(0o755)
        git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@a"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *words], check=True)
        (self.study / "main.c").write_text(_PRINTS_HEADER)
        for name, each in self.inputs.items():
            self.write(each, self.numbers[name])
        keys = {name: each.keys for name, each in self.inputs.items()}
        metric = "metrics = { n = { pattern = 'number ([0-9]+)' } }"
        tables = [f"[benchmark.{name}]\n{text}\n{metric}\n" for name, text in keys.items()]
        (self.study / "perftrail.toml").write_text("\n".join([_STUDY, *tables]))

    def write(self, each: _Input, number: int) -> None:
        """Write a number into an input; programs are executable."""
        path = self.study / each.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(each.text.replace("{}", str(number)))
        path.chmod(0o755)

    def run(self, path: str = "outside/bin", **variables: str) -> Ended:
        """Measure what is missing, with a directory of programs at the front of `PATH`, and other variables."""
        front = self.outside.parent / path
        with mock.patch.dict(os.environ, {"PATH": f"{front}:{os.environ['PATH']}", **variables}):
            return command_line.run(["run"], self.study)

    def measured(self, name: str) -> tuple[float, ...]:
        """Return the numbers that one benchmark printed, the oldest runnable first."""
        with open_store(str(self.study / ".perftrail/results.db"), access="read") as store:
            keys = [each.key for each in store.runnables(name)]
            found = store.outcomes(tuple(keys), read_machine().id)
        outcomes = [each for key in keys for each in found.get(key, ())]
        return tuple(each.values["n"] for each in outcomes if isinstance(each, Measurement))

    def change(self, name: str) -> str:
        """Change an input, run, and return what went wrong; empty if the new number was measured, and no other."""
        before = {each: self.measured(each) for each in self.inputs}
        self.numbers[name] += 1
        self.write(self.inputs[name], self.numbers[name])
        ended = self.run()
        for other in self.inputs:
            added = self.measured(other)[len(before[other]) :]
            if added != ((float(self.numbers[name]),) if other == name else ()):
                return f"{name} changed, and {other} measured {added}: {ended.stderr[-500:]}"
        return ""


@mock.patch.object(named_files, "temporary_directories", tuple)
def run(seconds: float, seed: int) -> Result:
    """Change inputs of all kinds in random order until the time is over, each kind at least once.

    Files outside of the study count, though all files of this campaign are temporary.
    """
    command_line.import_all()
    ended = time.monotonic() + seconds
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        trial = _Trial(Path(directory).resolve())
        first = trial.run()
        wrong = [f"{each}: {trial.measured(each)}" for each in trial.inputs if trial.measured(each) != (1.0,)]
        losses = [f"the first run: {wrong}: {first.stderr[-500:]}"] if wrong else []
        trials = 1
        while not losses and (trials == 1 or time.monotonic() < ended):
            losses += filter(None, map(trial.change, rng.sample(list(trial.inputs), len(trial.inputs))))
            trials += len(trial.inputs)
    for check in (_other_path, _other_shell, _edited_meanwhile):
        with tempfile.TemporaryDirectory() as directory:
            losses += filter(None, [check(Path(directory).resolve())])
        trials += 1
    return Result(
        trials=trials, losses=tuple(losses), notes=tuple(f"not tracked: {each}" for each in NOT_TRACKED)
    )


def _single(directory: Path, name: str, keys: str) -> _Trial:
    """Return a trial with one other benchmark."""
    with mock.patch(f"{__name__}._inputs", lambda _: {name: _Input(keys=keys, file=f"{name}.txt")}):
        return _Trial(directory)


def _other_path(directory: Path) -> str:
    """Run with two directories of programs in turn."""
    trial = _single(directory, "path", 'command = "planted-tool"')
    for number in (1, 2):
        trial.write(
            _Input(keys="", file=f"{directory}/{number}/planted-tool", text="#!/bin/sh\necho number {}\n"),
            number,
        )
        trial.run(str(number))
    found = trial.measured("path")
    return "" if found == (1.0, 2.0) else f"another PATH: {found}"


def _other_shell(directory: Path) -> str:
    """Run in shells with another locale, time zone and variables."""
    command = (
        "{build}/program {study}/shell.txt; echo number $(env | grep -Ec '^(GREETING|LC_ALL)=|Lisbon|de_DE')"
    )
    trial = _single(directory, "shell", f"shell = true\ncommand = '''{command}'''")
    trial.run()
    trial.write(trial.inputs["shell"], 2)
    trial.run(GREETING="hello", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8", TZ="Europe/Lisbon")
    found = trial.measured("shell")
    return "" if found == (0.0, 0.0) else f"variables of the shell reach a benchmark: {found}"


def _edited_meanwhile(directory: Path) -> str:
    """Edit an input while its benchmark runs, restore it, and run again."""
    edits = "if mkdir {study}/../edited 2>/dev/null; then echo number 9 > {study}/meanwhile.txt; fi"
    keys = f"shell = true\ncommand = '''{{build}}/program {{study}}/meanwhile.txt; {edits}'''"
    trial = _single(directory, "meanwhile", keys)
    first = trial.run()
    if first.code == 0 or "changed while" not in first.stderr or trial.measured("meanwhile"):
        return f"an input was edited meanwhile: {trial.measured('meanwhile')} {first.stderr[-500:]}"
    trial.write(trial.inputs["meanwhile"], 1)
    again = trial.run()
    found = trial.measured("meanwhile")
    return "" if found == (1.0,) else f"an input was restored: {found} {again.stderr[-500:]}"
