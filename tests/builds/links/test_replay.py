"""Links of real compilers that are repeated: unchanged code at equal places in all revisions, or a sentence why not."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.builds.links import elf, record
from perftrail.builds.links.record import RECORD, CannotPin, RawRecord, read_record, store_links
from tests.builds.links.conftest import Recorded, addresses, run_linker
from tests.needs import needs

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = ("one", "two", "three")
MAIN = (
    "#include <stdio.h>\nint one(int); int two(int); int three(int);\n"
    'int main(void) { printf("%d\\n", one(1) + two(1) + three(1)); return 0; }\n'
)


def sources(*, dead: int = 0) -> dict[str, str]:
    """Return a program whose functions have code before and after them that nothing calls, of `dead` lines."""
    text = {f"{name}.c": f"int {name}(int n) {{ return n * {at + 3}; }}\n" for at, name in enumerate(NAMES)}
    body = "".join(f"n = n * {at + 7} + (n >> {at % 7 + 1});" for at in range(dead))
    unused = f"__attribute__((used)) int dead_code(int n) {{ {body} return n; }}\n"
    return {"main.c": MAIN, "dead.c": unused, "last.c": unused.replace("dead", "last"), **text}


FILES = "main.c dead.c one.c two.c three.c last.c"
MEMBERS = "dead.o one.o two.o three.o"
LINES = {
    "GNU ld": f"cc -c -O1 {FILES}; cc -o program main.o dead.o one.o two.o three.o",
    "one step": f"cc -O1 {FILES} -o program",
    "an archive": f"cc -c -O1 {FILES}; ar rc libx.a {MEMBERS}; cc main.o -L. -lx -Wl,-u,dead_code -o program",
    "a thin archive": f"cc -c -O1 {FILES}; ar rcT x.a {MEMBERS}; cc main.o x.a -Wl,-u,dead_code -o program",
    "function sections": f"cat {FILES} > all.c; cc -O1 -ffunction-sections all.c -o program",
    "a static program": f"cc -static -O1 {FILES} -o program",
    "link-time optimisation": f"cc -O1 -flto -fno-inline -ffunction-sections {FILES} -o program",
    "no position independence": f"cc -no-pie -O1 {FILES} -o program",
    "stripped": f"cc -O1 {FILES} -o symbols; cp symbols kept; strip kept; install kept copy; mv copy program",
}
LLD = {
    "lld": f"cc -fuse-ld=lld -O1 -ffunction-sections {FILES} -o program",
    "lld, objects": f"cc -fuse-ld=lld -c -O1 {FILES}; cc -fuse-ld=lld -o program main.o dead.o one.o two.o three.o",
}


def places(program: Path) -> dict[str, int]:
    found = addresses(program)
    return {name: found[name] % 4096 for name in NAMES}


def output(program: Path) -> str:
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def check_places(directory: Path, line: str) -> None:
    """Check that code which no commit touched has equal places in three revisions, and other ones with other seeds."""
    found: dict[int, list[dict[str, int]]] = {1: [], 2: []}
    linked: list[dict[str, int]] = []
    for dead in (0, 40, 90):
        recorded = Recorded(directory / str(dead))
        recorded.write(sources(dead=dead))
        recorded.build(line, "program")
        assert recorded.record.unpinned == ""
        for seed, each in found.items():
            program = recorded.linked(seed)
            assert output(program) == "12\n"
            each.append(places(program))
        named = recorded.directory / "tree" / "symbols"
        linked.append(places(named if named.exists() else recorded.directory / "tree" / "program"))
    assert linked[0] != linked[1] != linked[2] or "-flto" in line
    assert found[1][0] == found[1][1] == found[1][2]
    assert found[2][0] == found[2][1] == found[2][2]
    assert found[1][0] != found[2][0]


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_code_that_no_commit_touched_has_equal_places(tmp_path: Path, line: str) -> None:
    check_places(tmp_path, line)


@needs("ld.lld")
@pytest.mark.parametrize("line", LLD.values(), ids=LLD)
def test_lld_places_code_like_gnu_ld(tmp_path: Path, line: str) -> None:
    check_places(tmp_path, line)


def test_instructions_and_data_stay_as_recorded(recorded: Recorded) -> None:
    recorded.write({"a.c": "int table[9] = {1, 2, 3};\nint main(void) { return table[0] - 1; }\n"})
    recorded.build("cc -O1 a.c -o program", "program")
    sizes = [
        subprocess.run(["nm", "-S", path], check=True, capture_output=True, text=True).stdout
        for path in (recorded.directory / "tree" / "program", recorded.linked(1))
    ]
    names = [
        {(words[1], words[3]) for line in each.splitlines() if len(words := line.split()) == 4}
        for each in sizes
    ]
    assert names[0] == names[1]


def test_a_shared_library_is_a_link_of_its_own(recorded: Recorded) -> None:
    recorded.write(sources())
    pinned = recorded.build(
        "cc -fPIC -shared -O1 dead.c one.c two.c three.c -o libx.so; cc main.c -L. -lx -Wl,-rpath,'$ORIGIN' -o program",
        "libx.so",
        "program",
    )
    assert sorted(pinned.programs) == ["libx.so", "program"]
    assert len(pinned.links) == 2
    library = recorded.linked(3, pinned.programs["libx.so"])
    assert addresses(library)["one"] != addresses(recorded.directory / "tree" / "libx.so")["one"]


GO = """package main

