"""The first mistake of the syntax is reported where it begins, with a hint for people who do not know TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.studyfile.syntax import NotToml, read_toml
from tests.studyfile.studies import complaints


@pytest.mark.parametrize(
    ("written", "column", "hint"),
    [
        ('[build]\nsteps = ["make"\noutputs = ["prog"]', 9, 'the list that begins here has no closing "]"'),
        ('[build]\nsteps = [\n  "make",\n\n[measure]', 9, 'the list that begins here has no closing "]"'),
        ("[x]\nparameters = {\n  n = [1],\n}", 15, "a table in { } must be in one line"),
        ('[x]\ntitle = "When', 14, "check that each text has both quotes"),
        ('[x]\nkind = git"', 8, 'text needs quotes; write kind = "git"'),
        ('[x]\nsteps = ["make" "install"]', 17, "and each list its commas and brackets"),
        ('[x]\nsteps = "make", "install"', 15, "several values need brackets: [ …, … ]"),
        ("[x]\nkind git", 6, "write KEY = VALUE"),
        ("[x]\nkind: git", 5, 'write "=" instead of ":"'),
        ("[x]\nkind = # git", 8, "the key has no value"),
        ("[x]\nmy key = 1", 4, "a key with blanks or signs needs quotes"),
        ("[x]\n- make", 3, "write a list as KEY = [ …, … ]"),
        ("[x]\nrange = HEAD~1..HEAD", 9, 'text needs quotes; write range = "HEAD~1..HEAD"'),
        ("[x]\ncommand = {build}/prog -x", 17, 'write command = "{build}/prog -x"'),
        ("[x]\ntimeout = 60s # or more", 13, 'text needs quotes; write timeout = "60s"'),
        ("[x]\nshell = True", 9, "write true or false, in small letters"),
        ("[x]\nat = None", 6, "remove the key to use its default"),
        ("[x]\nprecision = .02", 13, "a number begins with a digit"),
        ("[x]\ntitle = \N{LEFT DOUBLE QUOTATION MARK}x", 9, 'write straight quotes: "'),
        (
            "[x]\n" r'm = { pattern = "t=(\d+)" }',
            23,
            "write the text in single quotes, or each backslash twice",
        ),
        ("\n[build", 7, "write a table alone on its line"),
        ("\n[benchmark b]", 12, "write a table alone on its line"),
        ("[a]\n[a]", 3, 'table or key occurs twice in "[a]"; write all its keys in one place'),
    ],
)
def test_a_mistake_is_reported_in_its_line_and_column(written: str, column: int, hint: str) -> None:
    with pytest.raises(NotToml) as raised:
        read_toml(f"# a study\n{written}\n")
    assert raised.value.line == 3
    assert raised.value.message.startswith(f"column {column}: ")
    assert hint in raised.value.message


def test_check_names_the_file_and_the_line(tmp_path: Path) -> None:
    (found,) = complaints(tmp_path, '[source]\nkind = git\nlocation = "."\n')
    assert found.startswith("perftrail.toml:2: syntax: column 8: invalid value in")


@given(st.text(st.sampled_from("[]{}\"'=.,#\n\\ ab1:-"), max_size=60))
def test_any_text_that_is_not_toml_has_a_mistake_in_one_of_its_lines(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(NotToml) as raised:
            read_toml(text)
        assert 1 <= raised.value.line <= max(1, len(text.splitlines()))
    else:
        assert read_toml(text) == data
