"""Words and numbers for people.

Numbers: values with intervals and units, changes, durations and sizes. Words: quotes, plurals, lists of choices,
suggestions, and escaped text.
"""

from __future__ import annotations

import difflib
import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


DOCUMENTATION = "https://perftrail.github.io/perftrail"
"""Address of the site, which pyproject.toml also states."""

REFUSED = "the sandbox refused"
"""Words before the refused operations in the message of a failure."""

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
MOST_DIGITS = 4
"""Largest number of significant digits, for any interval."""

_BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


_LARGEST_EXACT = 1e4
"""Larger numbers end in zeros if their interval does not support all digits."""

_LARGEST_PLAIN = 1e7
"""Larger numbers have an exponent."""


def page_address(page: str) -> str:
    """Return the address of a page of the documentation, which is a Markdown file below `docs` in the repository.

    >>> page_address("how-to/find.md")
    'https://perftrail.github.io/perftrail/how-to/find.html'
    """
    return f"{DOCUMENTATION}/{page.removesuffix('.md')}.html"


def quantity(value: float, unit: str, *, low: float | None = None, high: float | None = None) -> str:
    """Format a value with its unit, and with its interval if given.

    >>> quantity(0.04215, "s", low=0.0418, high=0.0431)
    '42.1 ms [41.8, 43.1]'
    >>> quantity(123456789, "B")
    '118 MiB'
    >>> quantity(5824724, "1/s", low=4115933, high=6789132), quantity(1012345, "", low=1012340, high=1012349)
    ('5800000 1/s [4100000, 6800000]', '1012345 [1012340, 1012349]')
    >>> quantity(9109272, "1/s", low=6315107, high=12180224)
    '9.11e+06 1/s [6.32e+06, 1.22e+07]'
    """
    divisor, name = scale(value, unit)
    suffix = f" {name}" if name else ""
    if low is None or high is None:
        return f"{number(value / divisor)}{suffix}"
    scaled = [each / divisor for each in (value, low, high)]
    if max(map(abs, scaled)) >= _LARGEST_PLAIN:
        texts = [f"{each:.2e}" if each else "0" for each in scaled]
    else:
        digits, step = decimals(*scaled), 1.0
        if max(map(abs, scaled)) >= _LARGEST_EXACT and (width := scaled[2] - scaled[1]) >= 100.0:
            step = 10.0 ** (math.floor(math.log10(width)) - 1)
        texts = [
            f"{round(each / step) * step:.0f}" if step > 1.0 else f"{each:.{digits}f}" for each in scaled
        ]
    return f"{texts[0]}{suffix} [{texts[1]}, {texts[2]}]"


def likely_unit(unit: str) -> str | None:
    """Return the standard unit that another spelling means; `None` for standard and unknown ones.

    >>> likely_unit("msec"), likely_unit("KB"), likely_unit("ms"), likely_unit("requests/s")
    ('ms', 'kB', None, None)
    """
    return _LIKELY_UNITS.get(unit.lower().removesuffix("s")) if unit not in _STANDARD_UNITS else None


