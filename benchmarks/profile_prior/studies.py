"""Search the histories of studies with a profile of both ends as prior, and without, and store what was profiled."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.machine import measured_on
from benchmarks.markdown import table
from benchmarks.profile_prior.simulation import ProfiledHistory
from perftrail.find.priors import ProfiledFunctions
from perftrail.model.json_data import from_plain
from perftrail.opening import open_view
from perftrail.ports import FunctionSource
from perftrail.studyfile import load

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One search: whether it named the culprit alone, its builds, its seconds, and whether it used a profile."""

    right: bool
    builds: int
    seconds: float
    profiled: bool


def search_study(
    directory: Path, store: Path, culprit: str, *, profile: bool, words: Sequence[str] = ()
) -> Found:
    """Search with a separate store; without a profile, the prior is uniform. Raises `ClickException` if that fails."""
    command = [
        sys.executable,
        "-m",
        "perftrail",
        "find",
        str(directory),
        "--store",
        str(store),
        "--json",
        *words,
    ]
    done = subprocess.run(
        command if profile else [*command, "--no-prior"], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise click.ClickException(f"exit {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    changes = [each["revisions"] for each in answer["changes"]]
    return Found(
        right=len(changes) == 1 and len(changes[0]) == 1 and changes[0][0].startswith(culprit),
        builds=answer["builds"],
        seconds=answer["seconds"],
        profiled=any("profile" in each for each in answer["priors"]),
    )


def profiled_history(name: str, directory: Path, store: Path, culprit: str) -> ProfiledHistory | None:
    """Return the history of a finished search, with its profiled functions; `None` if it profiled nothing."""
    study = load(str(directory))
    with open_view(study, store=str(store)) as view:
        stored = [each.question.get("profile") for each in view.store.searches()]
        functions = next(
            (
                one
                for each in stored
                if isinstance(each, dict)
                for one in each.values()
                if isinstance(one, dict)
            ),
            None,
        )
        if functions is None or not isinstance(view.source, FunctionSource):
            return None
        revisions = view.source.history(study.searched_source.range)
        return ProfiledHistory(
            name=name,
            touched=view.source.touched_functions(revisions),
            functions=from_plain(ProfiledFunctions, functions),
            culprit=next(number for number, each in enumerate(revisions) if each.id.startswith(culprit)),
        )


@click.command()
@click.argument("culprits", nargs=-1, required=True, metavar="STUDY=CULPRIT…")
@click.option("--into", type=click.Path(path_type=Path), required=True, help="Directory of the results.")
@click.option("--metric", default="", help="Metric to search. Default: that of each study.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def studies(culprits: tuple[str, ...], into: Path, metric: str, markdown: bool) -> None:
    """Search each study twice, with a profile as prior and without; CULPRIT is the id of the right answer.

    Write the profiled functions of each study to --into, for the simulation. A finished search is not repeated.
    """
    rows: list[tuple[str, ...]] = [
        ("study", "revisions", "right", "builds: profile", "none", "minutes: profile", "none")
    ]
    for each in culprits:
        study, _, culprit = each.rpartition("=")
        directory = Path(study)
        words = ["--metric", metric] if metric else []
        found = [
            _stored(
                into / f"{directory.name}{metric and '-' + metric}-{name}",
                directory,
                culprit,
                words,
                profile=name == "with",
            )
            for name in ("with", "without")
        ]
        history = profiled_history(
            directory.name + (f", {metric}" if metric else ""),
            directory,
            into / f"{directory.name}{metric and '-' + metric}-with",
            culprit,
        )
        if history is not None:
            (into / f"{directory.name}{metric and '-' + metric}.json").write_text(history.as_json())
        rows.append(
            (
                directory.name,
                str(len(history.touched)) if history else "",
                f"{sum(one.right for one in found)} of 2",
                *(
                    str(one.builds) + ("" if one.profiled or number else " (no profile)")
                    for number, one in enumerate(found)
                ),
                *(f"{one.seconds / 60.0:.2f}" for one in found),
            )
        )
        sys.stderr.write(f"{rows[-1]}\n")
    click.echo(
        f"{measured_on()}.\n\n{table(rows)}" if markdown else "\n".join("  ".join(row) for row in rows)
    )


def _stored(store: Path, directory: Path, culprit: str, words: Sequence[str], *, profile: bool) -> Found:
    file = store / "found.json"
    if not file.exists():
        found = search_study(directory, store, culprit, profile=profile, words=words)
        file.write_text(
            json.dumps({name: getattr(found, name) for name in ("right", "builds", "seconds", "profiled")})
        )
    return Found(**json.loads(file.read_text()))
