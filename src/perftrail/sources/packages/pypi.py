"""Python packages: their releases in package indexes, and pip, which installs them.

pip lists versions without yanked ones, so its indexes are queried directly, with the certificates and proxies of its
settings.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import requests
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pypi_simple import NoSuchProjectError, PyPISimple
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.build import content_key
from perftrail.model.source import Package
from perftrail.own_python import own_python
from perftrail.sources.client import LONG_SECONDS, QUICK_SECONDS, Client, reduced_environment
from perftrail.sources.packages.registry import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pypi_simple import DistributionPackage

    from perftrail.model.source import Distribution
    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter
    from perftrail.sources.client import ToolResult


TIMEOUT_SECONDS = 60.0
_RETRIES = Retry(total=5, backoff_factor=0.25, status_forcelist=(500, 502, 503, 504))


def find_releases(
    pip: Pip, package: str, *, index: str | None, form: Distribution | None = None
) -> tuple[Release, ...]:
    """Return the versions that pip could install here, oldest first, including yanked ones and pre-releases.

    `index` replaces the index of pip's settings; with a `form`, only releases that were published as such count.
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
        if version is not None and _runs_here(file) and _is_installable(file, tags):
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
    """Whether Requires-Python admits this interpreter; like pip, an unreadable one admits all."""
    try:
        wanted = SpecifierSet(file.requires_python or "")
    except (InvalidSpecifier, InvalidRequirement):
        return True
    return wanted.contains(".".join(map(str, sys.version_info[:3])), prereleases=True)


def _is_installable(file: DistributionPackage, tags: frozenset[object]) -> bool:
    """Whether a file is source, which pip builds, or a wheel for this machine."""
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
    """Return the files on an index's page of a package; `None` if the index does not know the name."""
    try:
        return PyPISimple(index, session=session).get_project_page(package, timeout=TIMEOUT_SECONDS).packages
    except NoSuchProjectError:
        return None
    except (requests.RequestException, ValueError) as error:
        raise SourceError(
            f"{_without_password(index)}: the package index cannot be read: {type(error).__name__}: "
            f"{_without_password(str(error))}; check the network and source.index"
        ) from error


LARGEST_PAGE_BYTES = 64 << 20
"""Limit of an index's page of a package; the largest known pages have a few megabytes."""

_CHUNK_BYTES = 1 << 16


def _read_page(response: requests.Response, **_: object) -> None:
    """Read an answer, decompressed, within the limits. Raises `SourceError` beyond them."""
    content, deadline = bytearray(), time.monotonic() + QUICK_SECONDS
    address = _without_password(response.url)
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > LARGEST_PAGE_BYTES:
            raise SourceError(
                f"{address}: the page has more than {LARGEST_PAGE_BYTES} bytes, and perftrail does not read it; "
                "check source.index"
            )
        if time.monotonic() > deadline:
            raise SourceError(
                f"{address}: the page took more than {QUICK_SECONDS:.0f} s; check the network and source.index"
            )
    response._content = bytes(content)


def _session(settings: Mapping[str, str]) -> requests.Session:
    session = requests.Session()
    session.hooks["response"].append(_read_page)
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
    """Return pip's settings for installing; variables override ``[install]``, which overrides ``[global]``."""
    levels: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in pip.run("config", "list").lines():
        name, equals, value = line.partition("=")
        level, _, key = name.rpartition(".")
        if equals and level in levels:
            levels[level][key] = _unquoted(value)
    return {**levels["global"], **levels["install"], **levels[":env:"]}


def _default_index(pip: Pip) -> str:
    """Return pip's default index, from its own help."""
    output = "\n".join(pip.run("download", "--help").lines())
    found = re.search(r"--index-url <url>.*?\(default\s+(\S+?)\)", output, re.DOTALL)
    if found is None:
        raise SourceError("pip does not state which package index it uses; set source.index")
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


_REMOVED_VARIABLES = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_NO_COMPILE",
    "PIP_NO_CACHE_DIR",
    "PIP_REQUIRE",
    "PIP_LOG",
    "PIP_QUIET",
    "PIP_VERBOSE",
    "PIP_DRY_RUN",
    "PIP_REPORT",
)
"""Variables that would change where and how pip installs, not from where."""

