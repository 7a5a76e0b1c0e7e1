"""A command line becomes entries of a study: commands, values, names, hooks and comparisons."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.errors import UsageError
from perftrail.measure.trial import CommandLine, TrialEntries, needs_shell, scan, trial_entries, values_of
from perftrail.model.trial import Group

SH = ("/bin/sh",)


def entered(*commands: str, **options: object) -> TrialEntries:
    return trial_entries(CommandLine(**{"commands": commands, "parameters": {}, **options}))  # type: ignore[arg-type] # loosely


def test_a_command_is_split_as_a_shell_splits_and_run_without_one() -> None:
    [entry] = entered("prog 'a b' \"c\" '|' ''").entries
    assert entry.arguments == ("prog", "a b", "c", "|", "")


@settings(max_examples=20)
@given(
    st.lists(st.text(st.characters(blacklist_characters="\0", codec="utf-8")), min_size=1).filter(
        lambda w: w[0]
    )
)
def test_words_are_started_as_given_whatever_is_in_them(words: list[str]) -> None:
    [entry] = entered(words=tuple(words)).entries
    assert entry.arguments == tuple(words)
    assert shlex.split(entry.command) == words


def test_two_equal_commands_stay_two() -> None:
    found = entered("true", "true")
    assert len(found.entries) == 2
    assert found.groups == (Group(reference=0, others=(1,)),)


@pytest.mark.parametrize(
    "text",
    ["a | b", "a && b", "a; b", "a > f", "a `b`", "a $(b)", "echo $HOME", 'echo "${x}"', "a & b", "a\nb"],
)
def test_shell_syntax_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(UsageError, match="--shell"):
        entered(text)
    [entry] = entered(text, shell=SH).entries
    assert entry.arguments == ("/bin/sh", "-c", text)


@pytest.mark.parametrize(
    "text", ["a '|'", 'a "x && y"', r"a \; b", "awk '{ print $a }'", 'a "$1"', "a {} *.c ~"]
)
def test_quoted_text_is_no_shell_syntax(text: str) -> None:
    assert needs_shell(text) is None


def test_values_fill_words_and_never_become_two_or_a_shells_business() -> None:
    found = entered("run -t {n} {other}", parameters={"n": ("1", "a b; $(rm -rf /) {n}")})
    assert found.entries[0].arguments == ("run", "-t", "1", "{other}")
    assert found.entries[1].arguments == ("run", "-t", "a b; $(rm -rf /) {n}", "{other}")
    quoted = entered("run {n}", parameters={"n": ("1", "a; b")}, shell=SH).entries[1]
    assert quoted.arguments == ("/bin/sh", "-c", "run 'a; b'")


def test_without_parameters_braces_are_literal() -> None:
    [entry] = entered("awk '{{print}} {x}'").entries
    assert entry.arguments == ("awk", "{{print}} {x}")


def test_several_lists_are_every_combination_the_first_changing_fastest() -> None:
    found = entered("p {a} {b}", parameters={"a": ("1", "2"), "b": ("x", "y")})
    assert [entry.command for entry in found.entries] == ["p 1 x", "p 2 x", "p 1 y", "p 2 y"]
    assert found.groups == (Group(reference=0, others=(1, 2, 3)),)
    assert found.entries[1].point.as_dict() == {"a": 2, "b": "x"}


def test_several_commands_are_compared_at_equal_values() -> None:
    found = entered("a {n}", "b {n}", parameters={"n": ("1", "2")})
    assert [entry.command for entry in found.entries] == ["a 1", "b 1", "a 2", "b 2"]
    assert found.groups == (Group(reference=0, others=(1,)), Group(reference=2, others=(3,)))


def test_a_reference_without_values_is_one_and_with_values_one_for_each() -> None:
    one = entered("b {n}", reference="a", parameters={"n": ("1", "2")})
    assert [entry.command for entry in one.entries] == ["a", "b 1", "b 2"]
    assert one.groups == (Group(reference=0, others=(1, 2)),)
    each = entered("b {n}", reference="a {n}", parameters={"n": ("1", "2")})
    assert [entry.command for entry in each.entries] == ["a 1", "b 1", "a 2", "b 2"]
    assert each.groups == (Group(reference=0, others=(1,)), Group(reference=2, others=(3,)))


def test_names_are_given_to_commands_in_order() -> None:
    assert [each.name for each in entered("a", "b", names=("one", "two")).entries] == ["one", "two"]
    [ref, own] = entered("b", reference="a", names=("new",), reference_name="old").entries
    assert (ref.name, own.name) == ("old", "new")
    varied = entered("a {n}", "b {n}", parameters={"n": ("1", "2")}, names=("x", "y at {n}"))
    assert [each.name for each in varied.entries] == ["x n=1", "y at 1", "x n=2", "y at 2"]
    assert [
        each.name for each in entered("a {n}", parameters={"n": ("1", "2")}, names=("p", "q")).entries
    ] == ["p", "q"]
    with pytest.raises(UsageError, match="-n"):
        entered("a", "b", names=("one", "two", "three"))


def test_hooks_are_given_once_for_all_or_once_for_each() -> None:
    found = entered("a {n}", "b {n}", parameters={"n": ("1",)}, prepare=("p {n}",), cleanup=("c", ""))
    assert [each.prepare for each in found.entries] == [("p", "1"), ("p", "1")]
    assert [each.cleanup for each in found.entries] == [("c",), ()]
    with pytest.raises(UsageError, match="--setup"):
        entered("a", "b", setup=("x", "y", "z"))


def test_a_hook_that_needs_a_shell_gets_one_unless_values_are_put_into_it() -> None:
    [entry] = entered("a", prepare=("sync; echo 3 > f",)).entries
    assert entry.prepare == ("/bin/sh", "-c", "sync; echo 3 > f")
    with pytest.raises(UsageError, match="--prepare"):
        entered("a {n}", parameters={"n": ("$(rm x)",)}, prepare=("echo {n} > f",))


def test_the_empty_shell_is_an_entry_of_its_own() -> None:
    found = entered("true", shell=("bash", "--norc"))
    assert found.shell is not None
    assert found.shell.arguments == ("bash", "--norc", "-c", "")
    assert entered("true").shell is None


@pytest.mark.parametrize(
    ("commands", "requested", "expected"),
    [
        ((), {}, "no command to measure"),
        (("a",), {"words": ("b",)}, "not both"),
        (("a 'b",), {}, "quot"),
        (("",), {}, "program"),
        (("a",), {"parameters": {"n": ("1",)}}, "{n}"),
        (("a {n}",), {"parameters": {"n": ("1", "1")}}, "duplicate value"),
        (("a {1}",), {"parameters": {"1": ("1",)}}, "letter first"),
        (("a {n}",), {"parameters": {"n": tuple(map(str, range(2000)))}}, "at most"),
    ],
)
def test_invalid_options_are_wrong_usage(
    commands: tuple[str, ...], requested: dict[str, object], expected: str
) -> None:
    with pytest.raises(UsageError, match=expected):
        entered(*commands, **requested)


def test_scans_are_exact_decimals() -> None:
    assert scan("n", "1", "4", step=None) == ("1", "2", "3", "4")
    assert scan("d", "0.1", "0.4", step="0.1") == ("0.1", "0.2", "0.3", "0.4")
    for wrong in (("1", "x", None), ("3", "1", None), ("1", "3", "0"), ("1", "inf", None), ("0", "1e9", "1")):
        with pytest.raises(UsageError):
            scan("n", wrong[0], wrong[1], step=wrong[2])


def test_a_comma_may_be_escaped() -> None:
    assert values_of("a,b\\,c,") == ("a", "b,c", "")
