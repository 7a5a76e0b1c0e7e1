"""Tiny programs, one for each build system, with what `init` must find in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAIN_C = """\
#include <stdio.h>
#include <string.h>
int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--version") == 0) puts("tiny 1.0");
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A program: its files, its build system, the required tools, and the command that `init` must find."""

    system: str
    files: Mapping[str, str]
    tools: tuple[str, ...]
    command: str
    placeholder: bool = True


PROJECTS = (
    Project(
        "make",
        {"Makefile": "P = tiny\nall: $(P)\n$(P): main.c\n\t$(CC) -O2 -o $@ main.c\n", "main.c": MAIN_C},
        ("make", "cc"),
        "{build}/tiny --version",
    ),
    Project(
        "make",
        {
            "Makefile": "tiny: main.c\n\t$(CC) -o $@ main.c\nbench: tiny\n\t./tiny\n.PHONY: bench\n",
            "main.c": MAIN_C,
        },
        ("make", "cc"),
        "make --silent -C {build} bench",
        placeholder=False,
    ),
    Project(
        "autotools",
        {
            "configure.ac": "AC_INIT([tiny], [1.0])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\n"
            "AC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
            "Makefile.am": "bin_PROGRAMS = tiny\ntiny_SOURCES = main.c\n",
            "main.c": MAIN_C,
        },
        ("make", "cc", "autoconf", "automake"),
        "{build}/tiny --version",
    ),
    Project(
        "cmake",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(tiny C) # the program\n"
            "add_subdirectory(src)\n",
            "src/CMakeLists.txt": "add_executable(tiny_exe main.c)\n"
            "set_target_properties(tiny_exe PROPERTIES OUTPUT_NAME tiny)\n",
            "src/main.c": MAIN_C,
        },
        ("cmake", "make", "cc"),
        "{build}/build/bin/tiny --version",
    ),
    Project(
        "meson",
        {
            "meson.build": "project('tiny', 'c')\nsubdir('src')\n",
            "src/meson.build": "exe = executable('tiny', 'main.c')\n",
            "src/main.c": MAIN_C,
        },
        ("meson", "ninja", "cc"),
        "{build}/build/src/tiny --version",
    ),
    Project(
        "cargo",
        {
            "Cargo.toml": '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n',
            "src/main.rs": 'fn main() { println!("tiny 1.0"); }\n',
        },
        ("cargo", "cc"),
        "{build}/target/release/tiny --version",
    ),
    Project(
        "go",
        {
            "go.mod": "module example.invalid/tiny\n\ngo 1.20\n",
            "cmd/tiny/main.go": 'package main\n\nimport "flag"\n\nfunc main() { flag.Parse() }\n',
        },
        ("go",),
        "{build}/perftrail-bin/tiny --help",
    ),
    Project(
        "maven",
        {
            "pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>invalid.example</groupId>"
            "<artifactId>tiny</artifactId><version>1.0</version><packaging>pom</packaging></project>\n"
        },
        ("mvn",),
        "test -e {build}/pom.xml",
    ),
    Project(
        "npm",
        {
            "package.json": '{"name": "tiny", "version": "1.0.0", "scripts": {"bench": "node bench.js"}}',
            "bench.js": "console.log('rate=1')\n",
        },
        ("npm", "node"),
        "npm --prefix {build} run --silent bench",
        placeholder=False,
    ),
    Project(
        "npm",
        {
            "package.json": '{"name": "tiny", "version": "1.0.0", "bin": "./cli.js"}',
            "cli.js": "process.exit(0)\n",
        },
        ("npm", "node"),
        "node {build}/cli.js --version",
    ),
    Project(
        "pyproject",
        {
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            '[project]\nname = "tiny-thing"\nversion = "1.0"\n',
            "backend.py": "import zipfile\n\n\n"
            "def build_wheel(directory, settings=None, metadata=None):\n"
            "    name = 'tiny_thing-1.0-py3-none-any.whl'\n"
            "    with zipfile.ZipFile(f'{directory}/{name}', 'w') as wheel:\n"
            "        wheel.write('tiny_thing/__init__.py')\n"
            "        info = 'tiny_thing-1.0.dist-info'\n"
            "        wheel.writestr(f'{info}/METADATA', 'Metadata-Version: 2.1\\nName: tiny-thing\\nVersion: 1.0\\n')\n"
            "        kind = 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'\n"
            "        wheel.writestr(f'{info}/WHEEL', kind)\n"
            "        wheel.writestr(f'{info}/RECORD', '')\n"
            "    return name\n",
            "tiny_thing/__init__.py": "VALUE = 1\n",
        },
        ("python3",),
        "python3 -c 'import tiny_thing'",
    ),
)
"""Each is recognised; it is also built where its tools are installed."""