_EXCEPTION = re.compile(r"[\w.]+")
_LONGEST_MESSAGE = 1000
_SUMMARIES = r"subprocess-exited|metadata-generation|Ignored the following|Could not find a version"
_ERROR_MESSAGE = re.compile(rf"(?:fatal )?(?:error|ERROR): (?!{_SUMMARIES})(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pip:
    """Runs the pip of this interpreter, in a directory from which nothing can be imported."""

    client: Client
    cache: Path

    def run(
        self, *words: str, timeout_seconds: float = QUICK_SECONDS, log: str | Path | None = None
    ) -> ToolResult:
        """Run one pip command. Raises `SourceError` if this interpreter has no pip."""
        result = self.client.run(
            own_python("-m", "pip", "--no-input", "--disable-pip-version-check", *words),
            directory=self.cache,
            timeout_seconds=timeout_seconds,
            log=log,
        )
        if result.failed and "No module named pip" in result.errors:
            raise SourceError(f"{sys.executable} has no pip; install it with: {sys.executable} -m ensurepip")
        return result


def make_pip(starter: Starter, *, cache: Path) -> Pip:
    """Return a pip that caches its downloads and builds below `cache`.

    It runs the build programs of source distributions, so it has a reduced environment.
    """
    cache.mkdir(parents=True, exist_ok=True)
    environment = {
        **reduced_environment(also=rf"(?!{'|'.join(_REMOVED_VARIABLES)})PIP_\w+"),
        "PIP_CACHE_DIR": str(cache),
        "COLUMNS": "2000",
        "NO_COLOR": "1",
    }
    return Pip(client=Client(starter=starter, environment=environment), cache=cache)


def why_pip_failed(result: ToolResult) -> str:
    """Return the cause of a failed installation: the build's error before pip's summary."""
    lines = [line.strip() for line in (*result.lines(), *result.errors.splitlines())]
    for message_of in (_exception, _error_message):
        found = next(filter(None, map(message_of, lines)), "")
        if found:
            return found[:_LONGEST_MESSAGE]
    return result.why


def _exception(line: str) -> str:
    """Return a line that reports an exception, else an empty text; in linear time, because a build wrote the line."""
    name, separator, message = line.partition(": ")
    known = name.endswith(("Error", "Exception")) and _EXCEPTION.fullmatch(name) is not None
    return line if separator and message and known else ""


def _error_message(line: str) -> str:
    found = _ERROR_MESSAGE.match(line)
    return found[1].strip() if found else ""


class PythonPackages:
    """The releases of a Python package that this interpreter and machine could install.

    Each is installed alone, with only the dependencies of the study. With `sandboxed`, only wheels are installed: pip
    runs the build programs of source distributions outside the sandbox. Raises `SourceError` if the study needs them.
    """

    limits = "for this Python and machine"

    def __init__(
        self, package: Package, table: SourceTable, *, cache: Path, starter: Starter, sandboxed: bool
    ) -> None:
        if sandboxed and table.distribution == "sdist":
            raise SourceError(
                'source.distribution: pip builds an "sdist" outside the sandbox; write "wheel", or use --no-sandbox'
            )
        self.package = Package(ecosystem="pypi", name=canonicalize_name(package.name))
        self._sandboxed = sandboxed
        self._table = replace(table, distribution="wheel") if sandboxed else table
        self._requires = tuple(_requirement(text) for text in table.requires)
        self._cache = cache
        self._starter = starter

    def version(self, text: str) -> Version:
        """Parse a version according to PEP 440."""
        try:
            return Version(text)
        except InvalidVersion as error:
            raise SourceError(f'range: "{text}" is not a version number such as 1.4.2') from error

    def releases(self) -> tuple[Release, ...]:
        """Query the indexes that pip uses."""
        pip = make_pip(self._starter, cache=self._cache)
        form = self._table.distribution
        return find_releases(pip, self.package.name, index=self._table.index, form=form)

    def content(self, id: str) -> str:
        """Return the content key of an installation: release, requirements, interpreter, index."""
        requires = [str(each) for each in self._requires]
        interpreter = f"{sys.implementation.cache_tag} {platform.python_version()} {platform.machine()}"
        form = [self._table.distribution] if self._table.distribution else []
        key = content_key(requires, interpreter, self._table.index or "", *form)
        return f"pypi:{self.package.name}=={id}:{key}"

    def write_release(self, id: str, directory: Path, log: str) -> None:
        """Install a release, compiled, into a separate directory, with only what the study names."""
        name = self.package.name
        index = ["--index-url", self._table.index] if self._table.index else []
        forms = {"wheel": ["--only-binary", name], "sdist": ["--no-binary", name]}
        result = make_pip(self._starter, cache=self._cache).run(
            "install", "--no-deps", "--no-user", "--compile", "--no-warn-script-location",
            "--root-user-action=ignore", "--progress-bar=off", *index,
            *(["--only-binary", ":all:"] if self._sandboxed else forms.get(self._table.distribution or "", [])),
            "--target", str(directory.absolute()),
            "--", f"{name}=={id}", *map(str, self._requires),
            timeout_seconds=LONG_SECONDS, log=log,
        )  # fmt: skip
        if result.failed:
            raise CheckoutFailed(f"pip cannot install {name}=={id}: {why_pip_failed(result)}")
        directory.mkdir(exist_ok=True)


def _requirement(text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise SourceError(
            f'source: "{text}" is not a package requirement such as typing-extensions==4.12.2'
        ) from error
