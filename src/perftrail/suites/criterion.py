"""Programs that use criterion.rs, in any version since 0.2: copies of what ``cargo bench --no-run`` built.

A program runs in the directory of its package, as `cargo bench` runs it: ``perftrail-bench/crates/a/parse`` in
``crates/a``. Criterion chooses the iterations of each invocation. The command prints criterion's samples as a message
of cargo-criterion, because ``sample.json`` lacks the name and the unit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point
from perftrail.model.placeholders import literal
from perftrail.model.suite import SuiteItem
from perftrail.suites.rust import as_value, at_package, listing_of, unique_names
from perftrail.suites.shell import by_program, word, words

if TYPE_CHECKING:
    from perftrail.model.metrics import Printed
    from perftrail.model.suite import Suite

READS: Printed = "criterion"

_MARK = "CRITERION_"
"""Text in each program that uses criterion: its environment variables."""

_LISTED = re.compile(r"^(.+): bench(?:mark)?$", re.MULTILINE)
_SAMPLES = 10
"""Fewest samples that criterion accepts: more of them would run slow benchmarks for much longer than asked."""

_RESAMPLES = 1000
"""Few bootstrap resamples, because perftrail does not use criterion's intervals."""

_PRINT = r"""
unusual=$(sed -n 's/.*time: *\[[0-9.e+-]* \([^ ]*\) .*/\1/p' "$home/output" | grep -vE '^(p|n|u|µ|m|)s$');
if [ -n "$unusual" ]; then echo "criterion measures another quantity than time: $unusual" >&2; exit 1; fi;
find "$home" -path '*/new/sample.json' -exec sed
-e 's/^\[\(\[[^]]*\]\),\(\[[^]]*\]\)\]$/{"iters":\1,"times":\2}/'
-e 's/"iters":/"iteration_count":/' -e 's/"times":/"measured_values":/'
-e 's/^{/{"reason":"benchmark-complete","id":"sample","unit":"ns",/' {} +
"""
"""Print the samples; the first substitution is for the two lists of versions before 0.3.3."""


def listing(suite: Suite) -> str:
    """Print the names; programs without criterion are skipped."""
    return listing_of(suite, mark=_MARK, line=f'"$at" --bench --list{words(suite.arguments)}')


def read_listing(output: str, _suite: Suite) -> tuple[SuiteItem, ...]:
    """Return every name of every program."""
    found = list(
        dict.fromkeys(
            (program, name) for program, printed in by_program(output) for name in _LISTED.findall(printed)
        )
    )
    items: dict[tuple[str, Point], SuiteItem] = {}
    for (program, full), name in zip(found, unique_names(found), strict=True):
        benchmark, point = _split(name, full)
        items.setdefault(
            (benchmark, point),
            SuiteItem(name=benchmark, point=point, selector=f"{program}\t{full}"),
        )
    return tuple(items.values())


def command(suite: Suite, item: SuiteItem) -> str:
    """Run one benchmark; criterion's files are in a temporary directory of the invocation's working directory.

    Versions before 0.4 accept only whole seconds. A regular expression selects the benchmark in all versions;
    ``--exact`` exists since 0.5.
    """
    program, _, name = item.selector.partition("\t")
    options = (
        f"--bench --noplot --sample-size {_SAMPLES} --nresamples {_RESAMPLES}{words(suite.arguments)} "
        f"{word(f'^{_escaped(name)}$')}"
    )
    whole = max(1, round(suite.seconds))
    return (
        'home=$(mktemp -d "$PWD/criterion.XXXXXX") && trap \'rm -rf "$home"\' EXIT && '
        f'{at_package(suite, program)} && if [ -x "$at" ]; then '
        'export CRITERION_HOME="$home" CARGO_TARGET_DIR="$home"; '
        'measure() {{ "$at" --warm-up-time "$1" --measurement-time "$2" '
        f'{options} >"$home/output" 2>&1; }}}}; '
        f"measure {max(suite.seconds / 2, 0.001):g} {max(suite.seconds, 0.001):g} || "
        f'(grep -q "valid value\\|invalid digit" "$home/output" && measure {whole} {whole}) || '
        f'{{{{ cat "$home/output" >&2; exit 1; }}}}; '
        f"{literal(' '.join(_PRINT.split()))}; fi"
    )


def server(_suite: Suite, _item: SuiteItem) -> str:
    """There is none: such a program starts quickly."""
    return ""


def request(_suite: Suite, _item: SuiteItem) -> str:
    """There is none."""
    return ""


def _escaped(name: str) -> str:
    r"""Return a regular expression of Rust for a name.

    >>> print(_escaped("a+b c"))
    a\+b c
    """
    return re.sub(r"[\\.+*?()|\[\]{}^$#&~-]", r"\\\g<0>", name)


def _split(name: str, full: str) -> tuple[str, Point]:
    """Split ``group/function/parameter`` or ``group/number``; a list does not state which parts are parameters.

    >>> str(_split("sizes/plain/10", "sizes/plain/10")[1]), _split("sizes/plain", "sizes/plain")[0]
    ('parameter=10', 'sizes/plain')
    """
    parts = full.split("/")
    value = as_value(parts[-1])
    if all(parts) and (len(parts) == 3 or (len(parts) > 1 and isinstance(value, int))):
        return name.rpartition("/")[0], Point((("parameter", value),))
    return name, Point()
