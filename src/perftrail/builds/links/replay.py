"""Repeat a recorded link, unchanged or with each piece of code at a drawn place.

A piece is one section of one input file: a function, or all code of a source file. Its place depends only on the seed,
its file and its section, so code that a commit does not change has the same address, modulo a power of two, in every
revision. Only the order and the places of code change: arguments, archives and data stay as recorded.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from perftrail.builds.links import elf
from perftrail.builds.links.record import CannotPin, program_content
from perftrail.file_tree import open_to_read
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.builds.links.record import Link

Kind = Literal["GNU ld", "lld", "Go"]

MOST_PIECES = 20_000
"""Number of pieces that are placed; GNU ld needs seconds for more."""

SMALL_BYTES = 256 << 10
"""Code may grow by this, or by a quarter of its size."""

GRIDS = (4096, 1024, 256)
SMALLEST_GRID = 64
"""Distances between the places of pieces: the places of a build's own files, and the grid of system libraries."""

FILL_BYTES = 64
"""Largest usual distance between two pieces that the map of a link does not list."""

SMALLEST_SHARE = 0.98
"""Smallest share of a program's code that is placed."""

_STEP = 16
"""Places are multiples of this: compilers align functions to 16 bytes."""

LARGEST_MISPLACED = 0.01
"""Largest share of the code that may miss its place: lld cannot tell functions of the same name apart."""

_TEXT = re.compile(r"^  \.text +:\s*\{\n(?=\s*\*\(\.text\.unlikely)", re.MULTILINE)
_BFD_PIECE = re.compile(r"\n (\.text\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)")
_LLD_PIECE = re.compile(
    r"\n *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ {9}(\S.*):\((\.text[^)\n]*)\)\n"
    r" *[0-9a-f]+ +[0-9a-f]+ +[0-9a-f]+ +\d+ {17}(\S+)"
)
_GROUPS = tuple(
    re.compile(rf"\.text\.({word}(\.|$)|.*_{word}$)") for word in ("unlikely", "exit", "startup", "hot")
)
_OWN_SCRIPT = (
    "-T",
    "--script",
    "--default-script",
    "-dT",
    "--symbol-ordering-file",
    "--section-ordering-file",
)
_TEMPORARY = re.compile(r"/(cc|rustc)\w{6}\b|\.ltrans|rcgu|/lto-|\.lto\.")
_UNSTABLE = re.compile(r"17h[0-9a-f]{16}E|Cs[0-9A-Za-z]+_")
"""Parts of Rust's symbols that may differ between revisions for the same function."""

_SPECIAL = re.compile(r'["*?\[\]\\\n]')
_OPTIMISED = re.compile(r"(?<!\S)\S*(\.ltrans\d+\.ltrans\.o)")
"""Objects that GCC generates while it links; the rest of their names is drawn."""

_OUTPUT = re.compile(r"--output=|-o(?=.)")
_SCRIPT_RULE = "=" * 50
_LARGEST_MAP = 1 << 28


class Linker(Protocol):
    """Starts linkers."""

    def __call__(self, arguments: Sequence[str], environment: Mapping[str, str], directory: str) -> str:
        """Run a linker and return what it prints. Raises `CannotPin` with its words if it fails."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of code: its section, its size, its file, and a symbol of it where the linker needs one."""

    section: str
    size: int
    file: str
    symbol: str = ""
    address: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """What the unchanged link shows: GNU ld's script, and the pieces in the order of their addresses."""

    script: str
    pieces: tuple[Piece, ...]


def kind_of(link: Link) -> Kind:
    """Return the kind of a link's linker. Raises `CannotPin` for one that cannot place code by its name."""
    name = Path(link.program).name
    first = Path(link.arguments[0]).name
    if name == "link":
        return "Go"
    for unable in ("mold", "gold", "wild"):
        if unable in name or unable in first:
            raise CannotPin(
                f"{_output_name(link)} is linked by {unable}, which cannot place code by its name"
            )
    return (
        "lld"
        if "lld" in f"{name} {first} {link.arguments[1] if len(link.arguments) > 1 else ''}"
        else "GNU ld"
    )


