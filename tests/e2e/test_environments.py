"""One environment for one verdict: what changes outside of the repository is never the fault of a commit."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.printing import perftrail
from tests.needs import needs
from tests.sources.repositories import Repository

pytestmark = [pytest.mark.long, pytest.mark.slow("builds")]

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["sh ./build.sh"]
outputs = ["program"]

[benchmark.work]
command = "{build}/program"
metrics = { cost = { pattern = 'cost ([0-9.]+)' } }

[measure]
warmups = 0

[find]
metric = "cost"
"""
NOISE = "$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')"
PRINTS = f'printf "cost %s.%s\\n" $cost {NOISE}'
"""A line of a script that prints $cost plus at most 0.3."""

MAIN = """\
#include <stdio.h>
#include <unistd.h>
#include "cost.h"
int main(void) { printf("cost %d.%d\\n", COST, getpid() % 9); return 0; }
"""
COMPILED = {"main.c": MAIN, "build.sh": "cc -I$1/include -o program main.c\n"}
LINKED = {
    "main.c": MAIN.replace("COST", "cost()").replace('#include "cost.h"', "int cost(void);"),
    "build.sh": "cc -o program main.c -L$1/lib -lcost -Wl,-rpath,$1/lib\n",
}
SCRIPT = 'printf "#!/bin/sh\\ncost=%s\\n" "$({cost})" > program; cat main.sh >> program; chmod +x program\n'
PYTHON = (
    'printf "#!/bin/sh\\nPYTHONPATH=%s exec python3 -sc \\"import costs\\"\\n" $1/site > program\n'
    "cat main.sh >> program; chmod +x program\n"
)


def header(environment: Path, cost: int) -> None:
    (environment / "include").mkdir(exist_ok=True)
    (environment / "include" / "cost.h").write_text(f"#define COST {cost}\n")


def copied(environment: Path, cost: int) -> None:
    (environment / "table").write_text(f"{cost}\n")


def library(environment: Path, cost: int) -> None:
    (environment / "lib").mkdir(exist_ok=True)
    source = environment / "cost.c"
    source.write_text(f"int cost(void) {{ return {cost}; }}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", environment / "lib" / "libcost.so", source], check=True)


def prefix(environment: Path, cost: int) -> None:
    (environment / str(cost)).mkdir(exist_ok=True)
    (environment / str(cost) / "cost.h").write_text(f"#define COST {cost}\n")
    (environment / "include").unlink(missing_ok=True)
    (environment / "include").symlink_to(str(cost))


def package(environment: Path, cost: int) -> None:
    (environment / "site").mkdir(exist_ok=True)
    text = f"import os\nprint(f'cost {cost}.{{os.getpid() % 9}}')\n"
    (environment / "site" / "costs.py").write_text(text)
    os.utime(environment / "site" / "costs.py", (cost, cost))  # Python compares the dates of bytecode


def compiler(environment: Path, cost: int) -> None:
    (environment / "bin" / "a-compiler").write_text(f"#!/bin/sh\necho {cost}\n")
    (environment / "bin" / "a-compiler").chmod(0o755)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a revision's build is, how its environment gets a cost, and the file that a message names."""

    files: dict[str, str]
    write: Callable[[Path, int], None]
    named: str


CASES = {
    "header": Case(files=COMPILED, write=header, named="include/cost.h"),
    "copied file": Case(
        files={"main.sh": PRINTS, "build.sh": SCRIPT.format(cost="cat $1/table")}, write=copied, named="table"
    ),
    "shared library at run time": Case(files=LINKED, write=library, named="lib/libcost.so"),
    "two prefixes": Case(files=COMPILED, write=prefix, named="include/cost.h"),
    "pip dependency": Case(files={"main.sh": "", "build.sh": PYTHON}, write=package, named="site/costs.py"),
    "compiler": Case(
        files={"main.sh": PRINTS, "build.sh": SCRIPT.format(cost="a-compiler")},
        write=compiler,
        named="bin/a-compiler",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Three revisions that differ in a comment, in an environment with a cost. The study does not name it."""

    case: Case
    study: Path
    revisions: tuple[str, ...]

    @property
    def environment(self) -> Path:
        return self.study / "environment"

    def compare(self, base: int, head: int) -> tuple[list[str], str]:
        """Compare two revisions; return the verdicts, and what was reported in one line."""
        revisions = (self.revisions[base], self.revisions[head])
        done = perftrail("compare", *revisions, self.study, "--max-pairs", "24", "--json")
        answer = json.loads(done.stdout)
        return [each["verdict"] for each in answer["comparisons"]], " ".join(done.stderr.split())

    def find(self) -> str:
        """Search the whole history; return the verdict. The answer states its environment."""
        done = perftrail("find", self.revisions[0], self.revisions[-1], self.study, "--json")
        answer = json.loads(done.stdout)
        assert any(tool.startswith("cc: ") for tool in answer["tools"])
        return str(answer["verdict"])


def make(directory: Path, case: Case) -> History:
    environment = directory / "environment"
    (environment / "bin").mkdir(parents=True)
    case.write(environment, 100)
    repository = Repository(directory / "repository")
    revisions = []
    for number in range(3):
        files = {
            **case.files,
            "build.sh": f"set -- {environment}\nPATH=$1/bin:$PATH\n{case.files['build.sh']}",
        }
        marked = {"main.c": f'const char *name = "{number}";\n', "main.sh": f"\n# {number}\n"}
        files |= {name: files[name] + text for name, text in marked.items() if name in files}
        revisions.append(repository.commit({**files, "README": str(number)}))
    (directory / "perftrail.toml").write_text(STUDY)
    return History(case=case, study=directory, revisions=tuple(revisions))


@needs("strace")
@pytest.mark.parametrize("name", CASES)
def test_no_commit_is_blamed_for_a_change_of_the_environment(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    history = make(tmp_path, case)
    verdicts, _ = history.compare(0, 1)
    assert set(verdicts) <= {"same", "unclear"}, verdicts
    case.write(history.environment, 200)
    verdicts, reported = history.compare(1, 2)
    assert set(verdicts) <= {"same", "unclear"}, reported
    assert case.named in reported
    assert history.find() in ("none", "unclear")


def test_a_variable_of_the_shell_reaches_no_build_and_no_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"main.sh": PRINTS, "build.sh": SCRIPT.format(cost="echo ${COST:-100}")}
    history = make(tmp_path, Case(files=files, write=copied, named=""))
    monkeypatch.setenv("COST", "200")
    history.compare(0, 1)
    monkeypatch.setenv("COST", "100")
    verdicts, _ = history.compare(1, 2)
    assert set(verdicts) <= {"same", "unclear"}


def test_a_restored_cache_is_built_again_before_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without strace, a build of another machine's session is all that perftrail knows of its environment."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for directory in ("/bin", "/usr/bin", "/usr/local/bin"):
        for program in Path(directory).iterdir():
            if program.name != "strace" and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tools))
    case = CASES["copied file"]
    history = make(tmp_path / "study", case)
    history.compare(0, 1)
    for marker in (history.study / ".perftrail" / "builds").glob("*/built.json"):
        text = re.sub(r'"session": "[^"]*"', '"session": "2026-11-01 another-boot"', marker.read_text())
        marker.write_text(text)
    case.write(history.environment, 200)
    verdicts, reported = history.compare(1, 2)
    assert set(verdicts) <= {"same", "unclear"}, reported
    assert "the environment of builds changed since 2026-11-01" in reported
    assert history.find() in ("none", "unclear")
