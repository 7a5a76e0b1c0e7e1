"""Turn the command line of `perftrail measure` into entries: fill parameters, split words, assign names."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from perftrail.errors import UsageError
from perftrail.model.benchmark import Point
from perftrail.model.expression import bare_value
from perftrail.model.placeholders import split_command
from perftrail.model.trial import Entry, Group
from perftrail.model.wording import listed, quoted

SHELL = "/bin/sh"
MOST_ENTRIES = 1000

_SHELL_ONLY = re.compile(r"[|&;<>`\n]|\$[A-Za-z_({]")

# Text that a shell does not change; double quotes only where they contain nothing that a shell expands.
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|\$(?![A-Za-z_({])|[^"\\$`])*"|\\.""", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The command line of `measure`.

    `commands` are one text each; `words` is one command, already split into words. `parameters` holds each
    parameter's values as written. `shell` is the words that start the shell, empty for none. Each hook has
    one value for all commands, or one for each, the reference included.
    """

    commands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    reference: str | None = None
    reference_name: str | None = None
    names: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[str, ...]]
    shell: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """The entries in order, the groups that are compared, and the empty shell command if a shell is used."""

    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    shell: Entry | None


def enter(asked: CommandLine) -> Entered:
    """Return the entries of a command line; raises `UsageError` with every mistake in it.

    Commands change faster than parameters, in hyperfine's order. Each of several commands is compared with
    the first, or with the reference, at the same values. With one command, each value is compared with the
    first value.
    """
    written = _written(asked)
    points = _points(asked, written)
    reference = asked.reference
    fixed = reference is not None and points != [{}] and not _uses(reference, asked.parameters)
    per_point = written[1:] if fixed else written
    cells = [(number, values) for values in points for number in range(len(per_point))]
    if fixed:
        cells = [(0, {}), *((number + 1, values) for number, values in cells)]
    if len(cells) > MOST_ENTRIES:
        raise UsageError(f"{len(cells)} commands to measure; at most {MOST_ENTRIES}")
    names = _names(asked, [number for number, _ in cells], len(written))
    entries = tuple(
        _entry(asked, written[number], values, command=number, of=len(written), name=name)
        for (number, values), name in zip(cells, names, strict=True)
    )
    return Entered(
        entries=entries,
        groups=_groups(len(entries), 1 if fixed else len(points), together=len(written) == 1 or fixed),
        shell=Entry(
            name=_empty_shell(asked.shell),
            command=_empty_shell(asked.shell),
            arguments=(*asked.shell, "-c", ""),
        )
        if asked.shell
        else None,
    )


def scan(name: str, first: str, last: str, *, step: str | None) -> tuple[str, ...]:
    """Return the values between two numbers, as written decimals; raises `UsageError`.

    >>> scan("delay", "0.3", "0.7", step="0.2")
    ('0.3', '0.5', '0.7')
    """
    try:
        low, high, by = Decimal(first), Decimal(last), Decimal(step or "1")
    except InvalidOperation as error:
        raise UsageError(f"-P {name} {first} {last}: needs numbers, as in -P {name} 1 8 -D 1") from error
    if not (low.is_finite() and high.is_finite() and by.is_finite()) or low > high or by <= 0:
        raise UsageError(
            f"-P {name} {first} {last}: goes from a smaller to a larger number, in steps above 0"
        )
    count = int((high - low) / by) + 1
    if count > MOST_ENTRIES:
        raise UsageError(f"-P {name} {first} {last}: has {count} values; at most {MOST_ENTRIES}")
    return tuple(str(low + by * number) for number in range(count))


def values_of(text: str) -> tuple[str, ...]:
    r"""Split the values of a list at its commas; ``\,`` is a comma in a value.

    >>> values_of(r"gcc,clang -O1\,2")
    ('gcc', 'clang -O1,2')
    """
    return tuple(value.replace("\\,", ",") for value in re.split(r"(?<!\\),", text))


def needs_shell(text: str) -> str | None:
    """Return the first character outside quotes that only a shell understands, or `None`.

    >>> needs_shell("sleep 1 && echo"), needs_shell("awk '{ print $a }' b"), needs_shell("echo $HOME")
    ('&', None, '$H')
    """
    found = _SHELL_ONLY.search(_QUOTED.sub("", text))
    return found.group() if found else None


def _written(asked: CommandLine) -> list[str]:
    """Return every command as one text, the reference first."""
    if asked.words and asked.commands:
        raise UsageError("write commands before the --, or the words of one command after it; not both")
    commands = [shlex.join(asked.words)] if asked.words else list(asked.commands)
    if not commands:
        raise UsageError(
            "no command to measure; use perftrail measure 'COMMAND' ['COMMAND' …], or perftrail measure -- WORD …"
        )
    return commands if asked.reference is None else [asked.reference, *commands]


def _points(asked: CommandLine, written: Sequence[str]) -> list[dict[str, str]]:
    """Return every combination of parameter values, the first parameter changing fastest."""
    hooks = (*asked.setup, *asked.prepare, *asked.conclude, *asked.cleanup, *asked.names)
    for name, values in asked.parameters.items():
        if not _NAME.fullmatch(name):
            raise UsageError(f"parameter {quoted(name)}: use letters, digits, _ and -, a letter first")
        if not any(_uses(text, (name,)) for text in (*written, *hooks)):
            raise UsageError(f"parameter {name}: no command contains {{{name}}}")
        if len(set(values)) < len(values):
            raise UsageError(f"parameter {name}: duplicate value in {listed(values, 'and')}")
    combinations = itertools.product(*reversed(list(asked.parameters.values())))
    return [dict(zip(asked.parameters, reversed(values), strict=True)) for values in combinations]


def _groups(count: int, points: int, *, together: bool) -> tuple[Group, ...]:
    if together or points == 1:
        return (Group(reference=0, others=tuple(range(1, count))),)
    size = count // points
    return tuple(
        Group(reference=first, others=tuple(range(first + 1, first + size)))
        for first in range(0, count, size)
    )


def _entry(
    asked: CommandLine, text: str, values: Mapping[str, str], *, command: int, of: int, name: str | None
) -> Entry:
    shown = _fill(text, values, shlex.quote)
    if asked.shell:
        arguments: tuple[str, ...] = (*asked.shell, "-c", shown)
    elif asked.words and command == of - 1:
        arguments = tuple(_fill(word, values) for word in asked.words)
    else:
        arguments = _words(text, values, named="")

    def hook(option: str, texts: tuple[str, ...]) -> tuple[str, ...]:
        return _hook(asked, option, texts, values=values, command=command, of=of)

    return Entry(
        name=shown if name is None else _fill(name, values),
        command=shown,
        arguments=arguments,
        written=text,
        point=Point(tuple((axis, bare_value(value)) for axis, value in values.items())),
        setup=hook("--setup", asked.setup),
        prepare=hook("--prepare", asked.prepare),
        conclude=hook("--conclude", asked.conclude),
        cleanup=hook("--cleanup", asked.cleanup),
    )


def _words(text: str, values: Mapping[str, str], *, named: str) -> tuple[str, ...]:
    """Split a command into words and fill in parameters. A value stays one word, and no shell reads it."""
    sign = needs_shell(text)
    if sign:
        raise UsageError(
            f"{named}{quoted(text)}: {quoted(sign)} needs a shell, and none is used: add --shell (the"
            " shell's time is then measured and shown), or put literal text in single quotes"
        )
    try:
        return tuple(_fill(word, values) for word in split_command(text))
    except ValueError as error:
        raise UsageError(f"{named}{quoted(text)}: {error}") from error


def _hook(
    asked: CommandLine, option: str, texts: Sequence[str], *, values: Mapping[str, str], command: int, of: int
) -> tuple[str, ...]:
    """Return the words of a hook, which runs before or after a command.

    Hooks are not measured, so a text that needs a shell gets one, unless it contains parameters.
    """
    if not texts:
        return ()
    if len(texts) not in (1, of):
        raise UsageError(f"{option}: use it once, or once for each of the {of} commands; found {len(texts)}")
    text = texts[0] if len(texts) == 1 else texts[command]
    if not text.strip():
        return ()
    if asked.shell:
        return (*asked.shell, "-c", _fill(text, values, shlex.quote))
    if needs_shell(text) and not _uses(text, values):
        return (SHELL, "-c", text)
    return _words(text, values, named=f"{option} ")


def _names(asked: CommandLine, numbers: Sequence[int], commands: int) -> list[str | None]:
    """Return the name of each entry, or `None` without a name. `numbers` are the entries' command numbers."""
    first = 0 if asked.reference is None else 1
    own = [number for number in numbers if number >= first]
    given: Sequence[str | None] = asked.names
    if not given:
        given = [None] * len(own)
    elif len(given) in (1, commands - first) and len(given) != len(own):
        texts = asked.names if len(given) > 1 else asked.names * (commands - first)
        given = [_with_point(texts[number - first], asked.parameters) for number in own]
    elif len(given) != len(own):
        raise UsageError(f"-n: {len(given)} names for {len(own)} commands; use one for each, or one for all")
    left = iter(given)
    return [next(left) if number >= first else asked.reference_name for number in numbers]


def _with_point(name: str, parameters: Mapping[str, tuple[str, ...]]) -> str:
    """Add the parameter values to a name that several entries share, unless it contains them."""
    open_ones = [axis for axis in parameters if not _uses(name, (axis,))]
    return " ".join([name, *(f"{axis}={{{axis}}}" for axis in open_ones)])


def _fill(text: str, values: Mapping[str, str], quote: Callable[[str], str] = str) -> str:
    """Replace names in braces by their values; other braces stay as they are."""
    if not values:
        return text
    return _braces(values).sub(lambda found: quote(values[found.group(1)]), text)


def _uses(text: str, names: Mapping[str, object] | Sequence[str]) -> bool:
    return bool(names) and _braces(names).search(text) is not None


def _braces(names: Mapping[str, object] | Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"\{(" + "|".join(re.escape(name) for name in names) + r")\}")


def _empty_shell(shell: tuple[str, ...]) -> str:
    return shlex.join((*shell, "-c", "")) if shell else ""
