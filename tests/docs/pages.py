"""The blocks of pages: commands that a reader copies, and parts of study files."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.starting import REPOSITORY

DOCS = REPOSITORY / "docs"
BLOCK = re.compile(
    r"(?:^<!-- (?P<comment>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
PROMPT = re.compile(r"^(?:\w+\$|\$) +", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code of a page, with the comment in the line before it."""

    page: Path
    line: int
    kind: str
    text: str
    comment: str

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The command lines after the prompts, without output; of a script the whole text."""
        if self.kind == "sh":
            return [self.text]
        found: list[str] = []
        for part in PROMPT.split(self.text)[1:]:
            line, *rest = part.splitlines()
            while rest and (line.endswith("\\") or rest[0].startswith("> ")):
                line += "\n" + rest.pop(0).removeprefix("> ")
            found.append(line)
        return found


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    text = page.read_text("utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("kind")) + 1,
            kind=found["kind"],
            text=found["text"],
            comment=found["comment"] or "",
        )
        for found in BLOCK.finditer(text)
    ]


def perftrail_lines(page: Path) -> list[tuple[str, list[str]]]:
    """Return the words after `perftrail` of each command line in a page's blocks and text, with its place."""
    text = page.read_text("utf-8")
    found: list[tuple[str, list[str]]] = []
    for block in blocks(page):
        if block.kind in {"console", "sh", "yaml", "ini"}:
            lines = block.commands if block.kind == "console" else block.text.splitlines()
            found += [(block.place, words) for line in lines for words in _calls(line)]
    for line, row in enumerate(
        BLOCK.sub(lambda block: "\n" * block.group().count("\n"), text).splitlines(), 1
    ):
        for code in re.findall(r"`(?:git )?(perftrail [^`]+)`", row):
            found += [(f"{page.relative_to(REPOSITORY)}:{line}", words) for words in _calls(code)]
    return found


CALL = re.compile(r"""(?:^|[\s"'/(|])perftrail"?\s+(?!perftrail)(?=[a-z-])""")


def _calls(line: str) -> list[list[str]]:
    """Return the words after `perftrail`. The quotes of a call inside of other quotes may have no end."""
    call = CALL.search(line)
    if call is None:
        return []
    rest = line[call.end() :]
    try:
        return [_words(rest)]
    except ValueError:
        return [re.sub(r"[\"')]", "", rest).split()]


def _words(text: str) -> list[str]:
    words: list[str] = []
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;<>&")
    lexer.wordchars += ":%,@+!^{}[]…$"
    for word in lexer:
        if "--" not in words and re.fullmatch(r"[|;<>&]+", word):
            break
        words.append(word)
    return words


HISTORY = r"""
git init -q -b main .
git config user.name Ann
git config user.email ann@example.org
save() { git add -A; git commit -q -m "$1"; git tag "$2"; }
script() { printf '#!/bin/sh\n%s\n' "$2" > "$1"; chmod +x "$1"; }
script bench.sh "echo 'REAL TIME=0.01'; echo answer 1"
printf 'bench work: bench.sh cost room\n\tcat bench.sh cost room > $@ && chmod +x $@\n' > Makefile
echo 'sleep 0.001; echo cost 100' > cost
echo 'echo room 1000' > room
script build.sh make
script old 'cat "$1"'
script new 'cat "$1"'
script run 'exit 0'
echo data > data
seq 200 > numbers.txt
printf '.perftrail/\nbench\n' > .gitignore
cat > perftrail.toml <<'END'
[source]
kind = "git"
location = "."
range = "v1.0..HEAD"

[build]
steps = ["make"]
outputs = ["bench"]

[benchmark.work]
command = "{build}/bench parse"
metrics = { cost = { pattern = 'cost ([0-9.]+)' }, room = { pattern = 'room ([0-9.]+)' } }

[measure]
invocations = 2
warmups = 0
quiet_threshold = 100

[find]
metric = "cost"
threshold = 0.05
END
save "Start" v1.0
echo 1 > README; save "Add a README" v1.2
echo 2 > README; save "Extend the README" v1.3
echo 3 > README; save "Describe the usage" v1.5
echo 'sleep 0.03; echo cost 900' > cost; save "Ignore upper and lower case" v1.6
echo 4 > README; save "Shorten the README" v1.7
echo 'echo room 800' > room; save "Use less room" v2.0
echo 5 > README; save "Add a licence" BASE
echo 'sleep 0.001; echo cost 100' > cost
git add cost
"""
"""A repository with the names that the pages use, a regression in v1.6, a study, and a staged fix."""


def make_history(directory: Path) -> None:
    """Create the repository in which the pages' commands run."""
    directory.mkdir()
    subprocess.run(["sh", "-e", "-c", HISTORY], cwd=directory, check=True)
    (directory / "nightly").mkdir()
    results = REPOSITORY / "tests" / "formats" / "data" / "hyperfine" / "plain.json"
    (directory / "nightly" / "1.json").write_bytes(results.read_bytes())
