"""A private copy of a Fossil repository, because Fossil opens even repositories that it reads for writing.

Fossil runs without the user's settings, and answers SQL queries that only read.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.file_tree import exclusive_lock, publish
from perftrail.model.build import content_key
from perftrail.model.wording import quoted
from perftrail.sources.client import (
    LONG_SECONDS,
    Client,
    client_environment,
    refuse_control_characters,
    shared_directory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.ports import Starter
    from perftrail.sources.client import ToolResult


_USER = "perftrail"
"""Owner of perftrail's clones: Fossil requires a user name."""

_BEGIN = ".bail on\n.headers off\n.mode list\n"
_END = "the end"
"""Printed last, because Fossil's exit code does not report failed statements."""

_BATCH = 2000
"""Maximum number of ids in one statement: SQLite accepts at most a million characters."""

Row = tuple[str, ...]
"""A row of a result, all as text; missing values are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fossil:
    """Runs Fossil with only its own settings, never through a shell and never in a check-out."""

    client: Client
    program: str

    def rows(self, repository: Path, sql: str) -> list[Row]:
        """Query a repository; every row of the result is one ``json_array(…)``. Raises `SourceError`.

        The query is read-only, but Fossil itself opens the file before: pass a private copy.
        """
        result = self.client.run(
            [self.program, "sql", "--readonly", "-R", str(repository)],
            directory=repository.parent,
            stdin=f"{_BEGIN}{sql.rstrip(';')};\nSELECT json_array('{_END}');\n".encode(),
            timeout_seconds=LONG_SECONDS,
        )
        found = list(_parsed(result))
        if found[-1:] != [(_END,)]:
            raise SourceError(f"{repository}: fossil cannot read it: {result.why}")
        return found[:-1]

    def rows_about(self, repository: Path, names: Sequence[str], sql: str) -> list[Row]:
        """Query about many names; ``{names}`` in the statement is their list in JSON, as text."""
        found: list[Row] = []
        for start in range(0, len(names), _BATCH):
            result = literal(json.dumps(names[start : start + _BATCH], ensure_ascii=False))
            found.extend(self.rows(repository, sql.replace("{names}", result)))
        return found


def literal(text: str) -> str:
    """Return a text as an SQL literal that cannot end early, and that Fossil's shell does not read as a command.

    >>> literal("o'")
    "CAST(x'6f27' AS TEXT)"
    """
    return f"CAST(x'{text.encode('utf-8', errors='surrogateescape').hex()}' AS TEXT)"


def query_fossil(starter: Starter, *, settings: Path) -> Fossil:
    """Return a Fossil for queries, with its settings in the directory `settings`.

    Its first start writes a file there: no other process may use the directory then.
    """
    return _fossil(starter, {"HOME": str(settings), "FOSSIL_HOME": str(settings)})


def transfer_fossil(starter: Starter, *, settings: Path) -> Fossil:
    """Return a Fossil for clones and pulls, which finds the user's ssh keys."""
    return _fossil(starter, {"FOSSIL_HOME": str(settings)})


def _fossil(starter: Starter, own: Mapping[str, str]) -> Fossil:
    program = shutil.which("fossil")
    if program is None:
        raise SourceError("fossil is not installed: install it, or choose another kind of source")
    environment = {
        **client_environment(without=("FOSSIL_", "XDG_CONFIG_HOME")),
        "USER": _USER,
        "TZ": "UTC",
        "SSH_ASKPASS": "/bin/false",
        **own,
    }
    return Fossil(client=Client(starter=starter, environment=environment), program=program)


def _parsed(result: ToolResult) -> Iterator[Row]:
    for line in result.output.decode("utf-8", errors="replace").split("\n"):
        try:
            values = json.loads(line) if line else None
        except ValueError:
            return
        if isinstance(values, list):
            yield tuple("" if value is None else str(value) for value in values)


_CHECKOUT_FILES = (".fslckout", "_FOSSIL_")
_ADDRESS = re.compile(r"(?:https?|ssh)://(?!-)")
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")
_NOTHING_RECEIVED = b"received: 0 "
"""Output of a pull from a server that did not answer; its exit code is that of success."""

