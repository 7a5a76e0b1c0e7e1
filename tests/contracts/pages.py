"""The examples of the pages for contributors, as modules: a broken example fails its test."""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

PAGES = Path(__file__).parents[2] / "docs" / "contributing"


def code(page: str, language: str = "python") -> str:
    """Return the only block of a page in a language."""
    text = (PAGES / page).read_text("utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert isinstance(block, str)
    return block


@cache
def example(page: str, name: str) -> ModuleType:
    """Import the Python block of a page as the module that a contributor would write, by its full name."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:
        file.write(code(page))
        file.flush()
        spec = importlib.util.spec_from_file_location(name, file.name)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@contextmanager
def importable(page: str, name: str) -> Iterator[Any]:
    """Import the Python block of a page as a module that child processes can import, too."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, f"{name}.py").write_text(code(page), "utf-8")
        sys.path.insert(0, directory)
        try:
            yield importlib.import_module(name)
        finally:
            sys.path.remove(directory)
            sys.modules.pop(name, None)
