"""No setting, hook or attribute of a foreign repository or tree makes git start a program."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from perftrail.errors import NoAnswer, PerftrailError
from perftrail.model.patch import PatchPaths
from perftrail.model.source import STAGED, WORKING_TREE, Archive
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.archives import ArchiveSource
from perftrail.sources.git import GitSource
from perftrail.sources.git.patch import GitPatches
from perftrail.sources.patched import PatchedSource, PlainPatches, patched
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository

PROGRAM = "{program}"

SETTINGS = {
    "filter, clean": {"filter.evil.clean": PROGRAM, "filter.evil.required": "true"},
    "filter, smudge": {"filter.evil.smudge": PROGRAM},
    "filter, process": {"filter.evil.process": PROGRAM, "filter.evil.required": "true"},
    "external diff": {"diff.external": PROGRAM},
    "diff driver": {"diff.evil.command": PROGRAM},
    "text conversion": {"diff.evil.textconv": PROGRAM, "diff.evil.cachetextconv": "true"},
    "merge driver": {"merge.evil.driver": f"{PROGRAM} %A", "merge.default": "evil"},
    "file system monitor": {"core.fsmonitor": PROGRAM, "core.fsmonitorHookVersion": "2"},
    "hooks": {"core.hooksPath": "{hooks}"},
    "pager": {"core.pager": PROGRAM, "pager.log": "true", "pager.diff": PROGRAM},
    "editors": {"core.editor": PROGRAM, "sequence.editor": PROGRAM},
    "aliases": {"alias.log": f"!{PROGRAM}", "alias.lfs": f"!{PROGRAM}", "alias.apply": f"!{PROGRAM}"},
    "credential helper": {"credential.helper": f"!{PROGRAM}", "core.askPass": PROGRAM},
    "ssh command": {
        "core.sshCommand": PROGRAM, "remote.evil.url": "ssh://example.invalid/x", "remote.evil.promisor": "true",
    },
    "proxy of the git protocol": {
        "core.gitProxy": PROGRAM, "remote.evil.url": "git://example.invalid/x", "remote.evil.promisor": "true",
    },
    "missing object, upload-pack": {
        "remote.evil.url": "{repository}", "remote.evil.uploadpack": PROGRAM, "remote.evil.promisor": "true",
        "extensions.partialClone": "evil",
    },
    "missing object, ext": {
        "remote.evil.url": f"ext::{PROGRAM}", "remote.evil.promisor": "true", "protocol.ext.allow": "always",
    },
    "remote helper": {"remote.evil.vcs": "evil", "remote.evil.url": "x", "remote.evil.promisor": "true"},
    "signatures": {"gpg.program": PROGRAM, "log.showSignature": "true", "commit.gpgSign": "true"},
    "packed objects": {"uploadpack.packObjectsHook": PROGRAM},
    "alternates": {"core.alternateRefsCommand": PROGRAM},
    "maintenance": {"gc.auto": "1", "gc.recentObjectsHook": PROGRAM, "maintenance.auto": "true"},
    "included file": {"include.path": "{included}"},
    "another worktree's settings": {"extensions.worktreeConfig": "true"},
}  # fmt: skip
"""For each way to start a program, the settings that a hostile repository would have."""

PROMISORS = tuple(
    case for case in SETTINGS
    if any("promisor" in key for key in SETTINGS[case]) or case in {"included file", "another worktree's settings"}
)  # fmt: skip
"""Cases in which objects are missing that another repository promises: those of perftrail may then be refused."""
_ALONE = ("filter, process", "diff driver", "text conversion")
TOGETHER = {
    "promised objects": PROMISORS,
    "process and diff driver": ("filter, process", "diff driver"),
    "text conversion": ("text conversion",),
    "all others": tuple(case for case in SETTINGS if case not in (*PROMISORS, *_ALONE)),
}
"""Cases that do not hide each other, to be tried at once; `make test-long` also tries each of them alone."""


AT_ONCE = [pytest.param(cases, id=f"{name} at once") for name, cases in TOGETHER.items()]
ONE_BY_ONE = [pytest.param((case,), id=case, marks=pytest.mark.long) for case in SETTINGS]


ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"
PATCH = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\n"


class Hostile:
    """A program that creates a marker file, and a git directory with settings that name it."""

    def __init__(self, home: Path) -> None:
        self.marker = home / "started"
        self.program = home / "program"
        self.program.write_text(f'#!/bin/sh\necho "$0 $@" >> {self.marker}\n')
        self.program.chmod(0o755)
        hooks = home / "hooks"
        hooks.mkdir()
        for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-applypatch",
                     "prepare-commit-msg", "pre-auto-gc", "post-rewrite", "pre-commit"):  # fmt: skip
            (hooks / name).write_bytes(self.program.read_bytes())
            (hooks / name).chmod(0o755)
        included = home / "included"
        included.write_text(
            f'[remote "evil"]\n\turl = {home}\n\tuploadpack = {self.program}\n\tpromisor = true\n'
            f'[filter "evil"]\n\tclean = {self.program}\n\trequired = true\n'
        )
        self.words = {"hooks": hooks, "included": included, "repository": home}

    def configure(self, directory: Path, cases: Sequence[str]) -> None:
        """Write the settings of some cases, and attributes that use them, into a git directory.

        Each case has a program, and a remote repository, of its own name.
        """
        for case in cases:
            own = case.translate({ord(character): "-" for character in " ,'"})
            program = self.program.parent / "programs" / own
            program.parent.mkdir(exist_ok=True)
            program.write_bytes(self.program.read_bytes())
            program.chmod(0o755)
            for name, value in SETTINGS[case].items():
                key = name.replace("remote.evil.", f"remote.{own}.")
                text = value.format(program=program, **self.words)
                text = own if name == "extensions.partialClone" else text
                command = ["git", "config", "--file", str(directory / "config"), key, text]
                subprocess.run(command, check=True)
        if "another worktree's settings" in cases:
            (directory / "config.worktree").write_bytes(self.words["included"].read_bytes())
        (directory / "info").mkdir(exist_ok=True)
        (directory / "info" / "attributes").write_text(ATTRIBUTES)
        hooks = directory / "hooks"
        hooks.mkdir(exist_ok=True)
        for hook in self.words["hooks"].iterdir():
            (hooks / hook.name).write_bytes(hook.read_bytes())
            (hooks / hook.name).chmod(0o755)

    def started(self) -> str:
        """What was started; empty if nothing was."""
        return self.marker.read_text() if self.marker.exists() else ""


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    home = tmp_path / "hostile"
    home.mkdir()
    return Hostile(home)


def checked_out(repository: Repository) -> list[str]:
    """Make three commits and check the last one out, with an index whose dates force git to read the files."""
    attributes = {".gitattributes": ATTRIBUTES}
    commits = [repository.commit({"f": f"{number}\n", **attributes}) for number in (1, 2)]
    commits.append(repository.commit({"f": "2\n", "g": "1\n", **attributes}))
    repository.git("reset", "--hard", "--quiet")
    os.utime(repository.path / ".git" / "index", (1, 1))  # older than the files: git compares their contents
    return commits


def use_everything(source: GitSource, home: Path, launcher: Launcher, table: SourceTable) -> None:
    """Call every method that starts git; the repository may also be refused."""
    with suppress(PerftrailError):
        source.history("0123456789012345678901234567890123456789..")  # an object that is missing
    history = source.history()
    source.within("main~1..")
    source.merge(history[-1])
    source.touched(history)
    source.content(history[-1])
    source.content_without(history[-1], ("g",))
    source.refresh()
    source.edited()
    for number, name in enumerate((WORKING_TREE, STAGED)):
        with suppress(PerftrailError):
            (found,) = source.history(f"{name}..{name}")
            source.materialise(found, str(home / f"tree {number}"), str(home / "log"))
    source.materialise(history[0], str(home / "tree"), str(home / "log"))
    patches = GitPatches(table, cache=str(home / "cache"), starter=launcher)
    patches.changes(history[0], history[1])
    patches.cherry_pick(history[2], onto=history[0], workplace=str(home / "work"))
    with suppress(NoAnswer):
        paths = PatchPaths(excluded=("*",))
        patches.revert(history[2], onto=history[2], workplace=str(home / "work"), paths=paths)
    patches.apply(PATCH, onto=history[0], workplace=str(home / "work"))
    patches.apply(PATCH, onto=history[2], workplace=str(home / "work"))


@pytest.mark.parametrize("cases", [*AT_ONCE, *ONE_BY_ONE])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_no_setting_of_a_repository_starts_a_program(
    opened: Open, repository: Repository, launcher: Launcher, hostile: Hostile, tmp_path: Path,
    cases: tuple[str, ...], scheme: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    checked_out(repository)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    hostile.configure(repository.path / ".git", cases)
    location = f"{scheme}{repository.path}"
    table = SourceTable(kind="git", location=location)
    with suppress(PerftrailError):
        use_everything(opened(location), tmp_path, launcher, table)
    assert hostile.started() == ""


@pytest.mark.parametrize("cases", AT_ONCE[1:])
def test_a_repository_with_such_settings_still_works(
    opened: Open, repository: Repository, launcher: Launcher, hostile: Hostile, tmp_path: Path,
    cases: tuple[str, ...],
) -> None:  # fmt: skip
    created = checked_out(repository)
    hostile.configure(repository.path / ".git", cases)
    source = opened()
    use_everything(source, tmp_path, launcher, SourceTable(kind="git", location=str(repository.path)))
    (repository.path / "f").write_text("longer than before\n")
    assert source.edited() == created[-1]


@pytest.mark.parametrize("link", ["directory", "file"])
@pytest.mark.parametrize("cases", AT_ONCE)
def test_no_setting_in_an_archive_starts_a_program(
    launcher: Launcher, hostile: Hostile, repository: Repository, tmp_path: Path, cases: tuple[str, ...],
    link: str,
) -> None:  # fmt: skip
    checked_out(repository)
    (repository.path / "f").write_text("1\n")
    hostile.configure(repository.path / ".git", cases)
    if link == "file":
        (repository.path / ".git").rename(repository.path / "evil")
        (repository.path / ".git").write_text("gitdir: evil\n")
    archive = tmp_path / "r-1.tar"
    with tarfile.open(archive, "w") as file:
        file.add(repository.path, "r-1")
    table = SourceTable(
        kind="release", location=str(tmp_path), archives=(Archive(version="1", file="r-1.tar"),)
    )
    source = ArchiveSource(table, cache=str(tmp_path / "cache"))
    (base,) = source.history()
    cache, work = str(tmp_path / "cache"), str(tmp_path / "work")
    plain = PlainPatches(source, cache=cache, starter=launcher)
    created = plain.apply(PATCH, onto=base, workplace=work)
    plain.apply(PATCH.replace(b"-1", b"-3"), onto=base, workplace=work)
    own = patched(Revision(id="1"), created)  # type: ignore[arg-type] # the first patch applies
    both = PatchedSource(source, own, cache=cache, starter=launcher)
    both.materialise(own.revision, str(tmp_path / "patched"), str(tmp_path / "log"))
    assert (tmp_path / "patched" / "f").read_text() == "one\n"
    assert hostile.started() == ""