_MAIN_BRANCH = "SELECT json_array(coalesce((SELECT value FROM config WHERE name = 'main-branch'), 'trunk'))"
_BRANCH = """
SELECT json_array(b.uuid) FROM tag t JOIN tagxref x USING (tagid) JOIN event e ON e.objid = x.rid
    JOIN blob b ON b.rid = x.rid
WHERE t.tagname = 'branch' AND x.tagtype > 0 AND x.value = {name} AND e.type = 'ci' AND NOT EXISTS (
    SELECT 1 FROM plink p JOIN tagxref y ON y.rid = p.cid
    WHERE p.pid = x.rid AND y.tagid = x.tagid AND y.tagtype > 0 AND y.value = x.value)
ORDER BY EXISTS (SELECT 1 FROM tagxref z JOIN tag c USING (tagid)
    WHERE z.rid = x.rid AND z.tagtype > 0 AND c.tagname = 'closed'), e.mtime DESC
"""
"""The ends of a branch, open ones first: Fossil itself uses the check-in with the latest date."""

_NAMED = """
SELECT json_array(b.uuid) FROM event e JOIN blob b ON b.rid = e.objid
WHERE e.type = 'ci' AND e.objid = symbolic_name_to_rid({name})
"""
_NAMES = "SELECT json_array(substr(tagname, 5)) FROM tag WHERE tagname GLOB 'sym-*'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalRepository:
    """A local repository; `current` is the check-in of its check-out, empty if the study does not name a check-out."""

    file: Path
    current: str


