"""Studies in which each file and directory that commands open is something else, as a hostile clone contains it.

Each trial is a copy of a measured study, in which a link, a pipe, a device, a directory or another file replaces one
entry. A command runs over it, for a results directory that the user accepted, and for one that only came with a
clone. Nothing outside of the study may change or be shown, and the command must end without a traceback.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import shutil
import socket
import stat
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from campaign import Result, clients, command_line
from campaign.scenarios import write_study
from perftrail.file_tree import remove_tree
from perftrail.results_directory import DATABASE, DIRECTORIES, FILES, RESULTS, accept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from campaign.command_line import Client, Ended

logger = logging.getLogger("campaign")

SECRET = "b3a1-secret-of-the-user"
"""Content of a file outside, which no output and no file of the study may contain."""

SECONDS = 60.0
"""Time after which a command hangs."""

HUGE_BYTES = 1 << 40

WRONG_USAGE = 2
"""Exit code of a command with wrong words, or with a study that is not valid."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "init": ("init", ".", "--force"),
    "init --last": ("init", "--last", "--force"),
    "check": ("check", "."),
    "check --try": ("check", ".", "--try", "1", SANDBOX := "--sandbox"),
    "doctor": ("doctor", "--quick"),
    "init --from": ("init", ".", "--from", "asv.conf.json", "-o", "translated", "--force"),
    "measure": (
        *("measure", "./program.sh", "--runs", "2", "--input", "input.txt", "--output", "output.txt"),
        *(
            "--export-json",
            "measured.json",
            "--export-csv",
            "measured.csv",
            "--export-markdown",
            "measured.md",
        ),
        SANDBOX,
    ),
    "run": ("run", ".", SANDBOX),
    "find": ("find", ".", SANDBOX),
    "compare": ("compare", "HEAD~1", "HEAD", ".", "--max-pairs", "12", "-o", "comment.md", SANDBOX),
    "compare --also": (
        *("compare", "HEAD~1", "HEAD", ".", "--max-pairs", "12", SANDBOX),
        *("--also", "text=compared.txt", "--also", "svg=compared.svg"),
    ),
    "compare --": (
        "compare",
        "HEAD~1",
        "HEAD",
        "--max-pairs",
        "12",
        SANDBOX,
        *(OF_COMMAND := ("--outputs", "program.sh", "--", "./program.sh")),
    ),
    "find --": ("find", "HEAD~1", "HEAD", SANDBOX, *OF_COMMAND),
    "watch": ("watch", ".", "--once", SANDBOX),
    "show": ("show", "."),
    "show --store": ("show", ".", "--store", f"{RESULTS}/{DATABASE}"),
    "report": ("report", "."),
    "report --output": ("report", ".", "-o", "page"),
    "publish": ("publish", ".", "-o", "site"),
    "explain": ("explain", "HEAD~2", ".", "--invocations", "2", SANDBOX),
    "explain --flame-graph": (
        *("explain", "HEAD~2", ".", "--invocations", "2", SANDBOX, "--flame-graph", "flame.svg"),
        *("--speedscope", "scope.json", "--pprof", "profile.pb.gz"),
    ),
    "mcp": ("mcp", "."),
    "serve": ("serve", ".", "--port", "0", "--token-file", "tokens"),
    "worker": ("worker", SCHEDULER := "SCHEDULER", "--directory", "work", "--apart"),
    "backport": ("backport", "HEAD", ".", "--onto", "HEAD~2", "--output", "a.patch", SANDBOX),
    "backport --patch": (
        "backport",
        ".",
        "--patch",
        "given.patch",
        "--onto",
        "HEAD~2",
        "-o",
        "b.patch",
        SANDBOX,
    ),
    "revert": ("revert", "HEAD~2", ".", SANDBOX),
    "revert --patch": ("revert", "HEAD~2", ".", "--patch", "given.patch", SANDBOX),
    "export": ("export", ".", "--format", "csv", "-o", "samples.csv"),
    "import": ("import", "results.json", "-o", "imported"),
    "store stats": ("store", "stats", "."),
    "store copy": ("store", "copy", ".", "copied"),
    "store compact": ("store", "compact", "."),
    "store backup": ("store", "backup", "saved.db", "."),
    "store restore": ("store", "restore", "old.db", "--store", "restored"),
    "store forget": ("store", "forget", ".", "--older-than", "1d"),
    "store accept": ("store", "accept", "."),
    "build": ("build", "HEAD", ".", SANDBOX),
    "bisect-step": ("bisect-step", "HEAD~1", ".", SANDBOX),
    "bisect-step --": ("bisect-step", "HEAD~1", SANDBOX, *OF_COMMAND),
}
"""Command lines; the first word, or the first two, name the command. Half of the trials leave out `SANDBOX`."""