def _output_name(link: Link) -> str:
    return quoted(Path(link.output).name)


class Replay:
    """One link that is repeated, with its inputs below a scratch directory at the paths of the build.

    `record` is the directory of the stored files. The linker is a program of the build, so it writes only into
    `written`, where perftrail never writes: it might find a link there that leads out of the sandbox.
    """

    def __init__(self, link: Link, record: Path, scratch: Path, *, written: Path) -> None:
        self._link = link
        self._record = record
        self._scratch = scratch
        self._written = written
        self._kind = kind_of(link)
        self._root = scratch / "root"
        self._directory = f"{self._root}{link.directory}"
        self._moved: dict[str, str] = {}
        self._checked: _Checked | None = None
        self._place_inputs()

    def _place_inputs(self) -> None:
        """Link the stored inputs below the scratch directory. Raises `CannotPin` if one of them changed."""
        link = self._link
        for directory in (Path(self._directory), Path(f"{self._root}{link.output}").parent):
            self._inside(directory).mkdir(parents=True, exist_ok=True)
        for kept in link.files:
            path = str(Path(link.directory, kept.name))
            source = self._record / kept.stored if kept.stored else Path(path)
            try:
                state = source.stat(follow_symlinks=not kept.stored)
            except OSError:
                raise CannotPin(f"{quoted(kept.name)}, an input of a link, is missing") from None
            if (state.st_size, state.st_mtime_ns) != (kept.size, kept.date):
                raise CannotPin(f"{quoted(kept.name)}, an input of a link, changed after the build")
            if kept.stored:
                target = self._inside(Path(f"{self._root}{os.path.normpath(path)}"))
                target.parent.mkdir(parents=True, exist_ok=True)
                if not os.path.lexists(target):
                    target.symlink_to(source)
                self._moved[kept.name] = str(target) if kept.name.startswith("/") else kept.name
        for name in [each for each in self._moved if each.endswith("importcfg.link")]:
            self._place_imports(Path(self._directory, self._moved[name]))

    def _inside(self, path: Path) -> Path:
        """Return a path after checking that it is below the scratch directory: names in records are untrusted."""
        if not os.path.normpath(path).startswith(f"{self._root}/"):
            raise CannotPin(f"the record of {_output_name(self._link)} is damaged")
        return path

    def _place_imports(self, config: Path) -> None:
        with open_to_read(config) as file:
            lines = [line.partition("=") for line in os.fsdecode(file.read(_LARGEST_MAP)).splitlines()]
        config.unlink()
        config.write_bytes(
            os.fsencode("".join(f"{word}{sign}{self._moved.get(path, path)}\n" for word, sign, path in lines))
        )

    def _words(self, into: Path, rpaths: Callable[[str], str] = str) -> list[str]:
        """Return the recorded arguments with another output, and with inputs below the scratch directory."""
        words: list[str] = []
        for before, word in zip(("", *self._link.arguments), self._link.arguments, strict=False):
            value, is_go = word.partition("=")[2], self._kind == "Go"
            joined = None if is_go else _OUTPUT.match(word)
            searched = word if before == "-L" else word[2:] if word.startswith("-L/") else ""
            if before in ("-o", "--output"):
                words.append(str(into))
            elif joined is not None and before not in ("-z", "-soname", "-h"):
                words.append(f"{joined[0]}{into}")
            elif word.startswith("--dependency-file="):
                words.append(f"--dependency-file={self._written}/dependencies")
            elif word.startswith("-plugin-opt=-fresolution="):
                words.append(f"-plugin-opt=-fresolution={self._written}/resolution")
            elif value in self._moved:
                words.append(f"{word[: -len(value)]}{self._moved[value]}")
            elif searched.startswith("/") and Path(f"{self._root}{searched}").is_dir():
                words.append(f"{word[: -len(searched)]}{self._root}{searched}")
            elif before in ("-rpath", "--rpath", "-R") or re.match(r"--?rpath=", word):
                words.append(rpaths(word))
            else:
                words.append(self._moved.get(word, word))
        return [*self._program(), *words[1:]]

    def _program(self) -> tuple[str, ...]:
        """Return the linker by a name with which it behaves as it did: lld's flavour depends on the name."""
        named = self._link.arguments[0]
        if named.startswith("/") and os.path.realpath(named) == os.path.realpath(self._link.program):
            return (named,)
        alias = self._scratch / "bin" / Path(named).name
        alias.parent.mkdir(exist_ok=True)
        if not os.path.lexists(alias):
            alias.symlink_to(self._link.program)
        return (str(alias),)

    def _start(self, run: Linker, words: Sequence[str]) -> str:
        named = (each.partition("=") for each in self._link.environment)
        environment = {name: value for name, sign, value in named if name and sign}
        environment.pop("TMPDIR", None)
        environment["TMPDIR"] = str(self._written)
        return run(words, environment, self._directory)

    def check(self, run: Linker) -> None:
        """Repeat the link unchanged. Raises `CannotPin` unless it gives the recorded file."""
        if self._checked is not None:
            return
        into = self._written / f"{self._scratch.name}-unchanged"
        words, script, mapped = self._words(into), "", self._mapped
        if self._kind != "Go" and any(word.startswith(_OWN_SCRIPT) for word in self._link.arguments[1:]):
            raise CannotPin(f"{_output_name(self._link)} is linked with a script that places its code")
        more: list[str] = []
        if self._kind == "GNU ld":
            parts = self._start(run, [*words, "--verbose"]).split(_SCRIPT_RULE)
            script = parts[1] if len(parts) > 1 else ""
            if not _TEXT.search(script):
                raise CannotPin(f"{_output_name(self._link)}: this linker's script is not known")
            (self._scratch / "script").write_text(script, errors="surrogateescape")
            more = ["-T", str(self._scratch / "script")]
        self._start(run, [*words, *more, *(() if self._kind == "Go" else self._map(mapped))])
        if hashlib.sha256(program_content(into)).hexdigest() != self._link.sha256:
            raise CannotPin(f"{_output_name(self._link)}: the repeated link gives another file")
        pieces = () if self._kind == "Go" else self._pieces(mapped)
        if self._kind != "Go":
            self._refuse_unlisted(into, pieces)
        if len(pieces) > MOST_PIECES:
            raise CannotPin(f"{_output_name(self._link)} has more than {MOST_PIECES} pieces of code")
        self._checked = _Checked(script=script, pieces=pieces)

    @property
    def _mapped(self) -> Path:
        return self._written / f"{self._scratch.name}-map"

    def _map(self, mapped: Path) -> tuple[str, ...]:
        """Return the options for a map, with the symbols of lld as they are in the object files."""
        return (f"-Map={mapped}", *(("--no-demangle",) if self._kind == "lld" else ()))

    def _refuse_unlisted(self, linked: Path, pieces: Sequence[Piece]) -> None:
        """Raise `CannotPin` if the pieces are not almost all code of a linked file."""
        found = elf.sections(program_content(linked))
        size = sum(each.size for each in found if each.name == ".text")
        if sum(each.size + FILL_BYTES for each in pieces) < SMALLEST_SHARE * max(size, 1):
            raise CannotPin(f"{_output_name(self._link)}: its linker does not list all of its code")

    def _pieces(self, mapped: Path) -> tuple[Piece, ...]:
        """Return the pieces that a linker's map lists."""
        with open_to_read(mapped, follow=False) as file:
            text = os.fsdecode(file.read(_LARGEST_MAP)).replace(f"{self._root}", _ROOT)
        text = _OPTIMISED.sub(rf"{_ROOT}\1", text)
        if self._kind == "lld":
            found = [
                Piece(section=section, size=int(size, 16), file=file, symbol=symbol, address=int(address, 16))
                for address, size, file, section, symbol in _LLD_PIECE.findall(text)
            ]
        else:
            begin = text.rfind("\n.text  ")
            text = text[begin:] if begin >= 0 else ""
            end = re.search(r"\n\.(?!text )\w", text[1:])
            found = [
                Piece(section=section, size=int(size, 16), file=file, address=int(address, 16))
                for section, address, size, file in _BFD_PIECE.findall(
                    text[: end.start() + 1] if end else text
                )
            ]
        return tuple(
            each
            for each in found
            if each.size
            and not each.symbol.startswith(".")
            and not each.section.startswith(".text.sorted")
            and not each.symbol.startswith(elf.PADDING)
        )

    def link(self, seed: int, into: Path, run: Linker, rpaths: Callable[[str], str] = str) -> None:
        """Link with the places of a seed, from 1. Raises `CannotPin` unless the code is at these places.

        `rpaths` replaces the arguments that name run-time directories: a program must load the libraries of its layout.
        """
        self.check(run)
        assert self._checked is not None
        words, pieces = self._words(into, rpaths), self._checked.pieces
        if self._kind == "Go":
            self._start(run, [words[0], "-funcalign=64", f"-randlayout={seed}", *words[1:]])
        else:
            self._link_pieces(run, words, _Places(seed, pieces, self._stable_names(pieces)))
        self._check_moved(into)

    def _link_pieces(self, run: Linker, words: Sequence[str], places: _Places) -> None:
        assert self._checked is not None
        out, mapped = self._scratch / "places", self._mapped
        if self._kind == "lld":
            padding = Path(f"{out}.o")
            padding.write_bytes(elf.padding_object(self._like(), places.padding()))
            ordered = [f"{elf.PADDING}{number}\n{each.symbol}\n" for number, each in enumerate(places.order)]
            out.write_text("".join(ordered), errors="surrogateescape")
            more = [str(padding), f"--symbol-ordering-file={out}", "--no-warn-symbol-ordering"]
        else:
            lines = [self._script_line(each, places) for each in places.order]
            script = _TEXT.sub(lambda found: found[0] + "".join(lines), self._checked.script, count=1)
            out.write_text(script, errors="surrogateescape")
            more = ["-T", str(out)]
        self._start(run, [*words, *more, *self._map(mapped)])
        self._check_places(self._pieces(mapped), places)

    def _script_line(self, piece: Piece, places: _Places) -> str:
        member = re.fullmatch(r"(.*)\((.*)\)", piece.file)
        path = (f"{member[1]}:{member[2]}" if member else piece.file).replace(_ROOT, str(self._root))
        if _SPECIAL.search(path):
            raise CannotPin(f"{quoted(piece.file)}: GNU ld cannot name this file")
        # Without a wildcard, GNU ld would open the file as another input.
        generated = path.removeprefix(str(self._root))
        pattern = f'"*{generated}"' if _OPTIMISED.fullmatch(generated) else f'"[{path[0]}]{path[1:]}"'
        return f"    . = ALIGN({places.grid(piece)}) + {places.of(piece)};\n    {pattern}({piece.section})\n"

    def _like(self) -> bytes:
        """Return the head of an input object, which states the machine."""
        for word in self._link.arguments[1:]:
            path = Path(self._directory, self._moved.get(word, word))
            if word.endswith(".o") and path.is_file():
                with open_to_read(path) as file:
                    head = file.read(64)
                if head.startswith(elf.SUPPORTED):
                    return head
        raise CannotPin(f"{_output_name(self._link)}: no input is a 64-bit object file")

    def _stable_names(self, pieces: Sequence[Piece]) -> Mapping[str, str]:
        """Return a name of each file that is equal in other revisions: of a temporary object, its source file."""
        names: dict[str, str] = {}
        for number, file in enumerate(dict.fromkeys(each.file for each in pieces)):
            name = Path(file).name
            if _TEMPORARY.search(file):
                name = self._source_of(file) or f"#{number}"
            names[file] = name
        return names

    def _source_of(self, file: str) -> str:
        if ".ltrans" in file or "rcgu" in file:
            return "generated"
        try:
            with open_to_read(Path(self._directory, file.replace(_ROOT, str(self._root)))) as opened:
                return elf.source_file(opened.read(_LARGEST_MAP))
        except OSError:
            return ""

    def _check_places(self, found: Sequence[Piece], places: _Places) -> None:
        """Raise `CannotPin` if too much code is missing or is not where it belongs."""
        known = {_name(each): each for each in places.order}
        right = sum(each.size for each in found if _name(each) in known and places.has(each))
        size = sum(each.size for each in places.order)
        if right < (1 - LARGEST_MISPLACED) * size:
            raise CannotPin(f"{_output_name(self._link)}: {self._kind} did not place the code as demanded")

    def _check_moved(self, into: Path) -> None:
        loaded = elf.loaded_sections(program_content(into))
        # The table of functions shows whether these moved among each other.
        name = ".eh_frame_hdr" if ".eh_frame_hdr" in self._link.loaded else ".text"
        if not loaded or loaded.get(name) == self._link.loaded.get(name):
            raise CannotPin(f"{_output_name(self._link)}: the linker did not move the code")


