"""The steps that bring a store from nothing to the newest schema, one module each, in order of their numbers.

A module is named ``NNNN_what.py`` and has one function, ``apply(connection)``, that changes tables and rows.
It says whatever it needs itself and never imports `schema`: that one moves on, a migration never changes once
released. It runs inside the caller's transaction, so it neither commits nor begins.

With each new one, put a file written by the version before it beside the tests (``tests/store/files``).
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema: what its number is, what it is called and what it does."""

    number: int
    name: str
    apply: Callable[[Connection], None]


def shipped() -> tuple[Migration, ...]:
    """Give the migrations of this perftrail, in order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[:4].isdigit())
    return tuple(
        Migration(number=int(name[:4]), name=name, apply=importlib.import_module(f"{__name__}.{name}").apply)
        for name in names
    )
