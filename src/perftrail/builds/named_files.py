"""Which files the lines and variables of a study name: their content is an input of builds and samples.

Texts are split as a shell splits them. A file counts if its path is quoted, a glob, an item of a list, the value of an
option or variable, absolute, in the home directory, or relative to a directory that a text names (``cd {study}``).
Files that a line writes, and temporary files outside of the study, are no inputs. `may_be_input` states which of the
files that a program opens by itself are inputs.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_tree import user_home
from perftrail.model.placeholders import fill

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from perftrail.model.benchmark import Value

_STUDY = "\0"
"""Stands for ``{study}`` in words: no path contains it."""

_OPEN = "\1"
"""Stands for a placeholder in words that only a build or an invocation fills."""

_MAY_NAME = re.compile(r"\{study\}|(?:^|[\s=:,@'\"<(-])\w?(?:~|\$HOME|\$\{HOME\})?/")
_START = re.compile(rf"(?<![\s>]){_STUDY}|(?:^|(?<=[=:,;@])|(?<=^-\w))/")
"""Where a path begins in a word: at the study's directory, or at the root."""

_HOME = re.compile(r"(?:^|(?<=[=:,;@]))(?:~|\$HOME|\$\{HOME\})(?=/)")
_VARIABLE = re.compile(r"^\$(?:\w+|\{\w+\})/")
_OPEN_PLACEHOLDER = re.compile(r"(?<!\$)\{[\w.-]+\}")
_WRITING_OPTION = r"-o|--?(?:[\w.-]*[_.-])?(?:(?:out|output)(?:[_-]?file)?|log(?:[_-]?file)?)"
_WRITTEN = re.compile(rf"[&|<]*>+[&|]?|tee|{_WRITING_OPTION}")
"""The word before a file that a line writes."""

_WRITTEN_HERE = re.compile(rf"(?:^|\s)(?:{_WRITING_OPTION})=$")
"""What precedes a file that a line writes, in the same word or script."""

_NO_FILES = ("/dev/", "/proc/", "/sys/", "/run/")

_MACHINE_STATE = (*_NO_FILES, "/etc/", "/var/")
"""Settings and state of the machine: they change without a change of a benchmark's speed."""

_CHANGING = frozenset({".cache", ".git"})
"""Directories whose files other programs write at any time."""


def temporary_directories() -> tuple[str, ...]:
    """Return the directories of temporary files; a study there has inputs nevertheless."""
    return ("/tmp", "/var/tmp", tempfile.gettempdir())  # noqa: S108 - only names


def may_be_input(path: Path, *, below: Path) -> bool:
    """Whether a path that a program opens can be an input: no state of the machine, cache or temporary file.

    A study, at `below`, may be in a temporary directory.
    """
    in_study = path.is_relative_to(below)
    if not in_study and (str(path).startswith(_MACHINE_STATE) or _is_temporary(path)):
        return False
    return _CHANGING.isdisjoint((path.relative_to(below) if in_study else path).parts)


def _is_temporary(path: Path) -> bool:
    return any(map(path.is_relative_to, temporary_directories()))


def named_files(texts: Iterable[str], values: Mapping[str, Value], *, below: Path) -> tuple[str, ...]:
    """Return the existing files that texts name, and the missing ones below the study's directory, sorted.

    Names below `below`, the study's directory, are relative to it; others are absolute. Directories count only there.
    """
    wanted = tuple(texts)
    if not any(_MAY_NAME.search(text) for text in wanted):
        return ()
    filled = {name: str(value) for name, value in values.items()}
    found: dict[str, None] = {}
    bases: dict[Path, None] = {}
    words = [(each, word) for text in wanted for each, word in _words(text)]
    words = [(each, _filled(word, filled)) for each, word in words]
    for is_plain, word in words:
        path = word.replace(_OPEN, "*")
        for start in _START.finditer(path):
            if _WRITTEN_HERE.search(path[: start.start()]):
                continue
            if (names := _paths(path, start, below)) is None:
                bases[below] = None
                continue
            found.update({each: None for each in names if is_plain or (below / each).exists()})
    found = {each: None for each in found if not any(other.startswith(f"{each} ") for other in found)}
    bases.update(dict.fromkeys(below / each for each in found if (below / each).is_dir()))
    for _, word in words if bases else ():
        if word[:1] not in ("", "/", "-", _STUDY) and _STUDY not in word:
            relative = _VARIABLE.sub("", word)
            if relative.lstrip("./").startswith(_OPEN):  # a path of the build, or a text such as a revision
                continue
            path = relative.replace(_OPEN, "*")
            found.update({name: None for base in bases for name in _existing(str(base), path, below)})
    return tuple(sorted(found))


def _filled(word: str, values: Mapping[str, str]) -> str:
    """Return a word with its values; `_OPEN` replaces the others."""
    return _HOME.sub(
        lambda _: str(user_home()), _OPEN_PLACEHOLDER.sub(_OPEN, fill(word, {**values, "study": _STUDY}))
    )


def _paths(word: str, start: re.Match[str], below: Path) -> tuple[str, ...] | None:
    """Return the names of the files of a path that begins in a word; `None` for the study's directory itself.

    The longest existing text counts: ``A:B`` may be one path, or two.
    """
    following = _START.search(word, start.end())
    rest = word[start.start() : following.start() if following else None].rstrip("=:,;@")
    in_study = rest.startswith(_STUDY)
    rest = rest.removeprefix(_STUDY).strip("/") if in_study else rest
    if in_study and rest in ("", "."):
        return None
    shorter = [rest[: found.start()] for found in re.finditer("[:,;=@]", rest)]
    for text in (rest, *reversed(shorter)):
        if names := tuple(_existing(str(below) if in_study else "/", text, below)):
            return names
    return ((shorter or [rest])[0],) if in_study and rest[:1] not in ":,;=@" else ()


def _existing(base: str, path: str, below: Path) -> Iterator[str]:
    """Yield the existing files of a path or glob, and directories below the study's; not that directory itself.

    Outside of the study, a glob begins with a directory's name, and ``**`` is one level: no glob reads the whole disk.
    """
    full = os.path.normpath(f"{base}/{path}")
    if full.startswith(_NO_FILES) or _STUDY in full:
        return
    found = [full] if os.path.lexists(full) else []
    in_study = Path(full).is_relative_to(below)
    if not found and glob.has_magic(path) and (in_study or not glob.has_magic(full.split("/")[1])):
        found = glob.glob(f"{glob.escape(base)}/{path}", recursive=in_study)  # noqa: PTH207 - Path.glob refuses some texts
    for each in map(Path, map(os.path.normpath, found)):
        if each != below and each.is_relative_to(below):
            yield str(each.relative_to(below))
        elif each.is_file() and not _is_temporary(each):
            yield str(each)


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[tuple[bool, str], ...]:
    """Return the words of a text that it does not write to, each with whether it is certainly no script.

    The whole text may be a path with blanks, and a word may be a script.
    """
    found = [(False, text)] if text.startswith(("{study}", "/", "~/", "$HOME/", "${HOME}/")) else []
    before = ""
    for word in _split(text):
        if not (_WRITTEN.fullmatch(before) or _WRITTEN.fullmatch(word.partition("=")[0])):
            is_plain = re.search(r"[\s;|&<>()'\"]", word) is None
            found.append((is_plain, word))
            if not is_plain and word != text:
                found += [(False, each) for _, each in _words(word)]
        if (before, word) != ("tee", "-a"):
            before = word
    return tuple(found)


def _split(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that is not closed
        return re.split(r"[\s'\"<>|;&()]+", text)