class FossilCopy:
    """A repository in the cache: a copy of a file, or a clone of an address; pulls if a check-in is missing.

    All studies of an address share one clone in the user's cache.

    A location may be a repository, an open check-out or a directory in one, or an address. Neither the repository nor
    the check-out is ever written to.
    """

    def __init__(self, location: str, *, cache: Path, starter: Starter) -> None:
        self.location = _PASSWORD.sub(r"\1@", location)
        self._address = location
        self._starter = starter
        name = f"fossil/{content_key(location)[:16]}"
        shared = shared_directory(name) if _ADDRESS.match(location) else None
        self._home = shared or cache.absolute() / name
        self._fossil = query_fossil(starter, settings=self._settings)
        self._local_repository: _LocalRepository | None = None
        self._fresh = False

    @property
    def path(self) -> Path:
        """Path of the copy after `ready`."""
        return self._home / "copy.fossil"

    @property
    def _settings(self) -> Path:
        return self._home / "settings"

    def ready(self) -> Path:
        """Create or update the copy, and return its path. Raises `SourceError`."""
        if self._fresh:
            return self.path
        local = self._local()
        with exclusive_lock(self._home / "lock"):
            if local is not None:
                self._copy_repository(local.file)
                self._fresh = True
            elif not self.path.is_file():
                self._clone()
            if not self._settings.is_dir():
                self._settings.mkdir()
                self._fossil.rows(self.path, "SELECT json_array(1)")
        return self.path

    def rows(self, sql: str) -> list[Row]:
        """Query the copy; each row of the result is one ``json_array(…)``."""
        return self._fossil.rows(self.ready(), sql)

    def rows_about(self, names: Sequence[str], sql: str) -> list[Row]:
        """Query the copy about many names; ``{names}`` in the statement is their list in JSON."""
        return self._fossil.rows_about(self.ready(), names, sql)

    def resolve(self, name: str) -> str:
        """Return the full id of a check-in by any of Fossil's names: the id's beginning, a tag, a date.

        A branch is its last check-in, whatever its date. Raises `SourceError` if there is none.
        """
        found = self._named(name) or (self._named(name) if self.pull() else "")
        if not found:
            raise SourceError(self._unknown(name))
        return found

    def newest(self) -> str:
        """Return the default end of ranges: the check-out's own check-in, else the trunk's tip."""
        local = self._local()
        if local is not None and local.current:
            return self.resolve(local.current)
        ((main,),) = self.rows(_MAIN_BRANCH)
        found = self._named(main) or self._named("tip")
        if not found:
            raise SourceError(f"{self.location}: has no check-in yet")
        return found

    def pull(self) -> bool:
        """Pull once from an address; return whether anything may be new."""
        if self._fresh or self._local() is not None:
            return False
        self.ready()
        if not self._fresh:
            with exclusive_lock(self._home / "lock"):
                self._transfer("pull", self._address, "--once", "-R", str(self.path))
            self._fresh = True
        return True

    def _local(self) -> _LocalRepository | None:
        """Return the local location of a repository; `None` if it is remote."""
        if self._local_repository is None and self._address.startswith(("/", "file://")):
            self._local_repository = self._found(Path(self._address.removeprefix("file://")))
        elif self._local_repository is None and _ADDRESS.match(self._address) is None:
            raise SourceError(
                f"{self.location}: is not an allowed address for Fossil; use https://, ssh:// or a path"
            )
        return self._local_repository

    def _found(self, path: Path) -> _LocalRepository:
        if path.is_file():
            return _LocalRepository(file=path, current="")
        if not path.is_dir():
            raise SourceError(f"{path}: no such file; source.location must be a Fossil repository")
        for directory in (path, *path.parents):
            for name in _CHECKOUT_FILES:
                if (directory / name).is_file():
                    return self._of_checkout(directory / name)
        raise SourceError(
            f"{path}: is not a Fossil check-out; source.location must be a repository, a check-out or an address"
        )

    def _of_checkout(self, file: Path) -> _LocalRepository:
        """Return the repository of a check-out, from its own database."""
        with exclusive_lock(self._home / "lock"):
            copy = self._home / "checkout.db"
            _copy_database(file, copy)
            with closing(sqlite3.connect(copy)) as database:
                try:
                    known = dict(database.execute("SELECT name, value FROM vvar"))
                except sqlite3.Error as error:
                    raise SourceError(
                        f"{file}: is not the database of a Fossil check-out: {error}"
                    ) from error
        repository = file.parent / str(known.get("repository", ""))
        if not repository.is_file():
            raise SourceError(
                f"{file.parent}: its repository {repository} does not exist; name another as source.location"
            )
        return _LocalRepository(file=repository, current=str(known.get("checkout-hash", "")))

    def _copy_repository(self, file: Path) -> None:
        """Copy a repository unless the copy is up to date."""
        stamp, recorded = _stamp(file), self._home / "copied"
        if self.path.is_file() and recorded.is_file() and recorded.read_text() == stamp:
            return
        temporary = self._home / "making.fossil"
        _copy_database(file, temporary)
        publish(temporary, self.path)
        recorded.write_text(stamp)

    def _clone(self) -> None:
        temporary = self._home / "making.fossil"
        temporary.unlink(missing_ok=True)
        try:
            self._transfer("clone", "--no-open", "--once", self._address, str(temporary))
        except SourceError:
            temporary.unlink(missing_ok=True)
            raise
        publish(temporary, self.path)
        self._fresh = True

    def _transfer(self, *words: str) -> None:
        fossil = transfer_fossil(self._starter, settings=self._home)
        result = fossil.client.run(
            [fossil.program, *words], directory=self._home, timeout_seconds=LONG_SECONDS
        )
        if result.failed or _NOTHING_RECEIVED in result.output:
            why = _PASSWORD.sub(r"\1@", result.why)
            raise SourceError(f"{self.location}: fossil cannot {words[0]} it: {why}")

    def _named(self, name: str) -> str:
        """Return the check-in that a name means; empty without one."""
        refuse_control_characters(name, what="Fossil name")
        result = literal(name)
        found = self.rows(_BRANCH.replace("{name}", result)) or self.rows(_NAMED.replace("{name}", result))
        return found[0][0] if found else ""

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, [known for (known,) in self.rows(_NAMES)], n=3)
        hint = f"; did you mean {' or '.join(quoted(each) for each in near)}?" if near else ""
        return f"{self.location}: no revision {quoted(name)}, or several begin with it{hint}"


def _copy_database(file: Path, copy: Path) -> None:
    """Copy an SQLite file as one transaction saw it, without writing to it."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    # Without a log file no process has the database open; SQLite would create one in write-ahead mode.
    closed = not file.with_name(f"{file.name}-wal").exists()
    how = "immutable=1" if closed and _is_write_ahead(file) else "mode=ro"
    try:
        with (
            closing(sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
    except (sqlite3.Error, OSError) as error:
        raise SourceError(f"{file}: is not a readable Fossil repository: {error}") from error


def _is_write_ahead(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(20)[18:] == b"\x02\x02"


def _stamp(file: Path) -> str:
    """Return the identity of a file's version: inode, size and time, also of its write-ahead log."""
    parts = [file, file.with_name(f"{file.name}-wal")]
    stats = [part.stat() for part in parts if part.exists()]
    return json.dumps([(each.st_ino, each.st_size, each.st_mtime_ns) for each in stats])
