"""What all interfaces say about the functions that are responsible for a change."""

from __future__ import annotations

from perftrail.model.profile import Calls, Function, Profile
from perftrail.present.why import (
    function_words,
    input_words,
    path_words,
    responsible,
    shift_words,
)
from perftrail.stats.profile_comparison import compare_profiles
from perftrail.verbs.explain.functions import FunctionsJson, functions_json

MAIN = Function("main", "/b/tree/main.c", 3)
INSERT = Function("btreeInsert", "/b/tree/lib/btree.c", 210)
DIGIT = Function("digit", "/b/tree/lib/parse.c", 5)
MALLOC = Function("malloc", "", 0, "/usr/lib/libc.so.6")


def profile(
    *,
    insert: float = 500.0,
    mallocs: float = 10.0,
    misses: float = 100.0,
    body: str = "a",
    digit: Function = DIGIT,
) -> Profile:
    costs = {
        MAIN: (100.0, 0.0),
        INSERT: (insert, misses),
        digit: (200.0, 0.0),
        MALLOC: (30.0 * mallocs, 0.0),
    }
    whole = insert + 30.0 * mallocs
    return Profile(
        events=("Ir", "D1mr"),
        own=costs,
        inclusive={**costs, INSERT: (whole, misses), MAIN: (whole + 300.0, misses)},
        calls={
            (MAIN, INSERT): Calls(10.0, (whole, misses)),
            (MAIN, digit): Calls(10.0, (200.0, 0.0)),
            (INSERT, MALLOC): Calls(mallocs, (30.0 * mallocs, 0.0)),
        },
        bodies={MAIN: "m", INSERT: body, digit: "d"},
    )


def compared(after: Profile) -> FunctionsJson:
    return functions_json(
        compare_profiles([profile(body="b")], [after]),
        method="callgrind",
        pairs=1,
        shown_file=lambda file: file.removeprefix("/b/tree/"),
    )


def test_a_function_is_named_with_its_line_its_costs_and_its_calls() -> None:
    functions = compared(profile(insert=900.0, mallocs=20.0))
    [change] = responsible(functions)
    assert function_words(change) == (
        "+33 % in btreeInsert (lib/btree.c:210): 1.9× the instructions, cache misses unchanged, "
        "2.0× the calls of malloc"
    )
    assert path_words(change["path"]) == "main → btreeInsert"


def test_costs_that_are_mostly_those_of_callees_are_named_so() -> None:
    [change] = responsible(compared(profile(mallocs=60.0)))
    assert "the instructions with its callees, " in function_words(change)


def test_a_function_that_became_faster_has_a_minus() -> None:
    [change] = responsible(compared(profile(insert=100.0)))
    assert function_words(change).startswith("−19 % in btreeInsert (lib/btree.c:210): 0.50× the instructions")


def test_a_renamed_function_is_a_sentence_about_a_cost_shift() -> None:
    functions = compared(profile(body="b", digit=Function("number", "/b/tree/lib/parse.c", 7)))
    assert responsible(functions) == []
    assert [shift_words(each) for each in functions["shifts"]] == [
        "Cost shift: digit (lib/parse.c:5) is now number (lib/parse.c:7): 9.5 % → 9.5 % of the total."
    ]


def test_a_change_without_changed_code_is_attributed_to_the_input() -> None:
    functions = compared(profile(insert=900.0, body="b"))
    assert responsible(functions) == []
    assert input_words(functions).startswith("+19 % in functions whose code did not change")


def test_names_of_a_program_cannot_control_the_terminal() -> None:
    hostile = Function("\x1b[31mred", "/b/tree/x\ny.c", 1)
    after = profile()
    after = Profile(
        events=after.events,
        own={**after.own, hostile: (5000.0, 0.0)},
        calls={**after.calls, (MAIN, hostile): Calls(1.0, (5000.0, 0.0))},
    )
    words = " ".join(function_words(each) + path_words(each["path"]) for each in compared(after)["functions"])
    assert "\x1b" not in words
    assert "\n" not in words
