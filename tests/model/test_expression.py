"""Expressions are read by their grammar, written back the same, and computed like Python's own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.model.benchmark import Point
from perftrail.model.expression import (
    Call,
    EvaluationError,
    Expression,
    ExpressionError,
    Negative,
    Number,
    Operation,
    Reference,
    evaluate,
    parse,
    references,
    replace_references,
)

_VALUES = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
)
_AXES = st.sampled_from(["threads", "size", "a-b", "_x"])
_POINTS = st.dictionaries(_AXES, _VALUES, max_size=2).map(lambda values: Point(tuple(values.items())))
_LEAVES = st.one_of(
    st.floats(0, 1e300, allow_nan=False).map(Number),
    st.builds(Reference, st.sampled_from(["real", "wall", "min"]), _POINTS),
)


def _grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        inner.map(Negative),
        st.builds(Operation, st.sampled_from("+-*/"), inner, inner),
        st.builds(Call, st.sampled_from(["min", "max"]), st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Call, st.sampled_from(["sqrt", "log"]), inner.map(lambda argument: (argument,))),
    )


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(_LEAVES, _grown, max_leaves=12)
ARITHMETIC = st.recursive(
    st.one_of(st.integers(0, 50).map(str), st.sampled_from(["a", "b", ".5", "2.", "1e2"])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", " - ", "*", " / "]), inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"- {text}"),
        st.tuples(inner, inner).map(lambda pair: f"min({pair[0]}, {pair[1]})"),
        inner.map(lambda text: f"sqrt( {text} )"),
    ),
    max_leaves=20,
)
VALUES = {"a": 3.5, "b": 0.25}


@given(EXPRESSIONS)
def test_what_is_written_is_read_as_the_same_expression(expression: Expression) -> None:
    assert parse(str(expression)) == expression


@given(ARITHMETIC)
def test_an_expression_has_the_value_that_python_gives_it(text: str) -> None:
    try:
        expected = eval(text, {"min": min, "sqrt": math.sqrt, **VALUES})
    except (ZeroDivisionError, ValueError, OverflowError):
        expected = math.nan
    if math.isfinite(expected):
        assert evaluate(parse(text), lambda reference: VALUES[reference.name]) == expected
    else:
        with pytest.raises(EvaluationError):
            evaluate(parse(text), lambda reference: VALUES[reference.name])


@given(st.text(st.sampled_from("ab12.+-*/()[]=,'\"\\ sqrtmin"), max_size=60))
def test_any_text_is_an_expression_or_tells_where_it_is_not(text: str) -> None:
    try:
        parse(text)
    except ExpressionError as error:
        assert 0 <= error.position <= len(text)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "expected a metric, a number or a parenthesis, not the end"),
        ("a +", 3, "expected a metric, a number or a parenthesis, not the end"),
        ("a b", 2, 'expected an operator or the end, not "b"'),
        ("(a", 2, 'expected ")", not the end'),
        ("a[n=1", 5, 'expected "," or "]", not the end'),
        ("a[n=1, n=2]", 7, 'parameter "n" is fixed twice'),
        ("a[]", 2, 'expected a parameter, as in [threads=2], not "]"'),
        ("pow(a)", 0, 'no function "pow"; there are min, max, sqrt and log'),
        ("1 + log(a, b)", 4, "log takes one argument, not 2"),
        ("1e999", 0, '"1e999" is too large a number'),
        ("a % b", 2, 'expected an operator or the end, not "% b"'),
    ],
)
def test_a_mistake_is_reported_with_its_position(text: str, position: int, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    assert (raised.value.position, str(raised.value)) == (position, message)


@pytest.mark.parametrize(
    "text", ["(" * 1500 + "a" + ")" * 1500, "-" * 3000 + "a", "a+" * 1999 + "a", "sqrt(" * 700]
)
def test_an_expression_cannot_exhaust_the_stack(text: str) -> None:
    with pytest.raises(ExpressionError, match="too long; at most 100 operations"):
        parse(text)


def test_an_expression_has_an_end() -> None:
    with pytest.raises(ExpressionError, match="at most 4000 characters"):
        parse("a" * 4001)


def test_the_longest_expression_can_be_computed_written_and_placed() -> None:
    expression = parse("a+" * 100 + "a")
    assert evaluate(expression, lambda _: 1.0) == 101.0
    assert replace_references(expression, lambda reference: reference) == expression
    assert parse(str(expression)) == expression


@pytest.mark.parametrize("text", ["a / (b - b)", "log(0)", "sqrt(-1)", "1e308 * 10"])
def test_what_has_no_finite_value_is_an_error_that_quotes_the_expression(text: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        evaluate(parse(text), lambda reference: VALUES[reference.name])
    assert str(parse(text)) in str(raised.value)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_not_hidden_by_min(value: float) -> None:
    with pytest.raises(EvaluationError):
        evaluate(parse("min(1, a)"), lambda _: value)


def test_references_come_once_each_in_order() -> None:
    found = references(parse("b[n=1] / a + b[n=1] * b"))
    assert [str(reference) for reference in found] == ["b[n=1]", "a", "b"]


def test_division_and_subtraction_group_to_the_left() -> None:
    assert evaluate(parse("8 / 4 / 2 - 1 - 1"), lambda _: 0.0) == -1.0
