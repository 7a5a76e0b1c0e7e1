"""Random hostile archives, git repositories, patches and trees, each aimed at a directory outside its root."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_TAR_KINDS = (
    tarfile.REGTYPE, tarfile.REGTYPE, tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.SYMTYPE,
    tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"S", b"Z",
)  # fmt: skip
_MODES = (0o644, 0o755, 0o4755, 0o000, 0o777, 0o1777)
_GIT_MODES = ("100644", "100644", "100755", "120000", "120000", "160000", "40000", "100777", "0")
_GIT_NAMES = (
    ".git", ".GIT", ".git ", ".git.", "git~1", ".g\u200cit", ".git/hooks", "..", ".", "", "/", "../outside", "a/b",
    "..\\outside", ".git::$INDEX_ALLOCATION", ".gitmodules", ".gitattributes",
)  # fmt: skip
_PATCH_HEADS = (
    "new file mode 100644", "new file mode 120000", "deleted file mode 100644", "old mode 100644\nnew mode 100755",
    "",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hostile:
    """Draws names and contents that try to reach `outside`, a directory with the file ``victim``."""

    random: Random
    outside: Path
    mild: bool
    """Most entries are valid, so that perftrail accepts some of the sources, or refuses them late."""

    def part(self) -> str:
        """Return one part of a path: one of few, so that entries meet often."""
        return self.random.choice(
            (
                "a",
                "a",
                "b",
                "b",
                "c",
                "A",
                "..",
                ".",
                "",
                "x" * 255,
                "y" * 300,
                "é",
                "a\nb",
                "-rf",
                "a\\b",
                "a ",
            )
        )

    def name(self) -> str:
        """Return a path that may lead outside."""
        draw = self.random.random()
        if draw < (0.02 if self.mild else 0.15):
            return self.random.choice(self._targets_outside())
        if draw < (0.1 if self.mild else 0.45):
            return self.random.choice(
                ("a", "b", "a/b", "a/victim", "b/a/victim", "a/b/victim", "a/new", "b/new")
            )
        return "/".join(self.part() for _ in range(self.random.randint(1, 4)))

    def target(self) -> str:
        """Return the target of a link, usually outside."""
        draw = self.random.random()
        if draw < (0.1 if self.mild else 0.5):
            return self.random.choice(self._targets_outside())
        if self.mild:
            return self.part()
        return self.random.choice((".", "..", "a", "b", "a/..", "a/../..", "b/../../outside", self.name()))

    def _targets_outside(self) -> Sequence[str]:
        outside = str(self.outside)
        ups = [f"{'../' * depth}outside" for depth in (1, 2, 3, 4)]
        return (outside, f"{outside}/victim", f"{outside}/new", *ups, *(f"{up}/victim" for up in ups))

    def attack(self) -> list[tuple[str, str, str]]:
        """Return entries (kind, name, target): a known attack, or nothing."""
        if self.mild and self.random.random() < 0.8:
            return []
        inner = self.random.choice(("", "d/", "d/e/"))
        up = self.random.choice((str(self.outside), f"{'../' * (1 + inner.count('/'))}../outside"))
        return self.random.choice(
            (
                [],
                [("link", f"{inner}a", up), ("file", f"{inner}a/new", "")],
                [("link", f"{inner}a", f"{up}/victim"), ("file", f"{inner}a", "")],
                [("hard", f"{inner}a", f"{up}/victim"), ("file", f"{inner}a", "")],
                [("link", "a", "."), ("link", "a/b", up), ("file", "b/victim", "")],
                [("link", "a", up), ("hard", "b", "a/victim"), ("file", "b", "")],
                [("directory", "a", ""), ("link", "a", up), ("file", "a/victim", "")],
                [("link", "a", up), ("directory", "a", ""), ("directory", "a/new", "")],
            )
        )

    def wrapped(self, prefix: str, name: str) -> str:
        """Return a name, usually below a prefix."""
        return f"{prefix}{name}" if self.mild or self.random.random() < 0.9 else name

    def tar(self, *, prefix: str = "", compression: str = "gz") -> bytes:
        """Return a tar archive."""
        held = io.BytesIO()
        form = self.random.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
        with tarfile.open(fileobj=held, mode=f"w:{compression}", format=form) as archive:  # type: ignore[call-overload] # any mode
            for kind, name, target in self._tar_entries():
                entry = tarfile.TarInfo(self.wrapped(prefix, name))
                entry.type, entry.linkname = kind, target
                if kind == tarfile.LNKTYPE:
                    entry.linkname = self.wrapped(prefix, target)
                entry.mode = self.random.choice(_MODES)
                entry.mtime = self.random.choice((0, 1, 4_000_000_000))
                text = b"hostile" if kind == tarfile.REGTYPE else b""
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text))
        return held.getvalue()

    def _tar_entries(self) -> list[tuple[bytes, str, str]]:
        kinds = {
            "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "file": tarfile.REGTYPE, "directory": tarfile.DIRTYPE,
        }  # fmt: skip
        entries = [(kinds[kind], name, target) for kind, name, target in self.attack()]
        for _ in range(self.random.randint(0, 5)):
            kind = self.random.choice(_TAR_KINDS[:6] if self.mild else _TAR_KINDS)
            entries.append((kind, self.name(), self.target()))
        if self.random.random() < 0.2:
            self.random.shuffle(entries)
        return entries

    def zip(self) -> bytes:
        """Return a zip archive."""
        held = io.BytesIO()
        kinds = {"link": stat.S_IFLNK, "hard": stat.S_IFREG, "file": stat.S_IFREG, "directory": stat.S_IFDIR}
        entries = [(kinds[kind], name, target) for kind, name, target in self.attack()]
        for _ in range(self.random.randint(0, 5)):
            kind = self.random.choice(
                (stat.S_IFREG, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR, stat.S_IFCHR, 0)
            )
            entries.append((kind, self.name(), self.target()))
        with warnings.catch_warnings(), zipfile.ZipFile(held, "w") as archive:
            warnings.simplefilter("ignore")  # of names that exist already
            for kind, name, target in entries:
                info = zipfile.ZipInfo("x")
                info.filename = f"{name}/" if kind == stat.S_IFDIR else name
                info.external_attr = (kind | self.random.choice(_MODES)) << 16
                info.create_system = 3
                archive.writestr(info, target if kind == stat.S_IFLNK else "hostile")
        return held.getvalue()

    def bomb(self, size: int) -> bytes:
        """Return an archive, tar or zip, of a few files that unpack to a number of bytes."""
        held = io.BytesIO()
        half = bytes(size // 2)
        if self.random.random() < 0.5:
            with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as zipped:
                for name in ("a", "b"):
                    zipped.writestr(name, half)
        else:
            with tarfile.open(fileobj=held, mode="w:gz") as archive:
                for name in ("a", "b"):
                    entry = tarfile.TarInfo(name)
                    entry.size = len(half)
                    archive.addfile(entry, io.BytesIO(half))
        return held.getvalue()

    def wheel_files(self, name: str) -> dict[str, str]:
        """Return additional files of a wheel: modules, data and entry points that lead outside."""
        files = {}
        for _ in range(self.random.randint(0, 2)):
            below = self.random.choice(
                ("", f"{name}.data/scripts/", f"{name}.data/data/", f"{name}.data/headers/")
            )
            files[f"{below}{self.name() or 'a'}"] = "hostile"
        if self.random.random() < 0.6:
            script = self.random.choice((self.name(), f"{'../' * self.random.randint(1, 12)}outside/new"))
            kind = self.random.choice(("console_scripts", "gui_scripts"))
            files[f"{name}.dist-info/entry_points.txt"] = f"[{kind}]\n{script} = planted:x\n"
        return files

    def statements(self) -> list[str]:
        """Return SQL that puts hostile things into a backup's file."""
        new = f"{self.outside}/new"
        known = (
            f"CREATE TRIGGER t1 AFTER INSERT ON machine BEGIN SELECT writefile('{new}', 'x'); END",
            f"CREATE VIEW v1 AS SELECT writefile('{new}', 'x')",
            "DROP TABLE perftrail_backup",
            f"UPDATE perftrail_backup SET made = '{new}', digests = '{{\"{new}\": [1, \"x\"]}}'",
            f"UPDATE perftrail_backup SET version = {self.random.choice((0, 1, 2, 3, 99))}",
            f"CREATE VIRTUAL TABLE f1 USING fts5(x, content='{new}')",
            f"PRAGMA temp_store_directory = '{self.outside}'",
            "PRAGMA journal_mode=WAL",
            "CREATE TABLE extra (x)",
            "DELETE FROM machine",
        )
        return self.random.sample(known, self.random.randint(0, 4))

    def tree(self, directory: Path) -> None:
        """Write a directory with links, named pipes and special names, as an earlier build could leave it."""
        directory.mkdir(parents=True)
        for number in range(self.random.randint(1, 6)):
            parts = [
                part for part in self.name().split("/") if part not in {"", "..", "."} and len(part) < 256
            ]
            path = directory.joinpath(*parts[:3]) if parts else directory / f"n{number}"
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.parent.resolve().is_relative_to(directory.resolve()) and not os.path.lexists(path):
                    self._write_entry(path)
            except OSError:
                continue

    def _write_entry(self, path: Path) -> None:
        draw = self.random.random()
        if draw < 0.4:
            path.symlink_to(self.target() or ".")
        elif draw < 0.8:
            path.write_text("old\n")
        elif draw < 0.9:
            path.mkdir()
        else:
            os.mkfifo(path)

    def patch(self) -> bytes:
        """Return a patch of git's format with several hostile changes."""
        return "".join(self._change() for _ in range(self.random.randint(1, 3))).encode()

    def _change(self) -> str:
        if self.mild and self.random.random() < 0.8:
            name = f"{self.part()}{self.random.randrange(100)}"
            head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
            return f"{head}@@ -0,0 +1 @@\n+hostile\n"
        draw = self.random.random()
        if draw < 0.3:
            link = self.random.choice(("a", "b", "a/b"))
            return (
                f"diff --git a/{link} b/{link}\nnew file mode 120000\n--- /dev/null\n+++ b/{link}\n"
                f"@@ -0,0 +1 @@\n+{self.outside}\n\\ No newline at end of file\n"
                f"diff --git a/{link}/new b/{link}/new\nnew file mode 100644\n--- /dev/null\n+++ b/{link}/new\n"
                "@@ -0,0 +1 @@\n+hostile\n"
            )
        name, other = self.name(), self.name()
        if draw < 0.45:
            how = self.random.choice(("rename", "copy"))
            return (
                f"diff --git a/{name} b/{other}\nsimilarity index 100%\n{how} from {name}\n{how} to {other}\n"
            )
        head = self.random.choice(_PATCH_HEADS)
        old = "/dev/null" if head.startswith("new file") else f"{self.random.choice(('a/', ''))}{name}"
        new = "/dev/null" if head.startswith("deleted") else f"{self.random.choice(('b/', ''))}{other}"
        body = "@@ -0,0 +1 @@\n+hostile\n" if old == "/dev/null" else "@@ -1 +1 @@\n-victim\n+hostile\n"
        if new == "/dev/null":
            body = "@@ -1 +0,0 @@\n-victim\n"
        heading = f"diff --git a/{name} b/{other}\n{head}\n" if self.random.random() < 0.7 else ""
        return f"{heading}--- {old}\n+++ {new}\n{body}"

    def fossil_files(self) -> dict[str, str]:
        """Return the files of a check-in, in the notation of the tests' repositories."""
        files = {
            name: f"link:{target}" if kind == "link" else "hostile"
            for kind, name, target in self.attack()
            if name
        }
        for _ in range(self.random.randint(0, 4)):
            name = self.name()
            files[name or "a"] = self.random.choice(("hostile", "program:x", f"link:{self.target() or '.'}"))
        if self.random.random() < 0.3:
            files[".fossil-settings/manifest"] = self.random.choice(("on", "ru", "link:../outside/victim"))
        return files

    def git_repository(self, path: Path) -> str:
        """Write a bare-bones repository object by object, which git itself would refuse to write; return the commit."""
        git = path / ".git"
        for name in ("objects", "refs/heads", "hooks"):
            (git / name).mkdir(parents=True)
        commit = self.git_commit(git)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "refs/heads/main").write_text(f"{commit}\n")
        (git / "config").write_text(
            f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n{self._git_settings()}"
        )
        for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
            (git / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {self.outside}/hook\n")
            (git / "hooks" / hook).chmod(0o755)
        return commit

    def _git_settings(self) -> str:
        touch = f"touch {self.outside}/setting"
        settings = (
            f"\tfsmonitor = {touch}\n", f"\tworktree = {self.outside}\n", f"\tsshCommand = {touch}\n",
            f'[filter "x"]\n\tsmudge = {touch}\n\tprocess = {touch}\n\trequired = true\n',
            f'[filter "lfs"]\n\tsmudge = {touch}\n\tprocess = {touch}\n',
            f"[include]\n\tpath = {self.outside}/victim\n",
            f"[uploadpack]\n\tpackObjectsHook = {touch}\n", "\tsymlinks = false\n", f'[alias]\n\tclone = "!{touch}"\n',
            "[extensions]\n\tworktreeConfig = true\n", f'[diff]\n\texternal = "{touch}"\n',
        )  # fmt: skip
        return "".join(self.random.sample(settings, self.random.randint(0, 4)))

    def git_commit(self, git: Path) -> str:
        """Write a commit with a hostile tree into a repository."""
        tree = self._git_tree(git, depth=0)
        author = "A <a@example.invalid> 1700000000 +0000"
        return _store_object(
            git, "commit", f"tree {tree}\nauthor {author}\ncommitter {author}\n\nx\n".encode()
        ).hex()

    def _git_tree(self, git: Path, *, depth: int) -> str:
        entries = []
        if depth == 0:
            modules = self._gitmodules(git)
            entries.append(("100644", ".gitmodules", _store_object(git, "blob", modules.encode())))
            attributes = self.random.choice(
                ("* filter=x\n", "* filter=lfs diff=lfs\n", "* export-subst ident\n", "")
            )
            entries.append(("100644", ".gitattributes", _store_object(git, "blob", attributes.encode())))
            if not self.mild and self.random.random() < 0.6:  # a link and a directory of one name
                link = _store_object(git, "blob", self.target().encode())
                entries += [("120000", "a", link), ("40000", "a", self._git_inner(git, depth))]
        for _ in range(self.random.randint(1, 4)):
            entries.append(self._git_entry(git, depth))
        raw = b"".join(f"{mode} {name}\0".encode() + id_ for mode, name, id_ in entries)
        return _store_object(git, "tree", raw).hex()

    def _git_inner(self, git: Path, depth: int) -> bytes:
        return bytes.fromhex(self._git_tree(git, depth=depth + 1))

    def _git_entry(self, git: Path, depth: int) -> tuple[str, str, bytes]:
        hostile = self.random.random() < (0.03 if self.mild else 0.3)
        name = (
            self.random.choice(_GIT_NAMES)
            if hostile
            else self.random.choice(("a", "b", "c", "A", "victim", "new"))
        )
        mode = self.random.choice(_GIT_MODES[:5] if self.mild else _GIT_MODES)
        if mode == "40000":
            inner = self._git_inner(git, depth) if depth < 3 else _store_object(git, "tree", b"")
            return mode, name, inner
        if mode == "160000":
            return mode, name, self.random.randbytes(20)
        text = self.target() if mode == "120000" else self._git_file()
        return mode, name, _store_object(git, "blob", text.encode())

    def _git_file(self) -> str:
        oid = self.random.choice(("../" * 20 + str(self.outside)[1:], "a" * 64))
        size = self.random.choice((5, 1 << 60))
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n"
        return self.random.choice(("hostile", "#!/bin/sh\n$Id$\n", pointer))

    def _gitmodules(self, git: Path) -> str:
        names = ("m", "../../outside", "a", ".git", "-x", str(self.outside), "../a")
        urls = (
            f"ext::sh -c touch% {self.outside}/url", f"--upload-pack=touch {self.outside}/url", "./a", "../given",
            git.parent.as_uri(), str(git.parent), "-x", "../outside",
        )  # fmt: skip
        return "".join(
            f'[submodule "{self.random.choice(names)}"]\n\tpath = {self.random.choice(("a", "b", "c", *names))}\n'
            f"\turl = {self.random.choice(urls)}\n\tupdate = !touch {self.outside}/update\n"
            for _ in range(self.random.randint(0, 3))
        )


def _store_object(git: Path, kind: str, content: bytes) -> bytes:
    """Write a loose object without any of git's checks; return its id."""
    whole = f"{kind} {len(content)}\0".encode() + content
    digest = hashlib.sha1(whole, usedforsecurity=False)
    path = git / "objects" / digest.hexdigest()[:2] / digest.hexdigest()[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(whole))
    return digest.digest()
