"""Syntax mistakes are reported where they begin, all at once, in words for people who do not know TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perftrail.studyfile.syntax import MOST_MISTAKES, read_toml
from tests.studyfile.studies import SMALL, complaints
from tests.studyfile.toml_texts import documents

SOURCE = '[source]\nkind = "directory"\nlocation = "."\n'
BENCHMARK = '[benchmark.b]\ncommand = "true"\n'


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('[build]\nsteps = ["make"\noutputs = ["prog"]', 'column 9: the list of steps has no closing "]"'),
        ('[build]\nsteps = [\n  "make",\n\n[measure]', 'column 9: the list of steps has no closing "]"'),
        ('[build]\nsteps = [["make"]\nx = 1', 'column 9: the list of steps has no closing "]"'),
        (
            "[x]\nparameters = { n = [1]\ntimeout = 3",
            'column 14: the table of parameters has no closing "}"',
        ),
        (
            "[x]\nparameters = {\n  n = [1],\n  m = [2],\n}",
            "column 14: a table in { } must be in one line; write [x.parameters] and a line for each key",
        ),
        (
            "[x]\nm = { pattern = 'x', }",
            "column 22: a table in { } must not end with a comma; remove it",
        ),
        ('[x]\ntitle = "When', 'column 9: the text that begins with "When has no closing quote'),
        ("[x]\ntitle = 'When", "column 9: the text that begins with 'When has no closing quote"),
        ('[x]\nkind = git"', "column 8: the text that begins with git has no opening quote"),
        (
            '[x]\nsteps = ["make, "make install"]',
            'column 10: a quote is missing near "make, "; text needs a quote at each end',
        ),
        (
            '[x]\nsteps = ["make" "make install"]',
            'column 17: a comma is missing between "make" and "make install"',
        ),
        (
            '[x]\nsteps = "make", "make install"',
            "column 15: several values need brackets; write steps = [ … ]",
        ),
        ('[x]\nsteps = """\nmake', 'column 9: the text that begins here has no closing """'),
        ('[x]\nkind "git"', 'column 6: "=" is missing after kind; write kind = "git"'),
        ("[x]\nkind git", 'column 6: "=" is missing after kind; write kind = "git"'),
        ("[x]\nkind: git", 'column 5: ":" after kind; write "=": kind = "git"'),
        ("[x]\nkind", 'column 5: kind has no value; write kind = "…"'),
        ("[x]\nkind = # git", 'column 7: kind has no value; write kind = "…"'),
        (
            "[x]\nmy key = 1",
            'column 4: "my key" is not a valid key; a key with blanks or signs needs quotes',
        ),
        ("[x]\n- make", 'column 3: "- make" is not a list item; write KEY = [ … ]'),
        ("[x]\n}", 'column 1: "}" closes nothing; remove it'),
        ("[x]\nlocation = . # here", 'column 12: text needs quotes; write location = "."'),
        ("[x]\nrange = HEAD~1..HEAD", 'column 9: text needs quotes; write range = "HEAD~1..HEAD"'),
        (
            "[x]\ncommand = {build}/prog -x",
            'column 11: text needs quotes; write command = "{build}/prog -x"',
        ),
        ("[x]\ntimeout = 60s", 'column 11: text needs quotes; write timeout = "60s"'),
        ("[x]\ntimeout = 60 s", 'column 14: "s" follows the value; text needs quotes: timeout = "60 s"'),
        ("[x]\nsteps = [make]", 'column 10: text needs quotes; write "make"'),
        ("[x]\nshell = True", "column 9: True is not a value; write true"),
        ("[x]\nat = None", "column 6: None is not a value; remove the key to use its default"),
        ("[x]\nprecision = .02", "column 13: .02 is not a number; write 0.02"),
        (
            "[x]\ntitle = \N{LEFT DOUBLE QUOTATION MARK}x\N{RIGHT DOUBLE QUOTATION MARK}",
            'column 9: \N{LEFT DOUBLE QUOTATION MARK} does not begin a text; write the straight quote "',
        ),
        (
            r"[x]" "\n" r'm = { pattern = "t=(\d+)" }',
            r"column 17: \d has no meaning in double quotes; write the text in single quotes: 't=(\d+)'",
        ),
        ("\n[build", 'column 1: "[build" is not a valid table; write [build]'),
        ("\n[benchmark b]", 'column 1: "[benchmark b]" is not a valid table; write [benchmark.b]'),
        ("\n[[x]", 'column 1: "[[x]" is not a valid table; write [[x]]'),
        ("\n[]", 'column 1: "[]" is not a valid table; write [NAME]'),
        ("\n[x] y = 1", 'column 1: "y = 1" must be on a separate line, below [x]'),
    ],
)
def test_a_mistake_is_reported_in_its_line_and_column(written: str, expected: str) -> None:
    (mistake,) = read_toml(f"# a study\n{written}\n").mistakes
    assert (mistake.line, f"column {mistake.column}: {mistake.message}") == (3, expected)


@pytest.mark.parametrize(
    ("written", "line", "expected"),
    [
        ("[a]\nb = 1\n[c]\n[a]\nd = 2", 4, "table a occurs twice, first in line 1; write all its keys there"),
        ("[a]\nb = 1\nb = 2", 3, "a.b occurs twice, first in line 2; remove one of them"),
        (
            "[a]\nb = { c = 1 }\n[a.b]\nd = 1",
            3,
            "table a.b occurs twice, first in line 2; write all its keys there",
        ),
        ("[a]\nb = { c = 1 }\n[a.b.c]\nd = 1", 3, "a.b is complete in line 2; write a.b.c there"),
    ],
)
def test_a_contradiction_names_the_first_occurrence(written: str, line: int, expected: str) -> None:
    (mistake,) = read_toml(written).mistakes
    assert (mistake.line, mistake.message) == (line, expected)


def test_all_mistakes_are_reported_at_once_with_those_of_the_valid_keys(tmp_path: Path) -> None:
    text = (
        f'{SOURCE}[build]\nsteps = ["make"\noutputs = [prog]\n[benchmark.b\ncommand = {{build}}/prog\n'
        'timeoot = "3s"\n[measure]\norder = "randon"\nprecision = 5%\n'
    )
    assert complaints(tmp_path, text) == [
        'perftrail.toml:5: syntax: column 9: the list of steps has no closing "]"',
        'perftrail.toml:6: syntax: column 12: text needs quotes; write "prog"',
        'perftrail.toml:7: syntax: column 1: "[benchmark.b" is not a valid table; write [benchmark.b]',
        'perftrail.toml:8: syntax: column 11: text needs quotes; write command = "{build}/prog"',
        'perftrail.toml:9: benchmark.b.timeoot: unknown key; did you mean "timeout"?',
        'perftrail.toml:11: measure.order: "randon" is not a valid choice; did you mean "random"?',
        'perftrail.toml:12: syntax: column 13: text needs quotes; write precision = "5%"',
    ]


def test_nothing_is_missing_that_was_written_with_a_mistake(tmp_path: Path) -> None:
    text = SMALL.replace('"directory"', "directory").replace('"true"', '"true')
    assert complaints(tmp_path, text) == [
        'perftrail.toml:2: syntax: column 8: text needs quotes; write kind = "directory"',
        'perftrail.toml:6: syntax: column 11: the text that begins with "true has no closing quote',
    ]


def test_a_file_that_is_not_toml_has_a_limited_number_of_mistakes() -> None:
    assert len(read_toml("this is not TOML\n" * 10_000).mistakes) == MOST_MISTAKES


@pytest.mark.parametrize("examples", [15, pytest.param(100, marks=pytest.mark.long)])
def test_a_mistake_in_the_last_line_is_the_only_one_of_a_valid_text(examples: int) -> None:
    @settings(max_examples=examples)
    @given(documents())
    def holds(text: str) -> None:
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            assume(False)
        whole = f"{text}\nno value here"
        (mistake,) = read_toml(whole).mistakes
        assert mistake.line == len(whole.replace("\r\n", "\n").split("\n"))

    holds()


@given(st.text(st.sampled_from("[]{}\"'=.,#\n\\ ab1:-"), max_size=60))
def test_any_text_that_is_not_toml_has_a_mistake_in_one_of_its_lines(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        readable = read_toml(text)
        assert readable.mistakes
        lines = text.split("\n")
        assert all(1 <= each.line <= len(lines) for each in readable.mistakes)
        assert tomllib.loads(readable.text) == readable.data
    else:
        assert read_toml(text).data == data
