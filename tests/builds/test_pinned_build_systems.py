"""A matrix of build systems and tool chains: each build is recorded unchanged, and its code is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builds.test_pinning import layouts, output, pinned, places, usable
from tests.needs import needs

if TYPE_CHECKING:
    from tests.builds.subject_builder import Project

pytestmark = pytest.mark.long

SOURCES = {
    "main.c": '#include <stdio.h>\nint one(int); int two(int);\nint main(void) { printf("%d\\n", one(1) + two(1)); }\n',
    "one.c": "int one(int n) { return n * 3; }\n",
    "two.c": "int two(int n) { return n * 5; }\n",
    "Makefile": "program: main.o one.o two.o\n\t$(CC) -o $@ $^\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_library(both one.c two.c)\n"
    "add_executable(program main.c)\ntarget_link_libraries(program both)\ninstall(TARGETS program DESTINATION bin)\n",
    "meson.build": "project('x', 'c', default_options: ['buildtype=release'])\n"
    "executable('program', 'main.c', 'one.c', 'two.c')\n",
    "configure.ac": "AC_INIT([x], [1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAM_PROG_AR\n"
    "LT_INIT([disable-shared])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
    "Makefile.am": "lib_LTLIBRARIES = libboth.la\nlibboth_la_SOURCES = one.c two.c\nbin_PROGRAMS = program\n"
    "program_SOURCES = main.c\nprogram_LDADD = libboth.la\n",
}
ABSOLUTE = (
    "cc -c main.c one.c two.c; cc -### main.o one.o two.o -o program 2>&1"
    " | sed -n 's,^ .*collect2 ,/usr/bin/ld ,p' > line; . ./line"
)
BUILDS = {
    "make -j": (("make -j4",), "program"),
    "one step": (("cc -O2 main.c one.c two.c -o program",), "program"),
    "linked by c++": (("cc -O2 -c main.c one.c two.c; c++ main.o one.o two.o -o program",), "program"),
    "the linker's absolute path": ((ABSOLUTE,), "program"),
    "CMake and make": (("cmake -B out", "cmake --build out -j2"), "out/program"),
    "CMake and Ninja": (("cmake -G Ninja -B out", "cmake --build out"), "out/program"),
    "CMake, Debug, position dependent": (
        ("cmake -B out -DCMAKE_BUILD_TYPE=Debug -DCMAKE_EXE_LINKER_FLAGS=-no-pie", "cmake --build out"),
        "out/program",
    ),
    "CMake, installed and stripped": (
        ("cmake -B out", "cmake --build out", "cmake --install out --strip --prefix installed"),
        "out/program",
    ),
    "lld, Ninja": (
        ("cmake -G Ninja -B out -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld", "cmake --build out"),
        "out/program",
    ),
}


@needs("cmake", "ninja", "ld.lld")
@pytest.mark.parametrize(("steps", "program"), BUILDS.values(), ids=BUILDS)
def test_builds_are_placed(project: Project, steps: tuple[str, ...], program: str) -> None:
    check(project, steps, program)


@needs("meson")
def test_builds_of_meson_are_placed(project: Project) -> None:
    check(project, ("meson setup out", "meson compile -C out"), "out/program")


@needs("autoconf", "automake", "libtoolize")
def test_builds_of_autotools_with_libtool_are_placed(project: Project) -> None:
    check(project, ("rm Makefile", "autoreconf -i", "./configure", "make"), "program")


def check(project: Project, steps: tuple[str, ...], program: str) -> None:
    found = usable(layouts(project, pinned(*steps, outputs=(program,)), files=SOURCES))
    assert [output(each / program) for each in found.values()] == ["8\n", "8\n"]
    assert places(found[1] / program) != places(found[2] / program)
