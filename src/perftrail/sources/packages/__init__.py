"""Releases of packages, each ecosystem through its own client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from perftrail.errors import SourceError
from perftrail.model.source import read_package

if TYPE_CHECKING:
    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter
    from perftrail.sources.packages.registry import Registry


def open_registry(table: SourceTable, *, cache: str, starter: Starter, sandboxed: bool) -> Registry:
    """Open the registry of a study's package; downloads are stored below the directory `cache`.

    Raises `SourceError` for an invalid package name, and if its client is not installed.
    """
    try:
        package = read_package(table.location)
    except ValueError as error:
        raise SourceError(f"source.location: {error}") from error
    # each in its own branch: their libraries are heavy, and a study needs one of them
    match package.ecosystem:
        case "pypi":
            from perftrail.sources.packages.pypi import PythonPackages  # noqa: PLC0415

            return PythonPackages(
                package, table, cache=Path(cache) / "pip", starter=starter, sandboxed=sandboxed
            )
        case "crates":
            from perftrail.sources.packages.crates import Crates  # noqa: PLC0415

            return Crates(package, table, cache=Path(cache) / "crates", starter=starter)
        case "npm":
            from perftrail.sources.packages.npm import NpmPackages  # noqa: PLC0415

            return NpmPackages(package, table, cache=Path(cache) / "npm", starter=starter)
        case "debian":
            from perftrail.sources.packages.debian import DebianSources  # noqa: PLC0415

            return DebianSources(package, table, cache=Path(cache) / "debian", starter=starter)
        case _:
            assert_never(package.ecosystem)
