"""Expressions over metrics, as ``real[threads=2] / real[threads=8]``: read by a small grammar, never run.

::

    sum       = product { ("+" | "-") product }
    product   = signed { ("*" | "/") signed }
    signed    = "-" signed | atom
    atom      = NUMBER | FUNCTION "(" sum { "," sum } ")" | reference | "(" sum ")"
    reference = NAME [ "[" NAME "=" value { "," NAME "=" value } "]" ]
    value     = "text" | 'text' | anything without a blank, a quote or one of , = [ ]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from perftrail.model.parameters import Point
from perftrail.model.tokens import ExpressionError, Tokens, written_value
from perftrail.model.wording import listed

__all__ = [
    "Call",
    "EvaluationError",
    "Expression",
    "ExpressionError",
    "Function",
    "Negative",
    "Number",
    "Operation",
    "Operator",
    "Reference",
    "evaluate",
    "parse",
    "placed",
    "references",
]

MOST_OPERATIONS = 100
"""How many operations and parentheses an expression may have; it bounds the stack that one takes."""

_ANY = Point()
Operator = Literal["+", "-", "*", "/"]
Function = Literal["min", "max", "sqrt", "log"]


class EvaluationError(ExpressionError):
    """An expression has no finite value for the figures it was given: a division by zero, say."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that stands in the expression; never negative, which is an operation."""

    value: float

    def __str__(self) -> str:
        return repr(self.value).removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Reference:
    """A metric by name, at a point that fixes some parameters or all; `position` is where it stands."""

    name: str
    point: Point = _ANY
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={written_value(value)}" for name, value in self.point.values)
        return f"{self.name}[{inside}]" if inside else self.name


@dataclass(frozen=True, slots=True)
class Negative:
    """An operand with its sign turned."""

    operand: Expression

    def __str__(self) -> str:
        return f"-{_within(self.operand, tight=True)}"


@dataclass(frozen=True, slots=True)
class Operation:
    """Two operands and what is done with them."""

    operator: Operator
    left: Expression
    right: Expression

    def __str__(self) -> str:
        tight = self.operator in "*/"
        right = _within(self.right, tight=True) if tight else _within(self.right, tight=False, right=True)
        return f"{_within(self.left, tight=tight)} {self.operator} {right}"


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments: one for sqrt and log (natural), at least one for min and max."""

    function: Function
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(str(argument) for argument in self.arguments)})"


Expression = Number | Reference | Negative | Operation | Call


def parse(text: str) -> Expression:
    """Read an expression. Raises `ExpressionError` with the position of what is wrong.

    >>> str(parse("(a + b[n=2]) / -c"))
    '(a + b[n=2]) / -c'
    """
    tokens = Tokens(text)
    expression = _Parser(tokens).sum()
    tokens.expect_end()
    return expression


def references(expression: Expression) -> tuple[Reference, ...]:
    """Give every reference of an expression, each metric and point once, from left to right."""
    return tuple(dict.fromkeys(_references(expression)))


def placed(expression: Expression, place: Callable[[Reference], Reference]) -> Expression:
    """Give the same expression with each reference replaced, as by one that fixes every parameter."""
    match expression:
        case Number():
            return expression
        case Reference():
            return place(expression)
        case Negative(operand):
            return Negative(placed(operand, place))
        case Operation(operator, left, right):
            return Operation(operator, placed(left, place), placed(right, place))
        case Call(function, arguments):
            return Call(function, tuple(placed(argument, place) for argument in arguments))
        case _:
            assert_never(expression)


def evaluate(expression: Expression, lookup: Callable[[Reference], float]) -> float:
    """Compute an expression from the figures that `lookup` gives for its references.

    The result is finite. Raises `EvaluationError` when there is none; what `lookup` raises passes through.
    """
    try:
        value = _evaluate(expression, lookup)
    except ZeroDivisionError as error:
        raise EvaluationError(0, f"{expression} divides by zero") from error
    except ExpressionError:
        raise
    except (ValueError, OverflowError) as error:
        raise EvaluationError(0, f"{expression} has no value here: {error}") from error
    if not math.isfinite(value):
        raise EvaluationError(0, f"{expression} is {value}, not a finite number")
    return value


class _Parser:
    """Descends from sums to atoms; the number of operations bounds how far, and the tree's height."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._operations = 0

    def sum(self) -> Expression:
        left = self._product()
        while operator := self._tokens.take("+", "-"):
            self._count()
            left = Operation("+" if operator == "+" else "-", left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._signed()
        while operator := self._tokens.take("*", "/"):
            self._count()
            left = Operation("*" if operator == "*" else "/", left, self._signed())
        return left

    def _signed(self) -> Expression:
        if self._tokens.take("-"):
            self._count()
            return Negative(self._signed())
        return self._atom()

    def _atom(self) -> Expression:
        tokens = self._tokens
        number = tokens.number()
        if number is not None:
            return Number(number)
        position = tokens.position
        name = tokens.name()
        if name is None:
            return self._parenthesis()
        if tokens.take("("):
            return self._call(name, position)
        return Reference(name, tokens.bracket(), position)

    def _parenthesis(self) -> Expression:
        if not self._tokens.take("("):
            self._tokens.refuse("expected a metric, a number or a parenthesis")
        self._count()
        inner = self.sum()
        self._tokens.expect(")")
        return inner

    def _call(self, name: str, position: int) -> Expression:
        function = next((known for known in _FUNCTIONS if known == name), None)
        if function is None:
            raise ExpressionError(position, f'no function "{name}"; there are {listed(_FUNCTIONS, "and")}')
        self._count()
        arguments = [self.sum()]
        while self._tokens.take(","):
            arguments.append(self.sum())
        self._tokens.expect(")")
        if function in _OF_ONE and len(arguments) > 1:
            raise ExpressionError(position, f"{name} takes one argument, not {len(arguments)}")
        return Call(function, tuple(arguments))

    def _count(self) -> None:
        self._operations += 1
        if self._operations > MOST_OPERATIONS:
            self._tokens.refuse(f"too long; at most {MOST_OPERATIONS} operations and parentheses")


def _evaluate(expression: Expression, lookup: Callable[[Reference], float]) -> float:
    match expression:
        case Number(value):
            return value
        case Reference():
            figure = lookup(expression)
            if not math.isfinite(figure):
                raise EvaluationError(expression.position, f"{expression} is {figure}, not a finite number")
            return figure
        case Negative(operand):
            return -_evaluate(operand, lookup)
        case Operation(operator, left, right):
            return _OPERATIONS[operator](_evaluate(left, lookup), _evaluate(right, lookup))
        case Call(function, arguments):
            return _FUNCTIONS[function](*(_evaluate(argument, lookup) for argument in arguments))
        case _:
            assert_never(expression)


_OPERATIONS: Mapping[Operator, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
}
_FUNCTIONS: Mapping[Function, Callable[..., float]] = {
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "sqrt": math.sqrt,
    "log": math.log,
}
_OF_ONE: frozenset[Function] = frozenset({"sqrt", "log"})


def _references(expression: Expression) -> Iterator[Reference]:
    match expression:
        case Number():
            return
        case Reference():
            yield expression
        case Negative(operand):
            yield from _references(operand)
        case Operation(_, left, right):
            yield from _references(left)
            yield from _references(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from _references(argument)
        case _:
            assert_never(expression)


def _within(operand: Expression, *, tight: bool, right: bool = False) -> str:
    """Write an operand in the parentheses it needs to be read as the same expression again."""
    needed = isinstance(operand, Operation) and (tight or right)
    return f"({operand})" if needed else str(operand)
