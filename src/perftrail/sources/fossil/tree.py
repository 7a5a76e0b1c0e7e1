"""The files of Fossil's check-ins: their identity, their differences, and trees on disk.

Trees are written from the artifacts, never by a check-out, which can leave files behind.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import NewTree, remove_tree, set_same_date
from perftrail.model.build import content_key
from perftrail.model.source import matching
from perftrail.model.wording import quoted
from perftrail.sources.fossil.repository import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.sources.fossil.repository import FossilCopy

_SETTING_FILE = ".fossil-settings/manifest"
_KIND = "replace(coalesce(perm, ''), 'w', '')"
"""``x``, ``l`` or empty; a renamed file may have ``w``, which means the same as empty."""

_CONTENTS = """
SELECT json_array(n.value, (SELECT lower(hex(sha3(group_concat(
    filename || char(0) || uuid || char(0) || {kind}, char(10)))))
    FROM (SELECT * FROM files_of_checkin(n.value) WHERE filename NOT IN excluded_file ORDER BY filename)),
    (SELECT hex(content(uuid)) FROM files_of_checkin(n.value) WHERE filename = '.fossil-settings/manifest'))
FROM json_each({names}) n
""".replace("{kind}", _KIND)
_CREATE_EXCLUDED = "CREATE TEMP TABLE excluded_file (name TEXT PRIMARY KEY);\n"
_INSERT_EXCLUDED = "INSERT INTO excluded_file SELECT value FROM json_each({names});\n"
_NAMES = "SELECT json_array(name) FROM filename ORDER BY name"
_NAME_BATCH = 1000
_SETTING = "SELECT json_array(value) FROM config WHERE name = 'manifest'"
_DIFFERENT = """
WITH pair(text, old, new) AS (
    SELECT value, substr(value, 1, instr(value, ' ') - 1), substr(value, instr(value, ' ') + 1)
    FROM json_each({names}))
SELECT json_array(text, '' || (SELECT json_group_array(DISTINCT filename) FROM (
    SELECT * FROM (SELECT filename, uuid, {kind} FROM files_of_checkin(old)
                   EXCEPT SELECT filename, uuid, {kind} FROM files_of_checkin(new))
    UNION ALL
    SELECT * FROM (SELECT filename, uuid, {kind} FROM files_of_checkin(new)
                   EXCEPT SELECT filename, uuid, {kind} FROM files_of_checkin(old)))))
