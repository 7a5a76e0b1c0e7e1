"""Placeholders are replaced, and text that only resembles one stays."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.model.placeholders import fill, fill_some, names, split_command

_TEXT = st.text(st.sampled_from("{}$ab'\" "), max_size=30)


@pytest.mark.parametrize(
    "text",
    [
        "awk '{ print $1 }'",
        "awk '{x[$1]++} END {for(i in x){print x[i]}}'",
        "echo ${HOME} ${A:-${B}} $HOME",
        "find . -exec cat {} +",
        "cp x.{c,h} {1..3}",
        '{"a": {"b": 1}}',
        "f() { if x; then { y; }; fi; }",
    ],
)
def test_what_the_shell_and_other_languages_write_with_braces_stays(text: str) -> None:
    assert names(text) == ()
    assert fill(text, {"HOME": "no", "A": "no", "B": "no"}) == text


def test_doubled_braces_around_a_name_are_literal() -> None:
    assert names("{{a}} {a}") == ("a",)
    assert fill("{{a}} {a} {{{a}}}", {"a": "1"}) == "{a} 1 {1}"


def test_a_placeholder_inside_an_expansion_of_the_shell_is_filled() -> None:
    assert fill("${CC:-{build}/cc} ${X}", {"build": "/b", "X": "no"}) == "${CC:-/b/cc} ${X}"


def test_a_name_without_a_value_stays() -> None:
    assert fill("{a} {b}", {"a": "1"}) == "1 {b}"


def test_a_value_is_never_read_as_a_placeholder() -> None:
    assert fill("{a} {b}", {"a": "{b}", "b": "{a}"}) == "{b} {a}"


@given(st.text(), st.text())
def test_a_shell_line_keeps_each_value_one_word(first: str, second: str) -> None:
    line = fill("cmd {a} {b}", {"a": first, "b": second}, shlex.quote)
    assert shlex.split(line) == ["cmd", first, second]


@given(st.text(st.characters(exclude_characters="\0")))
def test_a_value_cannot_become_two_words_of_a_command(value: str) -> None:
    words = [fill(word, {"a": value}) for word in split_command("cmd -x={a} {a}")]
    assert words == ["cmd", f"-x={value}", value]


@given(_TEXT)
def test_filling_in_two_steps_is_filling_at_once(text: str) -> None:
    assert fill(fill_some(text, {"a": "1"}), {"b": "2"}) == fill(text, {"a": "1", "b": "2"})


def test_a_value_of_the_first_step_is_not_filled_in_the_second() -> None:
    assert fill(fill_some("{a}", {"a": "{b}"}), {"b": "2"}) == "{b}"


@given(_TEXT)
def test_the_names_are_those_that_filling_replaces(text: str) -> None:
    marked = fill(text, dict.fromkeys(names(text), "\0"))
    assert marked.count("\0") >= len(names(text))


@pytest.mark.parametrize(
    ("command", "message"), [("a 'b", "no closing quotation"), (" ", "names no program")]
)
def test_a_command_that_cannot_be_split_is_reported(command: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_command(command)
