"""Detect Maven, and the modules with JMH benchmarks."""

from __future__ import annotations

import posixpath
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import BuildDraft, Step, SuiteDraft, is_safe_path, placeholder_benchmark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.verbs.init.draft import Tree

MANIFEST = "pom.xml"
_MOST_MODULES = 500
_PROPERTY = re.compile(r"\$\{([^{}$]+)\}")
_MAVEN = "mvn --quiet --batch-mode -DskipTests -Dproject.build.outputTimestamp=1980-01-01T00:00:02Z"

_WITHOUT_JAR = ("test-classes", "classes", "dependency/*.jar")
"""The class path of a module without a jar that contains its dependencies, in its directory ``target``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A module: its directory, and the profile that adds it to the build, empty if it is always built."""

    directory: str
    profile: str = ""

    def path(self, path: str) -> str:
        return posixpath.join(self.directory, path)


def detect(tree: Tree) -> BuildDraft | None:
    """Read the modules of a tree that is built with Maven."""
    if MANIFEST not in tree:
        return None
    found = {module: pom for module, pom in _modules(tree) if _depends_on_jmh(pom)}
    suite = _suite(tree, found) if found else None
    return BuildDraft(
        system="maven",
        manifest=MANIFEST,
        tools=("mvn",),
        steps=(
            Step(
                line=f"{_MAVEN}{_options(tuple(found))} package{_more(found)}",
                why="without tests; with one date in all jars, so that equal sources give equal jars",
            ),
        ),
        outputs=suite.program if suite else (),
        outputs_why="revisions with equal jars are measured once",
        benchmark=placeholder_benchmark(tree, MANIFEST),
        suite=suite,
    )


def _modules(tree: Tree) -> Iterator[tuple[_Module, ET.Element]]:
    """Yield every module of the build, from the root, with its pom.xml; unreadable ones are skipped."""
    waiting, seen = [_Module(directory="")], set[str]()
    while waiting and len(seen) < _MOST_MODULES:
        module = waiting.pop(0)
        if module.directory in seen or (module.directory and not is_safe_path(module.directory)):
            continue
        seen.add(module.directory)
        pom = _read(tree.text(module.path(MANIFEST)))
        if pom is None:
            continue
        yield module, pom
        inside = [(each, module.profile) for each in pom.findall("modules/module")]
        for profile in pom.findall("profiles/profile"):
            name = module.profile or _text(profile, "id")
            inside += [(each, name) for each in profile.findall("modules/module")]
        waiting += [
            _Module(directory=posixpath.normpath(module.path((each.text or ".").strip())), profile=name)
            for each, name in inside
            if not name or re.fullmatch(r"\w[\w.-]*", name, re.ASCII)
        ]


def _read(content: str) -> ET.Element | None:
    """Return a pom.xml without namespaces, or `None`."""
    try:
        pom = ET.fromstring(content)  # noqa: S314 (the parser limits what entities expand to)
    except (ET.ParseError, LookupError, ValueError):
        return None
    for each in pom.iter():
        each.tag = each.tag.rpartition("}")[2]
    return pom


def _depends_on_jmh(pom: ET.Element) -> bool:
    return any(_text(each, "artifactId") == "jmh-core" for each in pom.findall("dependencies/dependency"))


def _options(modules: tuple[_Module, ...]) -> str:
    """Return the options that choose modules and what they need; none for a module at the root."""
    inside = ",".join(module.directory for module in modules)
    profiles = ",".join(dict.fromkeys(module.profile for module in modules if module.profile))
    chosen = (
        f" --projects {inside} --also-make" if all(module.directory for module in modules) and inside else ""
    )
    return f"{chosen}{f' --activate-profiles {profiles}' if profiles else ''}"


def _more(modules: Mapping[_Module, ET.Element]) -> str:
    """Return the goal that copies dependencies, for modules without a jar that contains them."""
    return "" if all(map(_jar, modules.values())) else " dependency:copy-dependencies"


def _suite(tree: Tree, modules: Mapping[_Module, ET.Element]) -> SuiteDraft:
    files = [
        module.path(f"target/{each}")
        for module, pom in modules.items()
        for each in ((_jar(pom),) if _jar(pom) else _WITHOUT_JAR)
    ]
    where = ", ".join(module.path(MANIFEST) for module in modules)
    return SuiteDraft(
        kind="jmh",
        program=tuple(map(tree.path, files)),
        why=f"every JMH benchmark of the modules that depend on jmh-core: {where}",
    )


def _jar(pom: ET.Element) -> str:
    """Return the jar with all dependencies that a module builds with the shade plugin, empty if it is unknown."""
    properties = {each.tag: (each.text or "").strip() for each in pom.findall("properties/*")}
    for plugin in pom.findall("build/plugins/plugin"):
        name = next((each.text or "" for each in plugin.iter("finalName")), "").strip()
        name = _PROPERTY.sub(lambda found: properties.get(found[1], found[0]), name)
        if _text(plugin, "artifactId") == "maven-shade-plugin" and name and is_safe_path(name):
            return f"{name}.jar"
    return ""


def _text(element: ET.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()