FROM pair
""".replace("{kind}", _KIND)
_FILES = "SELECT json_array(filename, uuid, perm) FROM files_of_checkin({id})"
_WRITE = """
SELECT json_array(n.value, writefile({directory} || '/' || n.value, content(n.value)))
FROM json_each({names}) n JOIN blob b ON b.uuid = n.value WHERE b.size >= 0
"""


MOST_FILES = 1_000_000
"""More files than any known project has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file of a check-in: path, artifact, and ``x`` for a program or ``l`` for a link."""

    name: str
    artifact: str
    kind: str


class FossilTrees:
    """The trees of a repository's check-ins, by their full ids."""

    def __init__(self, copy: FossilCopy) -> None:
        self._copy = copy
        self._contents: dict[tuple[str, tuple[str, ...]], str] = {}
        self._exclusions: dict[tuple[str, ...], str] = {(): _CREATE_EXCLUDED}
        self._setting: str | None = None

    def content(self, id_: str, *, also: Sequence[str], without: tuple[str, ...] = ()) -> str:
        """Return the content key of a check-in's tree without the files that match globs.

        The trees of the check-ins in `also` are identified in the same query.
        """
        if (id_, without) not in self._contents:
            more = (each for each in also if (each, without) not in self._contents)
            wanted = list(dict.fromkeys([id_, *more]))
            exclusion = self._exclusion_statements(without)
            for each, files, setting in self._copy.rows_about(wanted, exclusion + _CONTENTS):
                added = _unmatched(without, _manifest_files(_text(setting) or self._repository_setting()))
                self._contents[each, without] = content_key(files, each if added else "")
        return self._contents[id_, without]

    def _exclusion_statements(self, without: tuple[str, ...]) -> str:
        """Return statements that name the excluded files among all that ever existed."""
        if without not in self._exclusions:
            names = [name for (name,) in self._copy.rows(_NAMES)]
            included = set(_unmatched(without, names))
            excluded = [name for name in names if name not in included]
            parts = (excluded[start : start + _NAME_BATCH] for start in range(0, len(excluded), _NAME_BATCH))
            texts = (literal(json.dumps(part, ensure_ascii=False)) for part in parts)
            self._exclusions[without] = _CREATE_EXCLUDED + "".join(
                _INSERT_EXCLUDED.replace("{names}", each) for each in texts
            )
        return self._exclusions[without]

    def different(self, pairs: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Return the files in which the trees of each pair of check-ins differ."""
        rows = self._copy.rows_about([f"{old} {new}" for old, new in dict.fromkeys(pairs)], _DIFFERENT)
        found = {pair: tuple(sorted(json.loads(names))) for pair, names in rows}
        return {(old, new): found[f"{old} {new}"] for old, new in pairs}

    def write(self, id_: str, directory: Path) -> int:
        """Write a check-in's files, and the files that Fossil adds, into an empty directory; return their number.

        All get one date. Raises `CheckoutFailed` and `OSError`.
        """
        written = self.write_own(id_, directory) + self._manifest(id_, directory)
        set_same_date(directory)
        return written

    def write_own(self, id_: str, directory: Path) -> int:
        """Write only a check-in's own files; raises like `write`."""
        rows = self._copy.rows(_FILES.replace("{id}", literal(id_)))
        if len(rows) > MOST_FILES:
            raise CheckoutFailed(
                f"it has more than {MOST_FILES} files, and perftrail does not write them; leave the check-in out of "
                "the range"
            )
        files = [_File(name=name, artifact=artifact, kind=kind) for name, artifact, kind in rows]
        with tempfile.TemporaryDirectory(dir=directory, prefix=".artifacts-") as staging:
            artifacts = self._staged(files, Path(staging))
            tree = NewTree(directory)
            # Links come last, so that a file of the same name is not lost.
            for file in sorted(files, key=lambda each: each.kind == "l"):
                _write_entry(file, artifacts[file.artifact], tree)
        return len(files)

    def _staged(self, files: Sequence[_File], staging: Path) -> Mapping[str, Path]:
        """Write every artifact to a separate file, checked against the digest in its name."""
        wanted = {file.artifact: file.name for file in reversed(files)}
        self._copy.rows_about(list(wanted), _WRITE.replace("{directory}", literal(str(staging))))
        for artifact, name in wanted.items():
            if not (staging / artifact).is_file():
                raise CheckoutFailed(
                    f"the repository lacks {quoted(name)}: artifact {artifact} was not received"
                )
            _verify(staging / artifact, artifact, name)
        return {artifact: staging / artifact for artifact in wanted}

    def _manifest(self, id_: str, directory: Path) -> int:
        """Write the files that Fossil adds if the project asks for them: builds may read their own check-in."""
        setting = directory / _SETTING_FILE
        value = setting.read_text(errors="replace") if setting.is_file() and not setting.is_symlink() else ""
        wanted = [
            name
            for name in _manifest_files(value or self._repository_setting())
            if not os.path.lexists(directory / name)
        ]
        if wanted:
            ((raw,),) = self._copy.rows(f"SELECT json_array(hex(content({literal(id_)})))")
            texts = {"manifest": bytes.fromhex(raw), "manifest.uuid": f"{id_}\n".encode()}
            for name in wanted:
                with (directory / name).open("xb") as file:
                    file.write(texts[name])
        return len(wanted)

    def _repository_setting(self) -> str:
        """Return the repository's own setting, for check-ins without one in their tree."""
        if self._setting is None:
            self._setting = "".join(value for (value,) in self._copy.rows(_SETTING))
        return self._setting


def _unmatched(globs: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names that no glob matches."""
    pattern = matching(globs) if globs else None
    return [name for name in names if pattern is None or not pattern.fullmatch(name)]


def _manifest_files(setting: str) -> tuple[str, ...]:
    """Return the files that Fossil's setting "manifest" creates.

    >>> _manifest_files("on"), _manifest_files("u"), _manifest_files("off")
    (('manifest', 'manifest.uuid'), ('manifest.uuid',), ())
    """
    word = setting.strip().lower()
    if word in {"", "off", "no", "false", "0"}:
        return ()
    if word in {"on", "yes", "true", "1"}:
        word = "ru"
    return tuple(name for letter, name in (("r", "manifest"), ("u", "manifest.uuid")) if letter in word)


def _text(hexadecimal: str) -> str:
    return bytes.fromhex(hexadecimal).decode("utf-8", errors="replace")


def _parts(name: str) -> list[str]:
    """Return the parts of a file's path. Raises `CheckoutFailed` if it leads out of the tree."""
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\0" in name:
        raise CheckoutFailed(f"the file name {quoted(name)} leads out of its tree")
    return parts


def _verify(path: Path, artifact: str, name: str) -> None:
    """Check an artifact against its name: SHA-1 in forty digits, SHA3-256 in sixty-four."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha1" if len(artifact) == 40 else "sha3_256")
    if digest.hexdigest() != artifact:
        raise CheckoutFailed(f"{quoted(name)} does not have the checksum of its artifact {artifact}")


def _write_entry(file: _File, artifact: Path, tree: NewTree) -> None:
    """Write a file or link. Raises `CheckoutFailed` for a path behind a link."""
    parts = _parts(file.name)
    try:
        if file.kind == "l":
            tree.link(parts, os.fsdecode(artifact.read_bytes()))
            return
        with tree.file(parts, program="x" in file.kind) as target, artifact.open("rb") as content:
            shutil.copyfileobj(content, target)
    except (NotADirectoryError, FileExistsError) as error:
        raise CheckoutFailed(f"a link or a file of the tree is in the way of {quoted(file.name)}") from error


def write_tree(write: Callable[[str, Path], int], id_: str, directory: str, log: str) -> None:
    """Create a check-in's tree like `write`, in a new directory. Raises `CheckoutFailed`."""
    target = Path(directory).absolute()
    if target.exists():
        raise CheckoutFailed(f"{directory}: exists already; a revision needs a new directory")
    with Path(log).open("a", encoding="utf-8", errors="replace") as file:
        print(f"$ fossil artifacts of {id_} to {directory}", file=file)
        try:
            target.mkdir(parents=True)
            print(f"{write(id_, target)} files", file=file)
        except (SourceError, OSError, ValueError) as error:
            remove_tree(target)
            print(error, file=file)
            raise CheckoutFailed(f"fossil cannot write the files of {id_}: {error}") from error
