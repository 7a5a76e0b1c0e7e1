"""Rules for texts: paths, ranges, patterns and placeholders; also `[watch]` and studies of samples."""

from __future__ import annotations

import re
import shlex
import warnings
from typing import TYPE_CHECKING

from perftrail.model.placeholders import LAYOUT, names, source_placeholder, sources_named, unclosed
from perftrail.model.source import Ends, read_span
from perftrail.model.wording import listed, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from perftrail.model.study import Study
    from perftrail.studyfile.key_lines import KeyPath
    from perftrail.studyfile.problems import Problems


def inside_wrong(path: str, *, of: str) -> str | None:
    """Return what is wrong with a path inside a directory, which `of` names in the message; `None` if it is valid."""
    if not path:
        return "is empty"
    if path.startswith(("/", "~")):
        return f"{quoted(path)} is not relative to {of}; write a path inside it"
    if ".." in path.split("/"):
        return f'{quoted(path)} may leave {of}; write it without ".."'
    if path.startswith("-"):
        return f'{quoted(path)} begins with "-"; write {quoted("./" + path)}'
    return control_wrong(path)


def control_wrong(text: str) -> str | None:
    """Return a message if a text has control characters."""
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in text):
        return f"{quoted(text)} has control characters"
    return None


def range_wrong(text: str, *, words: bool) -> str | None:
    """Return what is wrong with the notation of a range, `None` if it is valid.

    `words` allows ``last 200`` and ``tags:v1.*``, too.
    """
    try:
        span = read_span(text)
    except ValueError as error:
        return f"{quoted(text)} {error}"
    if not isinstance(span, Ends):
        no_ends = f'{quoted(text)} needs two ends here; write "OLD..NEW"'
        return control_wrong(text) if words else no_ends
    if span.old.startswith("-") or span.new.startswith("-"):
        return f'{quoted(text)}: a revision cannot begin with "-"'
    return control_wrong(text)


def revision_wrong(name: str) -> str | None:
    """Return what is wrong with the name of one revision, `None` if it is valid."""
    if not name.strip():
        return "is empty"
    if name.startswith("-"):
        return f'{quoted(name)}: a revision cannot begin with "-"'
    if ".." in name:
        return f"{quoted(name)} is a range; name one revision"
    return control_wrong(name)


