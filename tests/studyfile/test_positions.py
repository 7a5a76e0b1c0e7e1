"""The scanner finds every key that tomllib finds, on the line where it stands."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from perftrail.studyfile.key_lines import key_lines
from tests.studyfile.toml_texts import documents, paths

FEW_OR_MANY = pytest.mark.parametrize("examples", [15, pytest.param(100, marks=pytest.mark.long)])
"""Number of drawn texts."""


ODD = 'a."b c" . d = 1\r\n[["x"]]\n[x.y]\nz = { p.q = [ { r = 1 },\n{ s = 2 } ] }\n'


@FEW_OR_MANY
def test_the_keys_found_are_those_that_tomllib_finds(examples: int) -> None:
    @settings(max_examples=examples)
    @given(documents())
    @example(ODD)
    def holds(text: str) -> None:
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            assume(False)
        found = {path for path in key_lines(text) if isinstance(path[-1], str)}
        assert found == paths(data)

    holds()


@FEW_OR_MANY
def test_each_key_is_on_a_line_that_names_it(examples: int) -> None:
    @settings(max_examples=examples)
    @given(documents())
    def holds(text: str) -> None:
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            assume(False)
        lines = text.replace("\r\n", "\n").split("\n")
        for path, line in key_lines(text).items():
            name = path[-1]
            if isinstance(name, str) and name.isascii() and name.isalnum():
                assert name in lines[line - 1]

    holds()


@given(st.text(st.sampled_from("[]{}\"'=.,#\n\\ ab1"), max_size=40))
def test_text_that_is_not_toml_ends_the_scan_quietly(text: str) -> None:
    key_lines(text)


def test_nesting_however_deep_takes_no_stack() -> None:
    depth = 2_000
    lines = key_lines("a = " + "[" * depth + "]" * depth + "\nb = 1")
    assert (lines["a",], lines["b",]) == (1, 2)


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2", ("b",), 2),
        ("a = [\n  1,\n]\nb = 2", ("b",), 4),
        ("a = { b = 1,  c = { d = 2 } }", ("a", "c", "d"), 1),
        ("a = [\n  { b = 1 },\n  { b = 2 },\n]", ("a", 1, "b"), 3),
        ('a = [\n  "x", "y",\n  "z",\n]', ("a", 1), 2),
        ('a = [\n  "x",\n  # a comment\n  "z",\n]', ("a", 1), 4),
        ("[[a]]\nb = 1\n\n[[a]]\nb = 2", ("a", 1, "b"), 5),
        ("[[a]]\n[[a.b]]\n[[a.b]]\nc = 1\n[[a]]\n[[a.b]]\nc = 2", ("a", 1, "b", 0, "c"), 7),
        ("[a.b]\nc = 1\n[a]\nd = 2", ("a",), 3),
        ("[a]\nb.c = 1\nb.d = 2", ("a", "b"), 2),
        ('a = """\nb = 1\n"""\nc = 2', ("c",), 4),
        ("a = '''\n[b]\n'''\r\nc = 2", ("c",), 4),
        ('["a.b"]\n"c d" = 1', ("a.b", "c d"), 2),
        ("# [a]\n[b] # c = 1\nd = 1", ("b", "d"), 3),
    ],
)
def test_a_key_has_its_line(text: str, path: tuple[str | int, ...], line: int) -> None:
    assert key_lines(text)[path] == line
