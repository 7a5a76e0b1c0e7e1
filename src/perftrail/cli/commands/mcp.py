"""`perftrail mcp`: studies and results for AI agents."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from perftrail.cli.help import Command
from perftrail.cli.options import store_option
from perftrail.errors import UsageError


@click.command("mcp", cls=Command)
@click.argument("root", required=False, default=".", type=click.Path())
@click.option(
    "--allow-measuring",
    is_flag=True,
    help="Also offer tools that build and measure: they run the commands of the studies.",
)
@store_option
def command(root: str, allow_measuring: bool, store: str | None) -> None:
    """Serve studies to AI agents, over the Model Context Protocol on standard input and output.

    Your agent's program starts this command. Its tools read the studies below ROOT, by default the current directory,
    and no other. They return stored results, with the types of --json, and build and measure nothing unless you allow
    it.
    """
    if not Path(root).is_dir():
        raise UsageError(f"{root}: no such directory; name a directory with studies")
    try:
        import anyio

        from perftrail.cli.agent_server import AgentServer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("perftrail", ""):
            raise
        raise UsageError(f"mcp: {error.name} is not installed; pip install 'perftrail[mcp]'") from error
    with suppress(KeyboardInterrupt):
        anyio.run(AgentServer(Path(root), store=store, measuring=allow_measuring).serve)
