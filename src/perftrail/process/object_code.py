"""Read the machine code of programs with the tools of GNU binutils: inlined functions, and fingerprints of functions.

The programs are untrusted. addr2line and objdump run through the launcher, in its sandbox if it has one, with a
timeout. Objects that they cannot read have no inlined functions and no fingerprints.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.process import Command, Exited
from perftrail.model.profile import Frames, Function, base_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from perftrail.ports import Starter

TIMEOUT_SECONDS = 120.0
LARGEST_BYTES = 1 << 30
"""Largest output of objdump that is read."""

_SUFFIX = re.compile(r" \(discriminator [0-9]+\)$")
_HEADER = re.compile(r"^[0-9a-f]+ <(?P<name>.*)>:$")
_INSTRUCTION = re.compile(r"^ +(?P<address>[0-9a-f]+):\t(?P<text>.*)$")
_TARGET = re.compile(r"\b[0-9a-f]+ (?=<)")
_RELATIVE = re.compile(r"-?0x[0-9a-f]+\(%rip\)|\[rip[^\]]*\]")
_DATA = re.compile(r"# (?:0x)?(?P<address>[0-9a-f]+)(?: <(?P<symbol>[^>]*)>)?")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_ABSOLUTE = re.compile(r"\$0x(?P<address>[0-9a-f]{6,})\b")
_SECTION = re.compile(
    r"^ *[0-9]+ (?P<name>\S+) +(?P<size>[0-9a-f]+) +(?P<address>[0-9a-f]+) +[0-9a-f]+ +(?P<offset>[0-9a-f]+) "
)
_VECTOR = re.compile(r"aps$|apd$|dqa|dqu|ups$|upd$|^p[a-z]+$")
LONGEST_TEXT = 64
"""Bytes of a text that are part of the fingerprint of a function that uses it."""


class ObjectCode:
    """Reads objects through a launcher, each at most once for each question.

    `temporary_directory` opens a directory that the launcher's processes may write to.
    """

    def __init__(
        self, starter: Starter, temporary_directory: Callable[[], AbstractContextManager[str]]
    ) -> None:
        self._starter = starter
        self._temporary_directory = temporary_directory
        self._bodies: dict[str, dict[str, str]] = {}
        self._functions: dict[tuple[str, frozenset[int]], dict[int, tuple[Function, ...]]] = {}

    def functions(self, object: str, addresses: Collection[int]) -> dict[int, tuple[Function, ...]]:
        """Return the functions at addresses, the innermost inlined one first; unknown addresses are missing."""
        program = shutil.which("addr2line")
        if program is None or not addresses or not object.startswith("/"):
            return {}
        question = object, frozenset(addresses)
        if question not in self._functions:
            with self._temporary_directory() as scratch:
                asked = Path(scratch) / "addresses"
                asked.write_text("".join(f"{address:#x}\n" for address in sorted(addresses)))
                text = self._output((program, "-a", "-i", "-f", "-C", "-e", object), scratch, stdin=asked)
            self._functions[question] = read_functions(text, object)
        return self._functions[question]

    def named(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], tuple[Function, ...]]:
        """Return the functions at places in several objects, (object, address); an unknown one has no functions."""
        by_object: defaultdict[str, set[int]] = defaultdict(set)
        for object, address in places:
            by_object[object].add(address)
        return {
            (object, address): found.get(address, ())
            for object, addresses in by_object.items()
            for found in (self.functions(object, addresses),)
            for address in addresses
        }

    def frames(self, object: str, addresses: Collection[int]) -> dict[int, Frames]:
        """Return the source positions of addresses and the functions inlined there; unknown ones are missing."""
        return frames_of(self.functions(object, addresses))

    def bodies(self, functions: Iterable[Function]) -> dict[Function, str]:
        """Return the fingerprint of the machine code of each function that has a symbol.

        Addresses are not part of it, so code that was only moved has the same fingerprint.
        """
        by_object: defaultdict[str, list[Function]] = defaultdict(list)
        for each in functions:
            by_object[each.object].append(each)
        found: dict[Function, str] = {}
        for object, members in by_object.items():
            bodies = self._of_object(object, frozenset(base_name(each.name) for each in members))
            found |= {each: body for each in members if (body := bodies.get(base_name(each.name)))}
        return found

    def _of_object(self, object: str, names: frozenset[str]) -> dict[str, str]:
        program = shutil.which("objdump")
        if program is None or not object.startswith("/"):
            return {}
        if object not in self._bodies or not names <= self._bodies[object].keys():
            with self._temporary_directory() as scratch:
                sections = self._output((program, "-h", "-w", object), scratch)
                words = (program, "-d", "-w", "-C", "--no-show-raw-insn", object)
                text = self._output(words, scratch)
            self._bodies[object] = {
                **dict.fromkeys(names, ""),
                **fingerprints(text.splitlines(), names, _Constants(object, sections)),
            }
        return self._bodies[object]

    def _output(self, words: tuple[str, ...], scratch: str, *, stdin: Path | None = None) -> str:
        """Return a tool's output, empty if it failed."""
        output = Path(scratch) / "output"
        command = Command(
            arguments=words,
            environment={"LC_ALL": "C"},
            directory=scratch,
            stdin=None if stdin is None else str(stdin),
            stdout=str(output),
            output_cap_bytes=LARGEST_BYTES,
            timeout_seconds=TIMEOUT_SECONDS,
            tree_memory="off",
        )
        if self._starter.run(command).ended != Exited(code=0) or not output.is_file():
            return ""
        return output.read_text(errors="replace")


