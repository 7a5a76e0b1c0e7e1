"""Python packages, as the package index has them and pip installs them."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.build import content_key
from perftrail.model.source import Package
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.package_index import find_releases
from perftrail.sources.pip_command import make_pip, why_pip_failed

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter
    from perftrail.sources.ecosystems.registry import Release


class PythonPackages:
    """The releases of a Python package that this interpreter and machine could install.

    Each stands alone: of its dependencies only what the study asks for.
    """

    fits = "for this Python and machine"

    def __init__(self, package: Package, asked: Asked, *, cache: Path, starter: Starter) -> None:
        self.package = Package(ecosystem="pypi", name=canonicalize_name(package.name))
        self._asked = asked
        self._requires = tuple(_requirement(text) for text in asked.requires)
        self._cache = cache
        self._starter = starter

    def version(self, text: str) -> Version:
        """Read a version as PEP 440 has it."""
        try:
            return Version(text)
        except InvalidVersion as error:
            raise SourceError(f'range: "{text}" is no version number such as 1.4.2') from error

    def releases(self) -> tuple[Release, ...]:
        """Ask the indexes that pip would ask."""
        pip = make_pip(self._starter, cache=self._cache)
        form = self._asked.distribution
        return find_releases(pip, self.package.name, index=self._asked.index, form=form)

    def content(self, id: str) -> str:
        """Name what would be installed: the release, what it requires, for which interpreter, from where."""
        requires = [str(each) for each in self._requires]
        interpreter = f"{sys.implementation.cache_tag} {platform.python_version()} {platform.machine()}"
        form = [self._asked.distribution] if self._asked.distribution else []
        key = content_key(requires, interpreter, self._asked.index or "", *form)
        return f"pypi:{self.package.name}=={id}:{key}"

    def put(self, id: str, directory: Path, log: str) -> None:
        """Install a release into a directory of its own, compiled, with nothing the study does not name."""
        name = self.package.name
        index = ["--index-url", self._asked.index] if self._asked.index else []
        forms = {"wheel": ["--only-binary", name], "sdist": ["--no-binary", name]}
        answer = make_pip(self._starter, cache=self._cache).ask(
            "install", "--no-deps", "--no-user", "--compile", "--no-warn-script-location",
            "--root-user-action=ignore", "--progress-bar=off", *index,
            *forms.get(self._asked.distribution or "", []),
            "--target", str(directory.absolute()),
            "--", f"{name}=={id}", *map(str, self._requires),
            timeout_seconds=LONG_SECONDS, log=log,
        )  # fmt: skip
        if answer.failed:
            raise CheckoutFailed(f"pip cannot install {name}=={id}: {why_pip_failed(answer)}")
        directory.mkdir(exist_ok=True)


def _requirement(text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise SourceError(
            f'source: "{text}" is no package requirement such as typing-extensions==4.12.2'
        ) from error