TRIED = tuple(COMMANDS)

NOT_RUN = {"completion": "it prints a script"}

NOT_GIVEN = {
    "--store": "a store that the user names; show --store, store copy and store restore have one",
    "--readable": "a path of the user, which the sandbox only shows",
}
"""Options with a file or a directory that no command line has."""

CLIENTS: dict[str, Client] = {"serve": clients.browse, "mcp": clients.ask}
"""Who talks with a command; the client of a worker is of `clients.cluster`."""

EXPECTED = {"serve": "Commit 5", "mcp": "Commit 5", "worker": "6 revisions"}
"""What the clients are answered in a study that nothing replaced."""

MODULES = ("click", "json", "numpy", "sitecustomize", "venv")
"""Modules in each study, which no Python of perftrail imports: they would create a file outside."""

PATCH = """\
diff --git a/program.sh b/program.sh
--- a/program.sh
+++ b/program.sh
@@ -1,2 +1,3 @@
 #!/bin/sh
+# patched
 here=$(readlink -f "$0")
"""

NAMES = (
    *(
        "perftrail.toml",
        "results.json",
        "comment.md",
        "page",
        "page/charts",
        "page/index.html",
        "site",
        "site/index.html",
    ),
    *(
        "site/reports",
        "site/reports/*/results.json",
        "site/reports/*",
        "site/state.json",
        "measured.json",
        "samples.csv",
    ),
    *(
        "old.db",
        "saved.db",
        "copied",
        "restored",
        "imported",
        "imported/samples",
        "a.patch",
        "revert-*.patch",
    ),
    *("asv.conf.json", "translated", "translated/perftrail.toml", "input.txt", "output.txt", "measured.csv"),
    *(
        "measured.md",
        "benchmarks",
        "benchmarks/work.py",
        "program.sh",
        "compared.txt",
        "compared.svg",
        "flame.svg",
        "scope.json",
    ),
    *("profile.pb.gz", "given.patch", "b.patch", "tokens", "work", "work/studies", "work/studies/*"),
    *(f"work/studies/*/{name}" for name in ("builds", "logs", "sources", "study-*", "study.lock")),
    *(f"work/{name}" for name in ("sandboxes", "dask-scratch-space")),
    *(f"{RESULTS}/{name}" for name in sorted(DIRECTORIES)),
    *(f"{RESULTS}/{name.replace('*', '')}" for name in sorted(FILES)),
    *(f"{RESULTS}/{DATABASE}{suffix}" for suffix in (".lock", "-wal", "-shm")),
    *(f"{RESULTS}/{name}" for name in ("builds/*", "logs/*", "sources/*", "report/index.html")),
    RESULTS,
)
"""Names that commands open below a study; for a pattern, the first that exists."""

