"""Tools of two origins are compared by name."""

from __future__ import annotations

from perftrail.model.measurement import OTHER_TOOLCHAIN, Difference, Origin, difference, tool_differences

CC = "cc: cc 12\nmore\ncc is /usr/bin/cc, content 1"
AWK = "awk\nawk is /usr/bin/awk, content 1"


def test_a_tool_more_or_less_does_not_shift_the_others() -> None:
    assert list(tool_differences(["x86_64", CC], ["x86_64", AWK, CC])) == [("", "awk")]
    assert list(tool_differences([AWK, CC], [CC])) == [("awk", "")]


def test_the_line_that_differs_is_named() -> None:
    other = AWK.replace("content 1", "content 2")
    line = "awk is /usr/bin/awk, content"
    assert list(tool_differences([CC, AWK], [CC, other])) == [(f"{line} 1", f"{line} 2")]
    assert list(tool_differences(["glibc 2.36"], ["glibc 2.37"])) == [("glibc 2.36", "glibc 2.37")]


def test_a_difference_is_the_first_tool_that_differs() -> None:
    then, now = (Origin(recipe="1", tools=tools) for tools in ((CC,), (AWK, CC.replace("12", "13"))))
    expected = Difference(why=OTHER_TOOLCHAIN, then="cc: cc 12", now="cc: cc 13")
    assert difference(OTHER_TOOLCHAIN, then, now) == expected