//go:noinline
func f(n int) int { return n * 3 }

func main() { print(f(4)) }
"""


@pytest.mark.long
@needs("go")
def test_functions_of_go_are_placed(recorded: Recorded) -> None:
    recorded.write(
        {
            "go.mod": "module x\n\ngo 1.20\n",
            "main.go": GO,
        }
    )
    recorded.build("GOCACHE=$HOME/cache go build -o program .", "program")
    before = addresses(recorded.directory / "tree" / "program")
    one, two = (addresses(recorded.linked(seed)) for seed in (1, 2))
    assert before["main.f"] != one["main.f"] != two["main.f"]
    assert one["main.f"] % 64 == two["main.f"] % 64 == 0


@pytest.mark.long
@needs("cargo")
def test_functions_of_rust_are_placed(tmp_path: Path) -> None:
    found = []
    for dead in (1, 60):
        recorded = Recorded(tmp_path / str(dead))
        unused = "".join(f"n = n.wrapping_mul({at + 3}) ^ (n >> 3);" for at in range(dead))
        recorded.write(
            {
                "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
                "src/main.rs": "#[inline(never)]\n#[no_mangle]\npub fn work(n: u64) -> u64 { n.wrapping_mul(3) ^ 5 }\n"
                f"#[inline(never)]\n#[no_mangle]\npub fn dead(mut n: u64) -> u64 {{ {unused} n }}\n"
                'fn main() { println!("{}", work(std::env::args().count() as u64) + dead(1) * 0); }\n',
            }
        )
        home = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
        rustup = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
        recorded.build(
            f"CARGO_HOME={home} RUSTUP_HOME={rustup} cargo build --quiet --offline --release",
            "target/release/x",
        )
        assert recorded.record.unpinned == ""
        program = recorded.linked(1)
        assert output(program) == "6\n"
        found.append(addresses(program)["work"] % 64)
    assert found[0] == found[1]


def reason(recorded: Recorded) -> str:
    with pytest.raises(CannotPin) as caught:
        recorded.linked(1)
    return str(caught.value)


@needs("ld.gold")
def test_gold_is_refused(recorded: Recorded) -> None:
    recorded.write(sources())
    recorded.build(f"cc -fuse-ld=gold {FILES} -o program", "program")
    assert reason(recorded) == '"program" is linked by gold, which cannot place code by its name'


def test_an_own_script_is_refused(recorded: Recorded) -> None:
    recorded.write(sources())
    recorded.build(
        f"ld --verbose | sed '1,/====/d;/====/,$d' > own.ld; cc -no-pie {FILES} -Wl,-T,own.ld -o program",
        "program",
    )
    assert reason(recorded) == '"program" is linked with a script that places its code'


def test_an_input_that_changed_is_refused(recorded: Recorded) -> None:
    recorded.write(sources())
    recorded.build(LINES["GNU ld"], "program")
    stored = next(each for each in recorded.record.links[0].files if each.name == "one.o")
    os.utime(recorded.directory / "links" / stored.stored)
    assert reason(recorded) == '"one.o", an input of a link, changed after the build'
    (recorded.directory / "links" / stored.stored).unlink()
    assert reason(recorded) == '"one.o", an input of a link, is missing'


def edit(recorded: Recorded, **changes: object) -> None:
    path = recorded.directory / "links" / RECORD
    facts = json.loads(path.read_text())
    facts["links"][0] |= changes
    path.write_text(json.dumps(facts))


def test_a_repeated_link_must_give_the_recorded_file(recorded: Recorded) -> None:
    recorded.write(sources())
    recorded.build(LINES["GNU ld"], "program")
    edit(recorded, sha256="0" * 64)
    assert reason(recorded) == '"program": the repeated link gives another file'


def kept(name: str) -> Mapping[str, object]:
    return {"name": name, "stored": "files/1-1-1-1", "size": 0, "date": 0}


@pytest.mark.parametrize("name", ["../../../../../../../../../../../../escaped.o", "/../../escaped.o"])
def test_a_record_cannot_name_files_outside_the_scratch_directory(recorded: Recorded, name: str) -> None:
    recorded.write(sources())
    recorded.build(LINES["GNU ld"], "program")
    edit(recorded, files=[kept(name)], directory="/..")
    stored = recorded.directory / "links" / "files" / "1-1-1-1"
    stored.touch()
    os.utime(stored, ns=(0, 0))
    with pytest.raises(CannotPin, match=r"the record of .* is damaged"):
        recorded.replay()
    assert not (recorded.directory / "escaped.o").exists()


@pytest.mark.parametrize("stored", ["/etc/passwd", "files/../../x", "../x", "files/1-1-1-1/../.."])
def test_a_record_cannot_name_files_outside_its_directory(recorded: Recorded, stored: str) -> None:
    recorded.write(sources())
    recorded.build(LINES["GNU ld"], "program")
    edit(recorded, files=[{**kept("one.o"), "stored": stored}])
    assert recorded.record.unpinned == "the record of its links is damaged"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"links": 3}', '{"links": [3], "programs": {}, "unpinned": ""}', "[" * 9999]
)
def test_a_damaged_record_pins_nothing(tmp_path: Path, text: str) -> None:
    recorded = Recorded(tmp_path)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / RECORD).write_text(text)
    assert recorded.record.unpinned == "the record of its links is damaged"
    assert recorded.record.programs == {}


def test_a_program_that_was_changed_after_its_link_is_refused(recorded: Recorded) -> None:
    recorded.write(sources())
    pinned = recorded.build(
        f"cc {FILES} -o program; echo x > note; objcopy --update-section .comment=note --set-section-flags"
        " .comment=alloc,readonly,contents program",
        "program",
    )
    assert pinned.unpinned.startswith('"program" was changed after its link (')


def test_a_program_without_a_recorded_link_is_refused(recorded: Recorded) -> None:
    recorded.write(sources())
    pinned = recorded.build(f"cc {FILES} -o conftest; mv conftest program", "program")
    assert pinned.unpinned == 'no recorded link produced "program"'
    assert pinned.programs == {}


def test_files_of_the_revision_need_no_link(recorded: Recorded) -> None:
    recorded.write(sources())
    tree = recorded.directory / "tree"
    subprocess.run(["cc", *FILES.split(), "-o", "delivered"], check=True, cwd=tree)
    pinned = recorded.build(f"sleep 0.1; cc {FILES} -o program", "delivered", "program")
    assert list(pinned.programs) == ["program"]


def test_the_unchanged_link_is_repeated_once_for_all_layouts(recorded: Recorded) -> None:
    recorded.write(sources())
    recorded.build(LINES["GNU ld"], "program")
    replay, started = recorded.replay(), []

    def run(arguments: list[str], environment: Mapping[str, str], directory: str) -> str:
        started.append(arguments)
        return run_linker(arguments, environment, directory)

    for seed in (1, 2, 3):
        replay.link(seed, recorded.directory / f"layout-{seed}", run)  # type: ignore[arg-type] # a sequence, here a list
    assert len(started) == 2 + 3


def test_overlapping_sections_are_not_copied() -> None:
    count, size = 100, 1 << 20
    header = struct.pack("<IIQQQQIIQQ", 0, 1, 2, 0, 0, size, 0, 0, 1, 0)
    content = bytearray(size)
    content[:8] = elf.SUPPORTED + b"\1\0"
    struct.pack_into("<Q", content, 40, 64)
    struct.pack_into("<HHH", content, 58, 64, count, 0)
    content[64 : 64 + 64 * count] = header * count
    assert elf.sections(bytes(content)) == ()


def test_endless_records_of_links_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build can write any file into its record, also thousands of large ones."""
    raw = RawRecord(tmp_path / "raw")
    raw.begin()
    monkeypatch.setattr(record, "_MOST_READ", 1000)
    for number in range(1, 12):
        (raw.directory / f"{number}.link").write_bytes(b"exe=" + 200 * b"x" + b"\0")
    into = tmp_path / "links"
    store_links(raw, [("program", Path("/bin/true").resolve())], into)
    assert read_record(into).unpinned == "the records of its links are too many or too large"