def pattern_wrong(pattern: str) -> str | None:
    """Return what is wrong with a regular expression that must have exactly one group."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        return f"{quoted(pattern)} is not a regular expression: {error}; write \\ before a literal ( or ["
    if groups == 1:
        return None
    count = "has no group" if not groups else f"has {groups} groups"
    advice = "write ( ) around the part to read" if not groups else "write (?: ) for all but one"
    return f"{quoted(pattern)} {count} and needs exactly one; {advice}"


def check_environment(
    env: Mapping[str, str],
    path: KeyPath,
    problems: Problems,
    *,
    known: tuple[str, ...],
    parameters: KeyPath | None = None,
) -> None:
    """Report unknown placeholders in variables."""
    for name, value in env.items():
        check_placeholders((value,), (*path, name), problems, known=known, parameters=parameters)


def check_placeholders(
    texts: tuple[str, ...],
    path: KeyPath,
    problems: Problems,
    *,
    known: tuple[str, ...],
    parameters: KeyPath | None = None,
) -> None:
    """Report unknown placeholders in texts of one key; `parameters` is where more are declared."""
    for name, wrong in unknown_placeholders(texts, known, parameters=parameters).items():
        item = next(index for index, text in enumerate(texts) if name in names(text))
        problems.add(path, wrong, about=None if parameters is None else (*parameters, name), item=item)
    for index, text in enumerate(texts):
        if found := unclosed(text, known):
            problems.add(path, f"the brace of {quoted(found)} is not closed; write {found}}}", item=index)


def check_relink(
    lines: tuple[str, ...],
    path: KeyPath,
    problems: Problems,
    *,
    known: tuple[str, ...],
    parameters: KeyPath | None = None,
) -> None:
    """Report relink lines without a seed, and their unknown placeholders."""
    check_placeholders(lines, path, problems, known=(*known, LAYOUT), parameters=parameters)
    named = {name for line in lines for name in names(line)}
    misspelt = any(nearest(name, (LAYOUT,)) for name in named - {LAYOUT, *known})
    if lines and LAYOUT not in named and not misspelt:
        problems.add(
            path,
            f"must use {{{LAYOUT}}}, or every layout would be the same; for example "
            f"-Wl,--shuffle-sections=.text*={{{LAYOUT}}}",
        )


def output_wrong(output: str, sources: Collection[str]) -> str | None:
    """Return what is wrong with an output path of a build: its own, or ``{source.NAME}/…``."""
    name, slash, path = output.partition("/")
    if slash and name in {f"{{{source_placeholder(source)}}}" for source in sources}:
        return inside_wrong(path, of="that source's tree")
    return inside_wrong(output, of="the build directory")


def unknown_placeholders(
    texts: Iterable[str], known: Collection[str], *, parameters: KeyPath | None = None
) -> Mapping[str, str]:
    """Return a message for each placeholder without a value; `parameters` is where more are declared."""
    unknown = dict.fromkeys(name for text in texts for name in names(text) if name not in known)
    return {name: _unknown(name, known, parameters) for name in unknown}


def _unknown(name: str, known: Collection[str], parameters: KeyPath | None) -> str:
    if name == LAYOUT:
        return f"{{{LAYOUT}}} has a value in relink lines only (for the text itself, write {{{{{LAYOUT}}}}})"
    near = nearest(name, known)
    if not near and (source := sources_named([f"{{{name}}}"])):
        return f"{{{name}}} names no source; write [sources.{source[0]}] with its kind and location"
    written = [f"{{{each}}}" for each in known]
    hint = f"did you mean {{{near}}}?" if near else f"there are {listed(written, 'and')}"
    if not near and parameters is not None:
        hint += f"; if it is a parameter, write its values in {'.'.join(map(str, parameters))}"
    return f"unknown placeholder {{{name}}}; {hint} (for the text itself, write {{{{{name}}}}})"


_WEBHOOK = re.compile(r"https?://[^@\s/?#]+([/?#]\S*)?")
_MAIL = re.compile(r"[^@\s<>,;:\"]+@[^@\s<>,;:\"]+")
_SERVER = re.compile(r"[^@\s/]+:[0-9]{1,5}")
LAST_PORT = 65535


def check_watch(study: Study, problems: Problems) -> None:
    """Report invalid branches and receivers."""
    branch, notify = study.watch.branch, study.watch.notify
    if branch is not None and (wrong := revision_wrong(branch)):
        problems.add(("watch", "branch"), wrong)
    kinds = {"webhook": notify.webhook, "command": notify.command, "mail": notify.mail}
    for kind, receivers in kinds.items():
        for receiver in receivers:
            if wrong := receiver_wrong(kind, receiver):
                problems.add(("watch", "notify", kind), wrong)
    if _SERVER.fullmatch(notify.smtp) is None or not 0 < int(notify.smtp.rpartition(":")[2]) <= LAST_PORT:
        problems.add(("watch", "notify", "smtp"), "is not a valid mail server; write HOST:PORT")
    for name, text in (("sender", notify.sender), ("user", notify.user)):
        if wrong := control_wrong(text):
            problems.add(("watch", "notify", name), wrong)


def receiver_wrong(kind: str, receiver: str) -> str:
    """Return what is wrong with a receiver, empty if it is valid."""
    if wrong := control_wrong(receiver):
        return wrong
    if kind == "webhook" and _WEBHOOK.fullmatch(receiver) is None:
        return "is not a valid webhook address; write https://HOST/PATH, without a user or a password"
    if kind == "mail" and _MAIL.fullmatch(receiver) is None:
        return "is not a valid mail address; write NAME@HOST"
    if kind == "command":
        try:
            words = shlex.split(receiver)
        except ValueError as error:
            return f"cannot be split into words: {error}"
        return "" if words else "names no command"
    return ""


_TABLES_OF_RUNS = (
    "sources",
    "build",
    "variants",
    "benchmark",
    "service",
    "derived",
    "claims",
    "measure",
    "find",
    "sandbox",
    "watch",
)
"""Tables that only apply to studies that build and run."""


def check_samples(study: Study, problems: Problems) -> None:
    """Report tables that do not apply to imported samples, and imported samples in other studies."""
    if study.source.kind == "samples":
        for table in _TABLES_OF_RUNS:
            if problems.has_key((table,)):
                problems.add((table,), "does not apply to imported samples; remove it")
    for name, source in study.sources.items():
        if source.kind == "samples" and problems.is_correct(("sources", name, "kind")):
            problems.add(("sources", name, "kind"), "samples need their own study; write them as [source]")
