"""Commands that make and measure: the options they share, and following what they do."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from perftrail.cli.options import contained, sandbox_option, store_option
from perftrail.errors import MachineLeft

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a command makes and measures: where results go, whether it waits for them, what it tries once more.

    `sandbox` says whether it does so in a sandbox, `None` to do as the study says.
    """

    store: str | None
    wait: bool
    retry_failed: bool
    sandbox: bool | None

    def contained(self, study: Study) -> Study:
        """Give the study with what the command line says of its sandbox, if anything."""
        return contained(study, self.sandbox)

    def follow(
        self,
        study: Study,
        work: Callable[[Session], Generator[Event, None, Result]],
        *,
        own: Patched | None = None,
        jobs: int = 1,
        engine: str | None = None,
    ) -> Result:
        """Open the study, do the work while showing its progress, and give what it returns.

        `own` is a patched revision that the source is to know beside its own. So many `jobs` are built at once, or as
        many as the machines of an `engine` offer; when the one that measures leaves, another one does it anew.
        """
        from perftrail.cli.console import Watcher
        from perftrail.workflows.opening import open_session

        with Watcher() as watcher:
            while True:
                opened = open_session(
                    self.contained(study),
                    store=self.store,
                    wait=self.wait,
                    on_wait=watcher.waiting,
                    on_noise=watcher.noisy,
                    retry_failed=self.retry_failed,
                    own=own,
                    jobs=jobs,
                    engine=engine,
                )
                try:
                    with opened as session:
                        return watcher.follow(work(session))
                except MachineLeft as left:
                    watcher.left(left)


def writing_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of all that make and measure, put together as its `writing`."""

    @click.option(
        "--retry-failed",
        is_flag=True,
        help="Try what failed before once more: builds; with run, starts too.",
    )
    @click.option("--no-wait", is_flag=True, help="Fail at once when another perftrail holds the results.")
    @sandbox_option
    @store_option
    @functools.wraps(function)
    def command(
        *arguments: object,
        retry_failed: bool,
        no_wait: bool,
        sandbox: bool | None,
        store: str | None,
        **others: object,
    ) -> None:
        function(
            *arguments,
            writing=Writing(store=store, wait=not no_wait, retry_failed=retry_failed, sandbox=sandbox),
            **others,
        )

    return command
