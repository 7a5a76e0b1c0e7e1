"""Expressions over metrics, for example ``real[threads=2] / real[threads=8]``: parser and evaluation.

::

    sum       = product { ("+" | "-") product }
    product   = signed { ("*" | "/") signed }
    signed    = "-" signed | atom
    atom      = NUMBER | FUNCTION "(" sum { "," sum } ")" | reference | "(" sum ")"
    reference = NAME [ "[" NAME "=" value { "," NAME "=" value } "]" ]
    value     = "text" | 'text' | anything without a blank, a quote or one of , = [ ]

`Tokens` also reads the value of `--metric`. An expression never executes code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Never, assert_never

from perftrail.model.benchmark import Point
from perftrail.model.wording import listed, quoted

if TYPE_CHECKING:
    from perftrail.model.benchmark import Value


LONGEST = 4000
"""Largest number of characters of an expression."""

_BLANK = re.compile(r"\s*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AXIS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_BARE = re.compile(r"[^\s,=\[\]\"']+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class ExpressionError(ValueError):
    """An expression cannot be parsed or computed: `message` states why, `position` is the character, from 0."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


class Tokens:
    """A text with a reading position; blanks between tokens are ignored."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(LONGEST, f"too long; at most {LONGEST} characters")
        self._text = text
        self.position = 0
        self._past_blanks()

    def take(self, *signs: str) -> str | None:
        """Consume and return one of some signs if it comes next."""
        for sign in signs:
            if self._text.startswith(sign, self.position):
                self.position += len(sign)
                self._past_blanks()
                return sign
        return None

    def expect(self, sign: str) -> None:
        """Consume a sign that must come next."""
        if not self.take(sign):
            self.refuse(f'expected "{sign}"')

    def expect_end(self) -> None:
        """Raise `ExpressionError` unless the text is at its end."""
        if self.position < len(self._text):
            self.refuse("expected an operator or the end")

    def number(self) -> float | None:
        """Consume and return a number if one comes next."""
        position = self.position
        written = self._match(_NUMBER)
        if written is None:
            return None
        if not math.isfinite(float(written)):
            raise ExpressionError(position, f"{quoted(written)} is too large a number")
        return float(written)

    def name(self) -> str | None:
        """Consume and return the name of a metric or a function if one comes next."""
        return self._match(_NAME)

    def bracket(self) -> Point:
        """Consume ``[parameter=value, …]`` if it comes next; without it no parameter is fixed."""
        fixed: dict[str, Value] = {}
        if not self.take("["):
            return Point()
        while True:
            position = self.position
            name = self._match(_AXIS)
            if name is None:
                self.refuse("expected a parameter, as in [threads=2]")
            if name in fixed:
                raise ExpressionError(position, f'parameter "{name}" is fixed twice')
            self.expect("=")
            fixed[name] = self._value()
            if self.take("]"):
                return Point(tuple(fixed.items()))
            if not self.take(","):
                self.refuse('expected "," or "]"')

    def refuse(self, message: str) -> Never:
        """Raise `ExpressionError` for the next token."""
        left = self._text[self.position :]
        raise ExpressionError(self.position, f"{message}, not {quoted(left[:20]) if left else 'the end'}")

    def _value(self) -> Value:
        written = self._match(_QUOTED)
        if written is not None:
            return re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL)
        written = self._match(_BARE)
        if written is None:
            self.refuse("expected a value")
        return bare_value(written)

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self.position)
        if found is None:
            return None
        self.position = found.end()
        self._past_blanks()
        return found.group()

    def _past_blanks(self) -> None:
        found = _BLANK.match(self._text, self.position)
        assert found is not None
        self.position = found.end()


def bare_value(written: str) -> Value:
    """Parse an unquoted value: a number if possible, else text.

    >>> bare_value("2"), bare_value("0.5"), bare_value("quick-sort")
    (2, 0.5, 'quick-sort')
    """
    if _WHOLE.fullmatch(written):
        return int(written)
    if _REAL.fullmatch(written) and math.isfinite(float(written)):
        return float(written)
    return written


def written_value(value: Value) -> str:
    """Format a value so that it parses to the same value: ambiguous text in quotes.

    >>> written_value(2), written_value("quick-sort"), written_value("2")
    ('2', 'quick-sort', '"2"')
    """
    if not isinstance(value, str):
        return repr(value)
    if _BARE.fullmatch(value) and bare_value(value) == value:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


MOST_OPERATIONS = 100
"""Largest number of operations and parentheses of an expression; it limits the recursion depth."""

_ANY = Point()
Operator = Literal["+", "-", "*", "/"]
Function = Literal["min", "max", "sqrt", "log"]


class EvaluationError(ExpressionError):
    """An expression has no finite value, for example after a division by zero."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in an expression; never negative (that is an operation)."""

    value: float

    def __str__(self) -> str:
        return repr(self.value).removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Reference:
    """A metric at a point that fixes some or all parameters; `position` is its character."""

    name: str
    point: Point = _ANY
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={written_value(value)}" for name, value in self.point.values)
        return f"{self.name}[{inside}]" if inside else self.name


