"""Opens what starts benchmarks: a launcher, in a sandbox if the study asks for one, and a watch over the machine."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from perftrail.process.machine.load import Watch
from perftrail.workflows.build_paths import BuildPaths
from perftrail.workflows.invoker import Invoker
from perftrail.workflows.quiet import Lookout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from perftrail.model.study import Study
    from perftrail.ports import Builder, Starter
    from perftrail.process.launcher import Launcher
    from perftrail.workflows.containment import Sandboxes
    from perftrail.workflows.quiet import Noise


@contextmanager
def open_invoker(
    study: Study,
    builder: Builder,
    starter: Launcher,
    *,
    enclosing: Sandboxes | None,
    place: Path,
    logs: Path,
    on_noise: Callable[[Noise], None] = lambda _: None,
) -> Iterator[Invoker]:
    """Open who starts a study's benchmarks, each in a directory below `place`; ends what it started on leaving."""
    measure = study.measure
    links = place / "paths"
    with (
        Watch(helpers=lambda: _helpers(starter, enclosing)) as watch,
        _measuring(place, links, starter, enclosing) as started,
    ):
        yield Invoker(
            study,
            starter=started,
            builder=builder,
            lookout=Lookout(watch, measure.quiet, threshold=measure.quiet_threshold, on_wait=on_noise),
            scratch=place / "scratch",
            logs=logs,
            paths=BuildPaths(links) if measure.vary_path else None,
        )


def _helpers(starter: Launcher, enclosing: Sandboxes | None) -> tuple[int, ...]:
    return (starter.start().server_pid, *(() if enclosing is None else enclosing.servers()))


def _measuring(
    place: Path, links: Path, starter: Launcher, enclosing: Sandboxes | None
) -> AbstractContextManager[Starter]:
    """Give who starts what is measured: in one sandbox for all of it, if in one; `links` can be read there."""
    if enclosing is None:
        return nullcontext(starter)
    own = [place / "scratch", place / "counts"]
    for directory in (*own, links):
        directory.mkdir(exist_ok=True)
    return enclosing.around("run", [str(directory) for directory in own], shown=[str(links)])
