"""Write the profiles of an explained revision as files: flame graph, speedscope, pprof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.file_tree import write_file
from perftrail.formats.pprof import write_pprof
from perftrail.formats.speedscope import write_speedscope
from perftrail.model.wording import quoted
from perftrail.present.answer_sentence import revision_name
from perftrail.present.flame_graph import flame_graph

if TYPE_CHECKING:
    from perftrail.verbs.explain.explain import ExplainReport

NANOSECONDS = 1e9


def write_profile_files(
    explained: ExplainReport,
    *,
    flame: str | None = None,
    speedscope: str | None = None,
    pprof: str | None = None,
) -> list[str]:
    """Write the files that have a path, and return the paths. They show the point whose cost changed most.

    A flame graph is an HTML page if its name ends with ``.html``, and an SVG otherwise. Raises `UsageError` if a file
    cannot be written.
    """
    found = explained.most_changed
    if found is None or not any((flame, speedscope, pprof)):
        return []
    cell, functions = found.cell, found.functions
    profiles, tree = functions.profiles, functions.tree()
    point = f"{cell.benchmark} {cell.point}".rstrip()
    title = f"{point}: {revision_name(explained.culprit)} against {revision_name(explained.against)}"
    seconds = profiles.method == "cprofile"
    written: list[str] = []
    if flame:
        kind = "html" if flame.endswith((".html", ".htm")) else "svg"
        page = flame_graph(tree, title=title, kind=kind, roots=functions.roots)  # type: ignore[arg-type] # two kinds
        _write(flame, page.encode(), written)
    if speedscope:
        text = write_speedscope(tree, name=title, unit="seconds" if seconds else "none")
        _write(speedscope, text.encode(), written)
    if pprof:
        unit = "nanoseconds" if seconds else "samples" if profiles.method in ("jfr", "perf") else "cycles"
        _write(pprof, write_pprof(tree, unit=unit, scale=NANOSECONDS if seconds else 1.0), written)
    return written


def _write(path: str, content: bytes, written: list[str]) -> None:
    try:
        write_file(Path(path), content)
    except OSError as error:
        raise UsageError(f"cannot write {quoted(path)}: {error.strerror}") from error
    written.append(path)
