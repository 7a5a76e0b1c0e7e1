"""Asks package indexes which versions of a Python package there are, and which of them may be had here.

pip itself lists versions without telling which were yanked, so its indexes are asked directly: the same
ones, with the certificates and proxies that its settings name.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import requests
from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pypi_simple import NoSuchProjectError, PyPISimple
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from perftrail.errors import SourceError
from perftrail.sources.ecosystems.registry import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pypi_simple import DistributionPackage

    from perftrail.model.source import Distribution
    from perftrail.sources.pip_command import Pip

TIMEOUT_SECONDS = 60.0
_RETRIES = Retry(total=5, backoff_factor=0.25, status_forcelist=(500, 502, 503, 504))


def find_releases(
    pip: Pip, package: str, *, index: str | None, form: Distribution | None = None
) -> tuple[Release, ...]:
    """List the versions that pip could install here, oldest first, yanked and pre-releases among them.

    `index` takes the place of the index that pip's settings name; of a `form` are those published in it.
    Raises `SourceError`.
    """
    settings = _settings(pip)
    urls = [
        index or settings.get("index-url") or _default_index(pip),
        *_words(settings.get("extra-index-url")),
    ]
    if settings.get("no-index") in {"1", "true", "True", "yes", "on"}:
        raise SourceError("pip is set to use no index (no-index): its versions cannot be listed; unset it")
    files: list[DistributionPackage] = []
    found = False
    with _session(settings) as session:
        for url in urls:
            page = _page(session, url, package)
            found = found or page is not None
            files.extend(page or ())
    if not found:
        where = " and ".join(map(_without_password, urls))
        raise SourceError(f'source.location "pypi:{package}": {where} has no package of that name')
    return _releases(file for file in files if form in {None, file.package_type})


def _releases(files: Iterable[DistributionPackage]) -> tuple[Release, ...]:
    by_version: dict[Version, list[DistributionPackage]] = {}
    tags = frozenset(sys_tags())
    for file in files:
        version = _version(file.version)
        if version is not None and _runs_here(file) and _fits(file, tags):
            by_version.setdefault(version, []).append(file)
    return tuple(
        Release(
            id=str(version),
            version=version,
            prerelease=version.is_prerelease,
            yanked=all(file.is_yanked for file in by_version[version]),
            uploaded=_first_upload(by_version[version]),
        )
        for version in sorted(by_version)
    )


def _version(text: str | None) -> Version | None:
    try:
        return Version(text or "")
    except InvalidVersion:
        return None


def _runs_here(file: DistributionPackage) -> bool:
    """Whether its Requires-Python admits this interpreter; one that cannot be read admits all, as in pip."""
    try:
        wanted = SpecifierSet(file.requires_python or "")
    except (InvalidSpecifier, InvalidRequirement):
        return True
    return wanted.contains(".".join(map(str, sys.version_info[:3])), prereleases=True)


def _fits(file: DistributionPackage, tags: frozenset[object]) -> bool:
    """Whether it is source, which pip builds, or a wheel for this machine."""
    if file.package_type != "wheel":
        return file.package_type == "sdist"
    try:
        return not tags.isdisjoint(parse_wheel_filename(file.filename)[3])
    except (InvalidWheelFilename, InvalidVersion):
        return False


def _first_upload(files: Iterable[DistributionPackage]) -> str:
    times = [file.upload_time for file in files if file.upload_time is not None]
    return min(times).isoformat() if times else ""


def _page(session: requests.Session, index: str, package: str) -> list[DistributionPackage] | None:
    """What an index knows of a package, `None` when it does not know the name."""
    try:
        return PyPISimple(index, session=session).get_project_page(package, timeout=TIMEOUT_SECONDS).packages
    except NoSuchProjectError:
        return None
    except (requests.RequestException, ValueError) as error:
        raise SourceError(
            f"{_without_password(index)}: the package index cannot be read: {type(error).__name__}: "
            f"{_without_password(str(error))}; is the network there, is source.index right?"
        ) from error


def _session(settings: Mapping[str, str]) -> requests.Session:
    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=_RETRIES))
    if settings.get("cert"):
        session.verify = settings["cert"]
    if settings.get("client-cert"):
        session.cert = settings["client-cert"]
    if settings.get("proxy"):
        session.proxies = {"http": settings["proxy"], "https": settings["proxy"]}
    return session


def _settings(pip: Pip) -> Mapping[str, str]:
    """What pip's settings say of installing; variables win over ``[install]``, that over ``[global]``."""
    levels: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in pip.ask("config", "list").lines():
        name, equals, value = line.partition("=")
        level, _, key = name.rpartition(".")
        if equals and level in levels:
            levels[level][key] = _unquoted(value)
    return {**levels["global"], **levels["install"], **levels[":env:"]}


def _default_index(pip: Pip) -> str:
    """The index that pip uses when nobody sets one, as its own help states it."""
    said = "\n".join(pip.ask("download", "--help").lines())
    found = re.search(r"--index-url <url>.*?\(default\s+(\S+?)\)", said, re.DOTALL)
    if found is None:
        raise SourceError("pip does not say which package index it uses; set source.index")
    return found.group(1)


def _unquoted(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (SyntaxError, ValueError):
        return value


def _words(text: str | None) -> list[str]:
    return [os.path.expandvars(word) for word in (text or "").split()]


def _without_password(text: str) -> str:
    parts = urlsplit(text)
    if "@" not in parts.netloc:
        return text
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