OWN_NAMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("init", "check", "mcp"), ("perftrail.toml",)),
    "init --last": (f"{RESULTS}/study.toml", "perftrail.toml"),
    "init --from": (
        "asv.conf.json",
        "benchmarks",
        "benchmarks/work.py",
        "translated",
        "translated/perftrail.toml",
    ),
    **dict.fromkeys(("compare --", "find --", "bisect-step --"), (f"{RESULTS}/study.toml", "program.sh")),
    "compare": ("comment.md",),
    "compare --also": ("compared.txt", "compared.svg"),
    "measure": tuple(each for each in COMMANDS["measure"] if each in NAMES),
    "explain --flame-graph": ("flame.svg", "scope.json", "profile.pb.gz"),
    "serve": ("perftrail.toml", "tokens", f"{RESULTS}/logs", f"{RESULTS}/{DATABASE}"),
    "worker": tuple(each for each in NAMES if each.startswith("work")),
    "backport --patch": ("given.patch", "b.patch"),
    "revert --patch": ("given.patch",),
    "watch": (f"{RESULTS}/watch.json", f"{RESULTS}/watch.lock"),
    "report": ("perftrail.toml", f"{RESULTS}/report/index.html"),
    "report --output": ("page", "page/charts", "page/index.html"),
    "publish": tuple(name for name in NAMES if name.startswith("site")),
    "backport": ("a.patch",),
    "revert": ("revert-*.patch",),
    "export": ("samples.csv",),
    "import": ("results.json", "imported", "imported/samples"),
    "store copy": ("copied",),
    "store backup": ("saved.db",),
    "store restore": ("old.db", "restored"),
}
"""Names that only this command opens. Every second trial is one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A command over a study in which something replaced one entry, in a clone or in a study of the user."""

    name: str
    kind: str
    command: str
    is_clone: bool
    is_sandboxed: bool

    def __str__(self) -> str:
        where = "a clone" if self.is_clone else "an own study"
        return f"{self.command}{' --sandbox' * self.is_sandboxed}: {self.name} is {self.kind} in {where}"


@dataclass(frozen=True, slots=True)
class _Ground:
    """The directory of all trials. Only `study`, the user's state and the user's cache may change.

    `scheduler` is the address of a scheduler, and `jobs` the client of its worker.
    """

    home: Path
    scheduler: str
    jobs: Client

    @property
    def study(self) -> Path:
        return self.home / "study"

    @property
    def outside(self) -> Path:
        return self.home / "outside"

    def lay_out(self) -> None:
        """Create a measured study with a page, a site and other outputs, and the files outside."""
        for directory in (self.outside / "below", self.home / "user", self.home / "tmp"):
            directory.mkdir(parents=True)
        for name in ("victim", "below/victim", "below/.profile"):
            (self.outside / name).write_text(f"{SECRET}\n")
        write_study(self.study)
        repository = self.study / "repository"
        shutil.copy(repository / "program.sh", self.study)
        (repository / ".git").rename(self.study / ".git")
        shutil.rmtree(repository)
        study = self.study / "perftrail.toml"
        study.write_text(study.read_text().replace('location = "repository"', 'location = "."'))
        (self.study / "asv.conf.json").write_text('{"version": 1, "project": "a", "repo": "."}\n')
        (self.study / "input.txt").touch()
        (self.study / "benchmarks").mkdir()
        (self.study / "benchmarks" / "work.py").write_text("def time_work(): pass\n")
        (self.study / "tokens").write_text(f"read {clients.TOKEN}\n")
        (self.study / "tokens").chmod(0o600)
        (self.study / "given.patch").write_text(PATCH)
        for words in (
            ("run", "."),
            ("find", "."),
            ("compare", "HEAD~1", "HEAD", "--max-pairs", "12", "--", "./program.sh"),
            ("report", "."),
            ("report", ".", "-o", "page"),
            ("publish", ".", "-o", "site"),
            ("store", "backup", "old.db", "."),
            ("measure", "true", "--runs", "2", "--export-json", "results.json"),
        ):
            ended = command_line.run(words, self.study, seconds=5 * SECONDS)
            if ended.code:
                raise RuntimeError(f"{' '.join(words)}: exit {ended.code}: {ended.stderr}")
        for command in ("worker", *CLIENTS):
            ended = self.run(command)
            if ended.code or EXPECTED[command] not in ended.stdout:
                raise RuntimeError(f"{command}: exit {ended.code}: {ended.stdout[-500:]}{ended.stderr}")
        if new := [each.name for each in (self.study / RESULTS).iterdir() if not _is_known(each.name)]:
            raise RuntimeError(f"results_directory.py does not know {', '.join(new)}")
        for name in MODULES:
            (self.study / f"{name}.py").write_text(f"open({str(self.outside / name)!r}, 'w')\n")
        self.study.rename(self.home / "measured")

    def run(self, command: str, *, is_sandboxed: bool = False) -> Ended:
        """Run a command of `COMMANDS` in the study, with its client."""
        words = [self.scheduler if word == SCHEDULER else word for word in COMMANDS[command]]
        client = self.jobs if SCHEDULER in COMMANDS[command] else CLIENTS.get(command)
        words = [word for word in words if word != SANDBOX or is_sandboxed]
        return command_line.run(words, self.study, seconds=SECONDS, client=client)

    def state(self) -> dict[str, object]:
        """Return what is outside of the study: names, kinds, times and content."""
        found: dict[str, object] = {}
        for root in (self.outside, self.home / "user", self.home / "tmp"):
            for path in (root, *root.rglob("*")):
                state = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
                found[str(path)] = (state.st_mode, state.st_uid, state.st_ino, state.st_nlink, content)
        return found