@dataclass(frozen=True, slots=True)
class Negative:
    """A negated operand."""

    operand: Expression

    def __str__(self) -> str:
        return f"-{_within(self.operand, tight=True)}"


@dataclass(frozen=True, slots=True)
class Operation:
    """A binary operation."""

    operator: Operator
    left: Expression
    right: Expression

    def __str__(self) -> str:
        tight = self.operator in "*/"
        right = _within(self.right, tight=True) if tight else _within(self.right, tight=False, right=True)
        return f"{_within(self.left, tight=tight)} {self.operator} {right}"


@dataclass(frozen=True, slots=True)
class Call:
    """A function call: one argument for sqrt and log (natural), at least one for min and max."""

    function: Function
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(str(argument) for argument in self.arguments)})"


Expression = Number | Reference | Negative | Operation | Call


def parse(text: str) -> Expression:
    """Parse an expression. Raises `ExpressionError` with the position of the mistake.

    >>> str(parse("(a + b[n=2]) / -c"))
    '(a + b[n=2]) / -c'
    """
    tokens = Tokens(text)
    expression = _Parser(tokens).sum()
    tokens.expect_end()
    return expression


def references(expression: Expression) -> tuple[Reference, ...]:
    """Return every reference of an expression, each metric and point once, from left to right."""
    return tuple(dict.fromkeys(_references(expression)))


def replace_references(expression: Expression, replacement: Callable[[Reference], Reference]) -> Expression:
    """Return the expression with each reference replaced, for example by one that fixes every parameter."""
    match expression:
        case Number():
            return expression
        case Reference():
            return replacement(expression)
        case Negative(operand):
            return Negative(replace_references(operand, replacement))
        case Operation(operator, left, right):
            return Operation(
                operator, replace_references(left, replacement), replace_references(right, replacement)
            )
        case Call(function, arguments):
            return Call(function, tuple(replace_references(argument, replacement) for argument in arguments))
        case _:
            assert_never(expression)


def evaluate(expression: Expression, lookup: Callable[[Reference], float]) -> float:
    """Compute an expression; `lookup` returns the value of each reference.

    The result is finite. Raises `EvaluationError` if there is none; exceptions of `lookup` propagate.
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
    """Recursive descent parser; the limit on operations bounds its depth and the tree's height."""

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
        if function in _ONE_ARGUMENT and len(arguments) > 1:
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
            value = lookup(expression)
            if not math.isfinite(value):
                raise EvaluationError(expression.position, f"{expression} is {value}, not a finite number")
            return value
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
_ONE_ARGUMENT: frozenset[Function] = frozenset({"sqrt", "log"})


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
    """Format an operand with the parentheses that it needs."""
    needed = isinstance(operand, Operation) and (tight or right)
    return f"({operand})" if needed else str(operand)
