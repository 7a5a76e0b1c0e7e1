"""Stale inputs: every kind of input of a benchmark is changed, one after the other, between two runs.

Each benchmark prints the number in its input. After a change, `perftrail run` must measure the new number; after the
change was undone, it must measure nothing. Variables of the shell must not reach a benchmark at all. `NOT_TRACKED` are
the inputs whose change perftrail does not see: the documentation names each of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
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

NOT_TRACKED = ("files of the home directory",)
"""Inputs whose change is not seen, in the words of docs/explanation/limits.md."""

_STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cp program.sh program", "cc -o main -I{outside}/include main.c"]
outputs = ["program", "main"]

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
_CALLS_LIBRARY = (
    '#include <stdio.h>\nint number(void);\nint main(void) { printf("number %d\\n", number()); }\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """A kind of input: the keys of its benchmark in TOML, and the file to change; `{}` in its text is the number.

    `after` are the words of a command after each change.
    """

    keys: str
    file: str
    text: str = "number {}\n"
    after: tuple[str, ...] = ()


def _inputs(outside: Path) -> dict[str, _Input]:
    """Return every kind of input; files of other programs are below `outside`."""
    tool = "#!/bin/sh\necho number {}\n"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
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
        "opened": _Input(keys='command = "{study}/opens.sh"', file=f"{outside}/opened.txt"),
        "opened-near": _Input(keys='command = "{study}/opens_near.sh"', file="opened.txt"),
        "started": _Input(keys='command = "{study}/starts.sh"', file=f"{outside}/started", text=tool),
        "interpreter": _Input(keys='command = "{study}/interpreted.sh"', file=f"{outside}/interpreter", text=tool),
        "library": _Input(
            keys='command = "{out}/calls"\n'
            f'build = ["cc -o {{out}}/calls {{study}}/calls.c {outside}/libnumber.so -Wl,-rpath,{outside}"]',
            file=f"{outside}/number.c",
            text="int number(void) { return {}; }\n",
            after=("cc", "-shared", "-o", f"{outside}/libnumber.so", f"{outside}/number.c"),
        ),
        "header-outside": _Input(
            keys=f'command = "{{out}}/main"\nbuild = ["cc -o {{out}}/main -I{outside}/include {{study}}/main.c"]',
            file=f"{outside}/include/number.h",
            text="#define NUMBER {}\n",
        ),
        "package": _Input(
            keys=f"command = \"{outside}/venv/bin/python3 -c 'import number'\"",
            file=f"{outside}/venv/lib/python{python}/site-packages/number.py",
            text="print('number', {})\n",
        ),
    }  # fmt: skip


class _Trial:
    """A study in a directory with one benchmark for each kind of input."""

    def __init__(self, directory: Path) -> None:
        self.outside = directory / "outside"
        self.study = directory / "study"
        self.inputs = _inputs(self.outside)
        self.highest = dict.fromkeys(self.inputs, 1)
        repository = self.study / "repository"
        repository.mkdir(parents=True)
        (repository / "program.sh").write_text(_PROGRAM)
        (repository / "program.sh").chmod(0o755)
        (repository / "main.c").write_text(_PRINTS_HEADER.replace("number.h", "of_build.h"))
        git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@a"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *words], check=True)
        (self.study / "main.c").write_text(_PRINTS_HEADER)
        (self.study / "calls.c").write_text(_CALLS_LIBRARY)
        for script, text in {
            "opens": f"#!/bin/sh\ncat {self.outside}/opened.txt\n",
            "opens_near": f"#!/bin/sh\ncat {self.study}/opened.txt\n",
            "starts": f"#!/bin/sh\n{self.outside}/started\n",
            "interpreted": f"#!{self.outside}/interpreter\n",
        }.items():
            (self.study / f"{script}.sh").write_text(text)
            (self.study / f"{script}.sh").chmod(0o755)
        if "package" in self.inputs:
            venv.create(self.outside / "venv", symlinks=True)
        header = _Input(keys="", file=f"{self.outside}/include/of_build.h", text="#define NUMBER {}\n")
        for each in (header, *self.inputs.values()):
            self.write(each, 1)
        keys = {name: each.keys for name, each in self.inputs.items()}
        metric = "metrics = { n = { pattern = 'number ([0-9]+)' } }"
        tables = [f"[benchmark.{name}]\n{text}\n{metric}\n" for name, text in keys.items()]
        study = _STUDY.replace("{outside}", str(self.outside))
        (self.study / "perftrail.toml").write_text("\n".join([study, *tables]))

    def write(self, each: _Input, number: int) -> None:
        """Write a number into an input; programs are executable.

        Each number has another date: Python does not read a module again whose date and size are those of its bytecode.
        """
        path = self.study / each.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(each.text.replace("{}", str(number)))
        path.chmod(0o755)
        os.utime(path, (number, number))
        if each.after:
            subprocess.run(each.after, check=True)

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
        """Change an input, and restore it; return what went wrong.

        The return value is empty if the new number was measured, and nothing else, also after restoring the input.
        """
        self.highest[name] += 1
        return self._run_with(name, self.highest[name], (float(self.highest[name]),)) or self._run_with(
            name, 1, ()
        )

    def _run_with(self, name: str, number: int, expected: tuple[float, ...]) -> str:
        """Run with another number in an input; return what was measured and not expected, if anything."""
        before = {each: self.measured(each) for each in self.inputs}
        self.write(self.inputs[name], number)
        ended = self.run()
        for other in self.inputs:
            added = self.measured(other)[len(before[other]) :]
            if added != (expected if other == name else ()):
                change = "changed" if expected else "was restored"
                return f"{name} {change}, and {other} measured {added}: {ended.stderr[-500:]}"
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
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as directory:
            losses += filter(None, [check(Path(directory).resolve())])
        trials += 1
    return Result(
        trials=trials, losses=tuple(losses), notes=tuple(f"not tracked: {each}" for each in NOT_TRACKED)
    )


def _single(directory: Path, name: str, keys: str, *, file: str = "", text: str = "number {}\n") -> _Trial:
    """Return a trial with one other benchmark."""
    each = _Input(keys=keys, file=file or f"{name}.txt", text=text)
    with mock.patch(f"{__name__}._inputs", lambda _: {name: each}):
        return _Trial(directory)


def _header_of_build(directory: Path) -> str:
    """Change a header outside of the tree that the build of the revision uses."""
    header = f"{directory}/outside/include/of_build.h"
    keys, text = 'command = "{build}/main"', "#define NUMBER {}\n"
    trial = _single(directory, "built", keys, file=header, text=text)
    trial.run()
    return trial.change("built")


def _file_of_one_point(directory: Path) -> str:
    """Change a file that only the second point opens, by a name that it computes from the parameter."""
    names = [directory / "outside" / f"point-{number}.txt" for number in (1, 2)]
    keys = 'command = "{study}/opens_point.sh {n}"\nparameters = { n = [1, 2] }'
    trial = _single(directory, "point", keys, file=str(names[1]))
    names[0].write_text("number 1\n")
    os.utime(names[0], (1, 1))
    script = trial.study / "opens_point.sh"
    script.write_text(f"#!/bin/sh\ncat {directory}/outside/point-$1.txt\n")
    script.chmod(0o755)
    trial.run()
    return trial.change("point")


def _found_first(directory: Path) -> str:
    """Create a header and a library in directories that are searched first, and remove them again."""
    outside = directory / "outside"
    keys = (
        f'command = "{{out}}/calls"\nbuild = ["cc -o {{out}}/calls {{study}}/calls.c {outside}/libnumber.so '
        f'-Wl,-rpath,{outside}/first:{outside}"]'
    )
    library = ("cc", "-shared", "-o", f"{outside}/libnumber.so", f"{outside}/number.c")
    soname = (*library, "-Wl,-soname,libnumber.so")
    text = "int number(void) { return {}; }\n"
    each = _Input(keys=keys, file=f"{outside}/number.c", text=text, after=soname)
    with mock.patch(f"{__name__}._inputs", lambda _: {"first": each}):
        trial = _Trial(directory)
    trial.run()
    first = outside / "first" / "libnumber.so"
    first.parent.mkdir()
    (outside / "number.c").write_text(text.replace("{}", "2"))
    subprocess.run([first if word == f"{outside}/libnumber.so" else word for word in soname], check=True)
    os.utime(first, (1, 1))
    trial.run()
    shutil.rmtree(first.parent)
    trial.run()
    found = trial.measured("first")
    return "" if sorted(found) == [1.0, 2.0] else f"a library was found first: {found}"


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


CHECKS = (_header_of_build, _file_of_one_point, _found_first, _other_path, _other_shell, _edited_meanwhile)
"""Further trials, each with a separate study; the return value is what went wrong, or empty."""