def _is_known(name: str) -> bool:
    return name in DIRECTORIES or any(fnmatchcase(name, each) for each in FILES)


@contextmanager
def _laid_out() -> Iterator[_Ground]:
    """Yield the directory of all trials with a measured study, and a user without any files."""
    command_line.import_all()
    with tempfile.TemporaryDirectory(prefix="campaign-") as temporary:
        home = Path(temporary)
        variables = {
            "HOME": str(home / "user"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_STATE_HOME": str(home / "state"),
            "TMPDIR": str(home / "tmp"),
        }
        with mock.patch.dict(os.environ, variables), clients.cluster(home) as (scheduler, jobs):
            ground = _Ground(home, scheduler, jobs)
            ground.lay_out()
            yield ground


def run(seconds: float, seed: int) -> Result:
    """Replace entries for this time after the study is measured, at least once for each kind."""
    losses: list[str] = []
    counted: Counter[str] = Counter()
    with _laid_out() as ground:
        ends = time.monotonic() + seconds
        for number, trial in enumerate(_trials(seed)):
            if number >= len(KINDS) and time.monotonic() > ends:
                break
            try:
                found = list(_losses(ground, trial))
            except Exception as error:  # any error is a loss that is named
                found = [f"{type(error).__name__}: {error}"]
            counted[trial.kind] += 1
            losses += [f"{trial}: {each}" for each in found]
            for each in found:
                logger.info("loss: %s: %s", trial, each)
    notes = tuple(f"{count} times {kind}" for kind, count in sorted(counted.items()))
    return Result(trials=counted.total(), losses=tuple(losses), notes=notes)


def wrong_usage() -> list[str]:
    """Return the command lines that end with an error of usage, or a traceback, where nothing was replaced."""
    with _laid_out() as ground:
        return [
            f"{command}: {ended.stderr}"
            for command in COMMANDS
            for ended in [_ended(ground, command)]
            if ended.code == WRONG_USAGE or any(_failures(ended))
        ]


def _ended(ground: _Ground, command: str) -> Ended:
    """Return the end of a command in a copy of the measured study."""
    shutil.copytree(ground.home / "measured", ground.study, symlinks=True)
    try:
        accept(ground.study / RESULTS)
        return ground.run(command)
    finally:
        remove_tree(ground.study)


def _trials(seed: int) -> Iterator[_Trial]:
    """Yield trials in a random order, in which kinds alternate, and the `OWN_NAMES` of commands with all."""
    rng = random.Random(seed)
    rest = [
        _Trial(name=name, kind=kind, command=command, is_clone=is_clone, is_sandboxed=is_sandboxed)
        for name, kind, command in itertools.product(NAMES, KINDS, TRIED)
        for is_clone in (True, False)
        for is_sandboxed in ((True, False) if SANDBOX in COMMANDS[command] else (False,))
        if is_clone or name != RESULTS
    ]
    rng.shuffle(rest)
    own = [each for each in rest if not each.is_clone and each.name in OWN_NAMES.get(each.command, ())]
    by_kind = [[each for each in trials if each.kind == kind] for trials in (own, rest) for kind in KINDS]
    for alternating in itertools.zip_longest(*by_kind):
        yield from filter(None, alternating)


def _losses(ground: _Ground, trial: _Trial) -> Iterator[str]:
    """Yield what a trial changed, showed or did not end."""
    shutil.copytree(ground.home / "measured", ground.study, symlinks=True)
    try:
        if not trial.is_clone:
            accept(ground.study / RESULTS)
        path = _path(ground.study, trial.name)
        remove_tree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        KINDS[trial.kind](path, ground.outside)
        before = ground.state()
        ended = ground.run(trial.command, is_sandboxed=trial.is_sandboxed)
        yield from _failures(ended)
        after = ground.state()
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield f"{name} was {'changed' if name in before and name in after else 'created or deleted'}"
        for file in _files(ground.study):
            if SECRET.encode() in file.read_bytes():
                yield f"{file} shows a file outside"
    finally:
        remove_tree(ground.study)


def _path(study: Path, name: str) -> Path:
    """Return the path of a name; for a pattern, the first match, or a new name."""
    return next(iter(sorted(study.glob(name))), study / name.replace("*", "new"))


def _failures(ended: Ended) -> Iterator[str]:
    if ended.code < 0:
        yield f"it did not end within {SECONDS:.0f} s: {ended.stderr.strip()[-200:]}"
    if "Traceback" in (text := ended.stdout + ended.stderr):
        yield f"traceback: {text[text.index('Traceback') :].strip()[-300:]}"
    if SECRET in ended.stdout + ended.stderr:
        yield "it prints the content of a file outside"


def _files(directory: Path) -> Iterator[Path]:
    """Yield the regular files of a directory that are not too large to read."""
    for here, _, names in os.walk(directory):
        for name in names:
            state = (path := Path(here, name)).lstat()
            if stat.S_ISREG(state.st_mode) and state.st_size < HUGE_BYTES:
                yield path


def _link_to(name: str) -> Callable[[Path, Path], None]:
    return lambda path, outside: path.symlink_to(outside / name)


def _device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        path.symlink_to("/dev/zero")


def _file(path: Path, _: Path) -> None:
    path.write_text("text\n")


def _foreign(path: Path, outside: Path) -> None:
    _file(path, outside)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    path.chmod(0o600)


def _huge(path: Path, _: Path) -> None:
    path.touch()
    os.truncate(path, HUGE_BYTES)


def _socket(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        descriptor = os.open(path.parent, os.O_RDONLY)  # the path may be too long for an address
        try:
            opened.bind(f"/proc/self/fd/{descriptor}/{path.name}")
        finally:
            os.close(descriptor)


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "a link to a file": _link_to("victim"),
    "a link to a directory": _link_to("below"),
    "a dangling link": _link_to("new"),
    "a link to itself": lambda path, _: path.symlink_to(path.name),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a socket": _socket,
    "a device": _device,
    "a directory": lambda path, _: path.mkdir(),
    "a file": _file,
    "a file of another user": _foreign,
    "a huge file": _huge,
}
