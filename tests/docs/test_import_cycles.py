"""No module imports itself by a detour, imports for types included."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import perftrail

ROOT = Path(perftrail.__file__).parent


def modules() -> dict[str, Path]:
    """Return every module's file by its dotted name."""
    found = {}
    for file in ROOT.rglob("*.py"):
        name = ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = file
    return found


def at_the_top(tree: ast.Module) -> list[ast.ImportFrom]:
    """Return the imports of a module and those for types; imports inside functions come later, and may go back."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.If))]
    return [node for body in bodies for node in body if isinstance(node, ast.ImportFrom)]


def imported(file: Path, names: dict[str, Path], own: str) -> set[str]:
    """Return the modules of perftrail that a module imports."""
    found = set()
    for node in at_the_top(ast.parse(file.read_text(encoding="utf-8"))):
        for each in node.names:
            inner = f"{node.module}.{each.name}"
            found.add(inner if inner in names else str(node.module))
    return (found & names.keys()) - {own}


def test_no_module_is_imported_by_what_it_imports() -> None:
    names = modules()
    graph = {name: imported(file, names, name) for name, file in names.items()}
    assert len(graph) > 200
    assert sum(map(len, graph.values())) > 1000
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from error
