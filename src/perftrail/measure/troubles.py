"""What failures have in common: one trouble each, the stretch of history that has it, and what may be done.

What may help a stretch of history that fails for one cause: lines to paste into the study file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.studyfile.writing import toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.model.build import Failure, Recipe
    from perftrail.model.search_record import Json
    from perftrail.model.subject import Revision, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Revisions that were looked at one after the other; an end is `None` where the history was looked at no further.

    `before` and `after` are the next ones that were looked at beside it: the true ends lie between.
    """

    first: Revision
    last: Revision
    before: Revision | None
    after: Revision | None

    @property
    def range(self) -> str:
        """The stretch as a study file has it; open at the ends of the history."""
        return f"{self.first.short if self.before else ''}..{self.last.short if self.after else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A failure that several subjects have in common: its stage, what it says, and the first one's log.

    `line` is the most telling line in the first subject's own words: hostile text. `stretch` is where they are
    neighbours and others that were tried do not fail so.
    """

    failure: Failure
    line: str
    subjects: tuple[Subject, ...]
    stretch: Stretch | None = None

    @property
    def oldest(self) -> bool:
        """Whether all of these, and nothing else that was tried, come before what does not fail so."""
        return self.stretch is not None and self.stretch.before is None

    @property
    def more(self) -> tuple[str, ...]:
        """The telling lines after the first."""
        return tuple(self.failure.message.strip().splitlines()[1:])

    def as_json(self) -> dict[str, Json]:
        """The trouble as `check --json` prints it."""
        return {
            "stage": self.failure.stage,
            "line": self.line,
            "message": self.failure.message,
            "count": len(self.subjects),
            "revisions": list(dict.fromkeys(subject.revision.id for subject in self.subjects)),
            "oldest": self.oldest,
            "range": self.stretch.range if self.stretch else None,
            "log": self.failure.log,
        }


def common(tried: Sequence[Subject], failures: Mapping[Subject, Failure]) -> tuple[Trouble, ...]:
    """Put failures together that are one and the same trouble, the one that most subjects have first."""
    groups: dict[tuple[str, str], list[Subject]] = {}
    for subject in tried:
        if subject in failures:
            failure = failures[subject]
            groups.setdefault((failure.stage, alike(_telling(failure))), []).append(subject)
    revisions = tuple(dict.fromkeys(subject.revision for subject in tried))
    return tuple(
        Trouble(
            failure=failures[group[0]],
            line=_telling(failures[group[0]]),
            subjects=tuple(group),
            stretch=_stretch(revisions, {subject.revision for subject in group}),
        )
        for group in sorted(groups.values(), key=len, reverse=True)
    )


def alike(line: str) -> str:
    """Give a line without what may differ where one trouble is told twice: places, numbers, ids.

    >>> alike("/tmp/b/0f3a9c1e77/tree/src/a.c:12:5: error: 'x' undeclared")
    "a.c:#:#: error: 'x' undeclared"
    """
    for pattern, instead in _DIFFERS:
        line = pattern.sub(instead, line)
    return line.strip()


_DIFFERS = (
    # What differs between builds of one trouble: where it lies, what a compiler calls its temporary files, what
    # it is called by content, counts.
    (re.compile(r"(?:[\w.@+-]*/)+([\w.@+-]+)"), r"\1"),
    (re.compile(r"\bcc\w{6}\.(?=[os]\b)"), "#."),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b"), "#"),
    (re.compile(r"\d+"), "#"),
    (re.compile(r"\s+"), " "),
)


def _stretch(tried: Sequence[Revision], failing: set[Revision]) -> Stretch | None:
    """Give the stretch that some of the revisions are; `None` when they are all or not neighbours."""
    places = [place for place, revision in enumerate(tried) if revision in failing]
    first, last = places[0], places[-1]
    if len(places) == len(tried) or len(places) != last - first + 1:
        return None
    return Stretch(
        first=tried[first],
        last=tried[last],
        before=tried[first - 1] if first else None,
        after=tried[last + 1] if last + 1 < len(tried) else None,
    )


def gist(line: str) -> str:
    """Give what a line complains of, without the place where it does.

    >>> gist("/usr/bin/ld: /tmp/ccexOEQC.o:(.bss+0x0): multiple definition of `x'; y.o: first defined here")
    "multiple definition of `x'"
    """
    found = _GIST.search(line)
    return (found[1] or found["said"]).strip() if found else line


_GIST = re.compile(
    r"((?:multiple definition of|undefined reference to) [^;]*)|(?:^|: )(?:fatal )?error: (?P<said>.*)"
)


def _telling(failure: Failure) -> str:
    """The first of the lines that tell why something failed; they come with the most telling first."""
    lines: Iterable[str] = failure.message.strip().splitlines()
    return next(iter(lines), f"failed at {failure.stage}")


LONGEST_REASON = 120

_HEADER = re.compile(r"fatal error: ['\"]?([\w+-][\w./+-]*)['\"]?(?:: No such file|.*file not found)")
_TWICE = re.compile(r"multiple definition of")
_WARNING = re.compile(r"\[-W(?:error[=,])?(?:-W)?([a-z][a-z0-9+-]*)\]")
_CXX = re.compile(r"\.(?:cc|cpp|cxx|c\+\+|C|hpp|hh)\b")
_ELSEWHERE = re.compile(r"cannot find -l|No space left|Killed|command not found|: not found$")
"""What no change of the tree mends: a library or a tool is lacking, or the machine is too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One way to go on: what it does, and the lines that say so in a study file."""

    does: str
    lines: tuple[str, ...]


def remedies(trouble: Trouble, recipe: Recipe) -> tuple[Remedy, ...]:
    """Give what may help against a trouble that is one stretch; nothing where it is none."""
    if trouble.stretch is None:
        return ()
    return tuple(_remedies(trouble, trouble.stretch, recipe))


def _remedies(trouble: Trouble, stretch: Stretch, recipe: Recipe) -> Iterator[Remedy]:
    range_ = f"range = {toml(stretch.range)}"
    if trouble.failure.stage == "relink":
        yield Remedy(
            does="measure them as their recipe links them", lines=("[[build.when]]", range_, "relink = []")
        )
        return
    if trouble.failure.stage == "build" and not _ELSEWHERE.search(trouble.line):
        does, line = _repair(trouble.line, recipe)
        yield Remedy(does=does, lines=("[[build.when]]", range_, line))
    reason = gist(trouble.line)
    reason = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"
    yield Remedy(does="leave them out", lines=("[[source.skip]]", range_, f"reason = {toml(reason)}"))


def _repair(line: str, recipe: Recipe) -> tuple[str, str]:
    """Say what may mend a build that fails with a line, and the key that does it."""
    if found := _HEADER.search(line):
        name = found[1]
        if ".." not in name.split("/"):
            inside = "{ " + toml(f"compat/{name}") + " = " + toml(f"include/{name}") + " }"
            return "put the missing header where they look for it", f"overlay = {inside}"
    name = "CXXFLAGS" if _CXX.search(line) else "CFLAGS"
    flag = "-fcommon" if _TWICE.search(line) else ""
    if not flag and (warning := _WARNING.search(line)):
        flag = f"-Wno-error={warning[1]}"
    if flag:
        flags = f"{recipe.env.get(name, '-O2')} {flag}".strip()
        return "compile them as compilers did then", f"env = {{ {name} = {toml(flags)} }}"
    return "mend them with a patch of yours", 'patch = ["fixes/old.patch"]'