_ROOT = "<root>"


def _is_of_system(piece: Piece) -> bool:
    """Whether a piece is from an installed library, of which there may be thousands: no commit changes these."""
    return piece.file.startswith("/")


def _name(piece: Piece) -> tuple[str, str, str]:
    return piece.section, piece.file, piece.symbol


class _Places:
    """The order and the places of pieces for a seed."""

    def __init__(self, seed: int, pieces: Sequence[Piece], names: Mapping[str, str]) -> None:
        self._seed = seed
        self._names = names
        allowed = max(SMALL_BYTES, sum(each.size for each in pieces) / 4)
        own = sum(not _is_of_system(each) for each in pieces)
        self._grid = next((grid for grid in GRIDS if grid * own <= allowed), SMALLEST_GRID)
        self.order = tuple(
            sorted(pieces, key=lambda piece: (_group(piece.section), self._drawn("order", piece)))
        )

    def grid(self, piece: Piece) -> int:
        """Return the distance between the possible places of a piece."""
        return SMALLEST_GRID if _is_of_system(piece) else self._grid

    def of(self, piece: Piece) -> int:
        """Return the distance of a piece from a multiple of its grid."""
        return _STEP * (self._drawn("place", piece) % (self.grid(piece) // _STEP))

    def has(self, piece: Piece) -> bool:
        """Whether the address of a piece is its place, or the next multiple of its alignment."""
        distance = (piece.address - self.of(piece)) % self.grid(piece)
        return distance == 0 or piece.address % (1 << distance.bit_length()) == 0

    def padding(self) -> tuple[tuple[int, int], ...]:
        """Return the size of the padding before each piece, and the padding's alignment, which is the piece's grid."""
        if len(self.order) > elf.MOST_PADDING:
            raise CannotPin(f"more than {elf.MOST_PADDING} pieces of code")
        return tuple((self.of(each) or self.grid(each), self.grid(each)) for each in self.order)

    def _drawn(self, what: str, piece: Piece) -> int:
        key = repr((self._seed, what, _UNSTABLE.sub("", piece.section), self._names[piece.file]))
        return int.from_bytes(hashlib.sha256(key.encode(errors="surrogateescape")).digest()[:8], "big")


def _group(section: str) -> int:
    """Return the number of a section's group; linkers place these one after another."""
    return next((number for number, pattern in enumerate(_GROUPS) if pattern.match(section)), len(_GROUPS))