_STANDARD_UNITS = frozenset(
    ("s", "ms", "us", "µs", "ns", "ps", "min", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB")
)
_LIKELY_UNITS = {
    **dict.fromkeys(("sec", "second"), "s"),
    **dict.fromkeys(("msec", "milli", "millisec", "millisecond"), "ms"),
    **dict.fromkeys(("usec", "micro", "microsec", "microsecond"), "us"),
    **dict.fromkeys(("nsec", "nano", "nanosec", "nanosecond"), "ns"),
    **dict.fromkeys(("b", "byte"), "B"),
    **{prefix.lower() + end: f"{prefix}B" for prefix in ("k", "M", "G") for end in ("b", "byte")},
}


def number(value: float, *, digits: int = 3) -> str:
    """Format a number with at least this number of significant digits, but no digit of a whole number is lost.

    >>> number(0.98765), number(1234.5), number(0.0), number(9434524181746862080.0)
    ('0.988', '1234', '0', '9.43e+18')
    """
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else str(value)
    if not 1e-4 <= abs(value) < _LARGEST_PLAIN:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


MOST_LEVEL_DIGITS = 7


def levels(before: float, after: float, unit: str, *, shown: Callable[[float], str]) -> tuple[str, str]:
    """Format two levels with the fewest digits from which a reader gets the ratio that `shown` prints.

    >>> levels(0.62, 0.804, "", shown=lambda ratio: f"{ratio:.2f}")
    ('0.620', '0.804')
    >>> levels(0.0350, 0.03534, "s", shown=lambda ratio: f"{ratio - 1.0:+.1%}")
    ('35.00 ms', '35.34 ms')
    """
    scales = [scale(value, unit) for value in (before, after)]
    sized = [value / divisor for value, (divisor, _) in zip((before, after), scales, strict=True)]
    suffixes = [f" {name}" if name else "" for _, name in scales]
    wanted = shown(after / before) if before > 0.0 else ""
    for digits in range(3, MOST_LEVEL_DIGITS + 1):
        texts = [number(value, digits=digits) for value in sized]
        first, second = (float(text) * divisor for text, (divisor, _) in zip(texts, scales, strict=True))
        if before <= 0.0 or (first > 0.0 and shown(second / first) == wanted):
            break
    return f"{texts[0]}{suffixes[0]}", f"{texts[1]}{suffixes[1]}"


def decimals(value: float, low: float, high: float) -> int:
    """Return the number of decimals that an interval supports: two digits of its width, up to `MOST_DIGITS`."""
    width = high - low
    if width <= 0.0:
        width = abs(value) * 1e-3
    if width == 0.0 or not math.isfinite(width):
        return 0
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    return max(0, min(1 - math.floor(math.log10(width)), MOST_DIGITS - 1 - magnitude))


def change(ratio: float) -> str:
    """Format a ratio after/before as a change with a neutral direction word.

    >>> change(1.041), change(0.5), change(2.5)
    ('4.1 % more', '50 % less', '2.50 times')
    """
    if ratio >= 2.0 or ratio <= 0.0:
        return f"{number(ratio)} times"
    percent = abs(ratio - 1.0) * 100.0
    digits = 0 if percent >= 10.0 else 1 if percent >= 0.1 else 2
    return f"{percent:.{digits}f} % {'more' if ratio >= 1.0 else 'less'}"


def percent(share: float) -> str:
    """Format a share or a relative change in percent, with two digits; a change above 1000 % as a factor.

    >>> percent(0.0069), percent(0.174), percent(1.5), percent(895.4), percent(1.2e6)
    ('0.69 %', '17 %', '150 %', 'a factor of 896', 'a factor above 1,000')
    """
    value = share * 100.0
    if share > 1000.0:
        return "a factor above 1,000"
    if value > 1000.0:
        return f"a factor of {number(1.0 + share)}"
    return f"{value:.2g} %" if abs(value) < 10.0 else f"{value:.0f} %"


def duration(seconds: float) -> str:
    """Format a duration coarsely.

    >>> duration(3.2), duration(95), duration(7300), duration(0.005)
    ('3.2 s', '1 min 35 s', '2 h 1 min', '5 ms')
    """
    if 0.0005 <= seconds < 0.05:
        return f"{seconds * 1000.0:.0f} ms"
    if seconds < 10.0:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def probability(value: float) -> str:
    """Format a probability in percent, never as certain.

    >>> probability(0.9974), probability(0.99999), probability(0.5)
    ('99.7 %', 'more than 99.9 %', '50 %')
    """
    if value > 0.9995:
        return "more than 99.9 %"
    if value < 0.0005:
        return "less than 0.1 %"
    percent = value * 100.0
    return f"{percent:.1f} %" if percent > 99.0 or percent < 1.0 else f"{percent:.0f} %"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun.

    >>> counted(1, "run"), counted(12_000, "run")
    ('1 run', '12,000 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def scale(value: float, unit: str) -> tuple[float, str]:
    """Return the divisor of a value, and the resulting unit.

    >>> scale(0.25, "s")
    (0.001, 'ms')
    """
    table = {"s": _SECONDS, "B": _BYTE_UNITS}.get(unit)
    if table is None:
        return 1.0, unit
    for divisor, name in table:
        if abs(value) >= divisor:
            return divisor, name
    return table[-1] if value else table[0]


LONGEST_QUOTE = 80
"""Longer text is shortened in the middle when it is quoted."""

MOST_LISTED = 12
"""Number of choices that a message lists."""

LONGEST_ESCAPED = 100
"""Longer text is cut when it is escaped, by default."""


def escaped(text: str, *, longest: int | None = LONGEST_ESCAPED, allowed: str = "") -> str:
    r"""Return hostile text as printable text: control and direction characters escaped, except `allowed` ones; cut.

    >>> print(escaped("a" + chr(27) + "[31mb"), escaped("right" + chr(0x202e) + "left"), escaped("abcdef", longest=4))
    a\x1b[31mb right\u202eleft abc…
    """
    safe = text if text.isprintable() else "".join(_escaped(letter, allowed) for letter in text)
    return safe if longest is None or len(safe) <= longest else f"{safe[: longest - 1]}…"


def _escaped(letter: str, allowed: str) -> str:
    return letter if letter.isprintable() or letter in allowed else ascii(letter)[1:-1]


def quoted(text: str) -> str:
    r"""Quote text for a message: escape control and direction characters, shorten long text in the middle.

    >>> print(quoted("a\tb"))
    "a\tb"
    """
    if len(text) > LONGEST_QUOTE:
        half = LONGEST_QUOTE // 2
        text = f"{text[:half]} … {text[-half:]}"
    if all(letter.isprintable() for letter in text):
        return json.dumps(text, ensure_ascii=False)
    return json.dumps(text)


def listed(choices: Iterable[str], last: str = "or") -> str:
    """List choices for a message, up to `MOST_LISTED`.

    >>> listed(["git", "fossil", "release"])
    'git, fossil or release'
    """
    names = list(dict.fromkeys(choices))
    if len(names) > MOST_LISTED:
        return ", ".join(names[:MOST_LISTED]) + f" {last} {len(names) - MOST_LISTED} more"
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + f" {last} {names[-1]}"


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to `word`, `None` if none is.

    >>> nearest("colour", ["color", "size"])
    'color'
    """
    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(word.casefold()[:200], by_folded, n=1, cutoff=0.6)
    return by_folded[near[0]] if near else None


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the near miss, or the choices.

    >>> suggestion("gti", ["git", "fossil"])
    '; did you mean "git"?'
    >>> suggestion("cvs", ["git", "fossil"])
    '; choose git or fossil'
    """
    names = list(choices)
    near = nearest(word, names)
    if near is not None:
        return f"; did you mean {quoted(near)}?"
    return f"; choose {listed(names)}" if names else ""
