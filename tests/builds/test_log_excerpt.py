"""Which lines of the log of a failed build are reported."""

from __future__ import annotations

import doctest

import pytest

import perftrail.builds.steps
from perftrail.builds.build_log import LONGEST_LINE, MOST_LINES, log_excerpt

GCC = """\
checking for error.h... no
cc -Wall -Werror=return-type -c error.c -o error.o
foo.c: In function 'main':
foo.c:3:5: warning: unused variable
foo.c:4:1: error: expected ';' before '}' token
foo.c:9:1: error: unknown type name 'bar'
make[1]: *** [Makefile:4: foo.o] Error 1
make[1]: Leaving directory '/x'
make: *** [Makefile:1: all] Error 2
"""


def test_errors_of_the_compiler_precede_those_of_make() -> None:
    assert log_excerpt(GCC).splitlines() == [
        "foo.c:4:1: error: expected ';' before '}' token",
        "foo.c:9:1: error: unknown type name 'bar'",
        "make[1]: *** [Makefile:4: foo.o] Error 1",
    ]


@pytest.mark.parametrize(
    ("output", "telling"),
    [
        (
            "a.c:1:10: fatal error: x.h: No such file or directory\ncompilation terminated.\n",
            "a.c:1:10: fatal error",
        ),
        (
            "/usr/bin/ld: a.o: in function `f':\na.c:(.text+0x5): undefined reference to `g'\n",
            "a.c:(.text+0x5)",
        ),
        ("checking whatever... no\nconfigure: error: no zlib\nsee config.log\n", "configure: error: no zlib"),
        (
            "error[E0425]: cannot find value `x`\n --> src/main.rs:2\nerror: could not compile\n",
            "error[E0425]",
        ),
        (
            'Traceback:\n  File "x"\nModuleNotFoundError: No module named distutils\nbye\n',
            "ModuleNotFoundError",
        ),
        (
            "CMake Error at CMakeLists.txt:3 (find_package):\n  Could not find ZLIB\n-- bye\n",
            "CMake Error at",
        ),
        ("/bin/sh: 1: aclocal: not found\nmore talk\n", "/bin/sh: 1: aclocal: not found"),
        ("make: *** No rule to make target 'x'.  Stop.\n", "make: *** No rule to make target 'x'"),
        (
            "npm error code 128\nnpm error An unknown git error occurred\n"
            "npm error ssh: Could not resolve hostname a.invalid: Name or service not known\n",
            "npm error ssh: Could not resolve hostname a.invalid",
        ),
        ("npm error code E404\nnpm error 404 Not Found\n", "npm error 404 Not Found"),
        ("one\ntwo\nthree\nfour\n", "two"),
        ("", ""),
    ],
)
def test_errors_of_many_tools_are_found(output: str, telling: str) -> None:
    assert log_excerpt(output).startswith(telling)


def test_the_message_is_short_and_harmless_to_a_terminal() -> None:
    hostile = "".join(f"x{n}.c:1: error: \x1b[31mred\x1b[0m\x07 {'y' * 900}\n" for n in range(50))
    message = log_excerpt(hostile)
    assert "\x1b" not in message
    assert "\x07" not in message
    assert len(message.splitlines()) == MOST_LINES
    assert max(map(len, message.splitlines())) <= LONGEST_LINE


def test_the_example_of_its_docstring_is_right() -> None:
    assert doctest.testmod(perftrail.builds.steps).failed == 0
