"""The script of the page on layout noise, with the linkers that shuffle nothing by themselves."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import skip_for

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "layout-noise.md"
NAMES = ("one", "two", "three")
FILES = {
    "main.c": "int one(int); int two(int); int three(int);\n"
    "int main(int count, char **words) { return one(count) + two(count) + three(count) != 15 || !words; }\n",
    **{f"{name}.c": f"int {name}(int n) {{ return n * {2 * at + 3}; }}\n" for at, name in enumerate(NAMES)},
}


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """A directory with objects, and the script of the page."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["cc", "-c", *FILES], cwd=tmp_path, check=True)
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "link-order").write_text(script)
    return tmp_path


def order(program: Path) -> tuple[str, ...]:
    output = subprocess.run(["nm", "-n", program], check=True, capture_output=True, text=True).stdout
    names = (line.split()[-1] for line in output.splitlines())
    return tuple(name for name in names if name in {"main", *NAMES})


def linked(objects: Path, seed: int, *flags: str) -> Path:
    words = ["main.o", "-Wl,-rpath,a b", "one.o", "two.o", "three.o", "-lm"]
    subprocess.run(
        ["sh", "link-order", str(seed), "cc", *flags, "-o", "program", *words], cwd=objects, check=True
    )
    return objects / "program"


@pytest.mark.parametrize("linker", ["bfd", "gold"])
def test_objects_are_linked_in_an_order_that_the_seed_decides(objects: Path, linker: str) -> None:
    if shutil.which(f"ld.{linker}") is None:
        skip_for(f"ld.{linker}")
    flag = f"-fuse-ld={linker}"
    orders = {seed: order(linked(objects, seed, flag)) for seed in range(1, 9)}
    assert len(set(orders.values())) >= 4
    assert {frozenset(each) for each in orders.values()} == {frozenset({"main", *NAMES})}
    assert order(linked(objects, 3, flag)) == orders[3]
    subprocess.run([objects / "program"], check=True)


def test_an_object_that_is_compiled_is_no_object_that_is_linked(objects: Path) -> None:
    command = ["sh", "link-order", "2", "cc", "-c", "-o", "new.o", "one.c"]
    subprocess.run(command, cwd=objects, check=True)
    assert (objects / "new.o").is_file()