def read_functions(text: str, object: str) -> dict[int, tuple[Function, ...]]:
    r"""Read the output of ``addr2line -a -i -f``: the functions at each address, the innermost first.

    >>> text = "0x11a2\ncopy\n/a/b.c:7 (discriminator 2)\nmain\n??:?\n0x9\n??\n??:0\n"
    >>> [(each.name, each.file, each.line) for each in read_functions(text, "/bin/x")[0x11A2]]
    [('copy', '/a/b.c', 7), ('main', '', 0)]
    """
    found: dict[int, list[Function]] = {}
    functions: list[Function] = []
    for each in _pairs(text.splitlines()):
        if isinstance(each, int):
            functions = found.setdefault(each, [])
            continue
        name, place = each
        file, _, line = _SUFFIX.sub("", place).rpartition(":")
        functions.append(
            Function(
                "" if name == "??" else name,
                "" if file == "??" else file,
                int(line) if line.isdigit() else 0,
                object,
            )
        )
    return {address: tuple(functions) for address, functions in found.items()}


def frames_of(functions: Mapping[int, tuple[Function, ...]]) -> dict[int, Frames]:
    """Return the source position at each address and what is inlined there, with one line for each inlined function.

    That is the line of its lowest address. Smaller lines may be of functions that are inlined there without a mark.

    >>> main = Function("main", "/a.c", 9)
    >>> found = frames_of({17: (Function("mix", "/a.h", 4), main), 21: (Function("mix", "/a.h", 2), main)})
    >>> [(frame.file, frame.line, [(each.name, each.line) for each in frame.inlined]) for frame in found.values()]
    [('/a.c', 9, [('mix', 4)]), ('/a.c', 9, [('mix', 4)])]
    """
    first: dict[tuple[str, str], int] = {}
    for address in sorted(functions):
        for function in functions[address][:-1]:
            first.setdefault((function.name, function.file), function.line)
    return {
        address: Frames(
            members[-1].file,
            members[-1].line,
            tuple(replace(each, line=first[each.name, each.file]) for each in members[-2::-1]),
        )
        for address, members in functions.items()
        if members and members[-1].file
    }


