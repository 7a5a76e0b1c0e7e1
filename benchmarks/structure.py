"""The size of the program, and the numbers of calls and modules of its two main paths.

    python -m benchmarks.structure

The measuring path is that of `find`, from the command to the start of a process and to its stored sample. The reading
path is that of `report`, from the command to the read samples and to the written page. A path's calls are the functions
of perftrail that wait for each other at these moments; `--names` prints them.
"""

from __future__ import annotations

import ast
import io
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType

from click.testing import CliRunner

import perftrail
from benchmarks.markdown import table
from perftrail.cli.main import cli

ROOT = Path(perftrail.__file__).parent

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cp program.sh program"]
outputs = ["program"]

[benchmark.it]
command = "{build}/program"
metrics = { cost = { pattern = 'cost ([0-9]+)' } }

[measure]
warmups = 0
invocations = 2

[find]
metric = "cost"
"""

STARTS = "process/launcher.py"
"""The module that starts processes: only those of benchmarks count."""

MEASURING = {STARTS: "Launcher.run", "store/sql.py": "SqlStore.add"}
READING = {"store/outcomes.py": "read_samples", "present/html_page.py": "to_html"}


def main() -> None:
    """Print the tables."""
    print(table([("size", "number"), *((name, f"{value:,}") for name, value in size().items())]))
    print()
    rows = [("path", "calls", "modules")]
    with tempfile.TemporaryDirectory() as directory:
        write_study(Path(directory))
        for name, command, ends in (
            ("find to a stored sample", "find", MEASURING),
            ("store to page", "report", READING),
        ):
            functions = path(command, directory, ends)
            rows.append((name, str(len(functions)), str(len({each.co_filename for each in functions}))))
            if "--names" in sys.argv:
                print(
                    "\n".join(
                        f"{Path(each.co_filename).relative_to(ROOT)} {each.co_qualname}" for each in functions
                    )
                )
    print(table(rows))


def size() -> dict[str, int]:
    """Return the numbers of the code, read from its text."""
    lines = {file: code_lines(file.read_text(encoding="utf-8")) for file in sorted(ROOT.rglob("*.py"))}
    importers = importing(list(lines))
    single = [name for name, by in importers.items() if len(by) == 1]
    return {
        "modules": len(lines),
        "lines of code, without comments, docstrings and blank lines": sum(lines.values()),
        "imports of own modules": sum(map(len, importers.values())),
        "modules with one importer": len(single),
        "modules below 60 lines of code": sum(0 < each < 60 for each in lines.values()),
        "median lines of a module": round(statistics.median(each for each in lines.values() if each)),
    }


def code_lines(text: str) -> int:
    """Return how many lines have code that is not a docstring."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    blank = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


def importing(files: list[Path]) -> dict[str, set[str]]:
    """Return the modules that import each module, imports for types included."""
    names = {_module(file): file for file in files}
    found: dict[str, set[str]] = {name: set() for name in names}
    for name, file in names.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for each in node.names:
                    inner = f"{node.module}.{each.name}"
                    used = inner if inner in found else node.module
                    if used in found and used != name:
                        found[used].add(name)
    return found


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def write_study(directory: Path) -> None:
    """Write a study of six revisions, of which the fourth changed the program's cost."""
    repository = directory / "repository"
    repository.mkdir()

    def git(*arguments: str) -> None:
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *author, *arguments], cwd=repository, check=True, capture_output=True)

    git("init", "-q")
    for number in range(6):
        text = f"#!/bin/sh\necho cost {100 + 50 * (number > 2)} # {number}\n"
        (repository / "program.sh").write_text(text)
        (repository / "program.sh").chmod(0o755)
        git("add", "-A")
        git("commit", "-q", "-m", f"change {number}")
    (directory / "perftrail.toml").write_text(STUDY)


def path(command: str, directory: str, ends: Mapping[str, str]) -> list[CodeType]:
    """Run a command; return the functions of perftrail that wait for each other when the ends are first called."""
    found: dict[str, list[CodeType]] = {}

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)):
            return
        file = str(Path(code.co_filename).relative_to(ROOT))
        if ends.get(file) == code.co_qualname:
            functions = own_functions(frame)
            if file != STARTS or any(each.co_qualname == "Invoker.invoke" for each in functions):
                found.setdefault(file, functions)

    arguments = [command, directory]
    if command == "report":
        arguments += ["-o", str(Path(directory) / "page")]
    sys.setprofile(watch)
    try:
        CliRunner().invoke(cli, arguments, catch_exceptions=False)
    finally:
        sys.setprofile(None)
    if missing := ends.keys() - found.keys():
        raise RuntimeError(f"{command} never called {', '.join(sorted(missing))}")
    return list(dict.fromkeys(code for codes in found.values() for code in reversed(codes)))


def own_functions(frame: FrameType | None) -> list[CodeType]:
    """Return the functions of perftrail on the stack."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(ROOT)):
            found.append(frame.f_code)
        frame = frame.f_back
    return found


if __name__ == "__main__":
    main()