def _pairs(lines: list[str]) -> Iterator[int | tuple[str, str]]:
    """Yield each address, and each pair of a function's name and its place."""
    position = 0
    while position < len(lines):
        line = lines[position]
        if line.startswith("0x") and ":" not in line:
            yield int(line, 16)
            position += 1
        else:
            yield line, lines[position + 1] if position + 1 < len(lines) else ""
            position += 2


class _Constants:
    """The constants of an object, by address, without those that contain addresses."""

    def __init__(self, object: str, headers: str) -> None:
        self._sections = []
        try:
            content = Path(object).read_bytes()
        except OSError:
            return
        for line in headers.splitlines():
            match = _SECTION.match(line)
            if match is not None:
                address, size, offset = (int(match[each], 16) for each in ("address", "size", "offset"))
                data = content[offset : offset + size] if match["name"].startswith(".rodata") else None
                self._sections.append((address, address + size, data))

    def at(self, address: int, instruction: str) -> str | None:
        """Return what an instruction uses at an address; `None` outside of the object, empty if it is no constant.

        Addresses that an instruction only computes are those of texts, or of tables, which may contain addresses.
        """
        for start, end, data in self._sections:
            if start <= address < end:
                return "" if data is None else _constant(data[address - start :][:LONGEST_TEXT], instruction)
        return None


def _constant(data: bytes, instruction: str) -> str:
    mnemonic = instruction.partition(" ")[0]
    if mnemonic.startswith("lea") or "$0x" in instruction:
        text = data.split(b"\0")[0]
        return text.hex() if text.isascii() else ""
    size = 16 if _VECTOR.search(mnemonic) else 4 if mnemonic.endswith("ss") else 8
    return data[:size].hex()


def fingerprints(
    lines: Iterable[str], names: frozenset[str], constants: _Constants | None = None
) -> dict[str, str]:
    r"""Return the fingerprints of functions from the output of ``objdump -d``, by their base names.

    Addresses of code and data are replaced by symbols, or by the constants there.

    >>> one = ["0000000000001139 <f>:", "    1139:\tcall   1030 <puts@plt>", "    113e:\tret"]
    >>> moved = ["0000000000002139 <f>:", "    2139:\tcall   1090 <puts@plt>", "    213e:\tret"]
    >>> fingerprints(one, frozenset(["f"])) == fingerprints(moved, frozenset(["f"]))
    True
    """
    digests: defaultdict[str, list[str]] = defaultdict(list)
    name, digest = "", None
    for line in lines:
        match = _HEADER.match(line)
        if match is not None:
            if digest is not None:
                digests[name].append(digest.hexdigest())
            name = base_name(match["name"])
            digest = hashlib.sha256() if name in names else None
        elif digest is not None and (match := _INSTRUCTION.match(line)) is not None:
            digest.update(_without_addresses(match["text"], constants).encode())
    if digest is not None:
        digests[name].append(digest.hexdigest())
    return {
        name: hashlib.sha256("".join(sorted(found)).encode()).hexdigest()[:20]
        for name, found in digests.items()
    }


def _without_addresses(text: str, constants: _Constants | None) -> str:
    """Return an instruction with symbols or constants instead of addresses."""
    if text.startswith(("nop", "xchg   %ax,%ax", "data16", "cs nop", "int3")):
        return ""  # alignment
    text, mark, comment = text.partition("#")
    text = _TARGET.sub("", _RELATIVE.sub("data(%rip)", text)).rstrip()
    if mark and (match := _DATA.match("#" + comment)) is not None:
        value = constants.at(int(match["address"], 16), text) if constants else ""
        symbol = match["symbol"] or ""
        # A symbol with an offset is only the nearest one: what is there matters.
        text += f" {value}" if value or _OFFSET.search(symbol) else f" {symbol}"
    elif constants is not None and (match := _ABSOLUTE.search(text)) is not None:
        value = constants.at(int(match["address"], 16), text)
        if value is not None:
            text = _ABSOLUTE.sub(f"$data {value}", text)
    return text + "\n"
