"""`perftrail serve`: studies and running measurements in a browser."""

from __future__ import annotations

import ipaddress
from contextlib import suppress

import click

from perftrail.cli.help import Command
from perftrail.cli.options import store_option
from perftrail.errors import UsageError
from perftrail.model.wording import quoted

DEFAULT_PORT = 8457


@click.command("serve", cls=Command)
@click.argument("study", required=False, type=click.Path())
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. Access from other machines needs tokens or a proxy.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    metavar="N",
    help="Port to listen on. 0: any free port.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="Require a token from this file. Each line is “read TOKEN” or “write TOKEN”; a line with only TOKEN means "
    "write. [default: the token in PERFTRAIL_TOKEN, if set]",
)
@click.option(
    "--trust-header",
    metavar="NAME",
    default="",
    help="Require a user name in this header, which your proxy sets. The proxy must remove it from clients' requests.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Address of your proxy, whose X-Forwarded-For names the client. May be repeated. "
    "[default with --trust-header: this machine]",
)
@click.option(
    "--writer", "writers", multiple=True, metavar="USER", help="User who may write notes. May be repeated."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another host name of this server. May be repeated.",
)
@store_option
def command(
    study: str | None,
    host: str,
    port: int,
    token_file: str | None,
    trust_header: str,
    proxies: tuple[str, ...],
    writers: tuple[str, ...],
    hosts: tuple[str, ...],
    store: str | None,
) -> None:
    """Show studies in a browser: answers, running measurements, histories and every sample.

    STUDY is a study, or a directory with studies. perftrail builds and measures nothing. Only users of this machine
    have access; --host with another address needs tokens or a proxy. /api/openapi.json describes the API.
    """
    _refuse_without_libraries()
    from perftrail.web.access import LOOPBACK, Access, read_tokens
    from perftrail.web.app import bind, make_app, make_server, own_names
    from perftrail.web.guard import host_name
    from perftrail.web.studies import find_studies, served_studies

    if writers and not trust_header:
        raise UsageError("--writer needs --trust-header NAME; name the header, or omit the option")
    access = Access(
        tokens=read_tokens(token_file),
        header=trust_header,
        proxies=frozenset(map(_address, proxies)) or (LOOPBACK if trust_header else frozenset()),
        writers=frozenset(writers),
        hosts=own_names(host) | frozenset(map(host_name, hosts)),
    )
    files = find_studies(study)
    if store is not None and len(files) > 1:
        raise UsageError(f"--store {store}: needs a single study; {study} has {len(files)} studies")
    with bind(host, port, access) as bound, served_studies(files, store=store) as studies:
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"http://{shown}:{bound.getsockname()[1]}/ shows {', '.join(studies)}; Ctrl-C stops it")
        with suppress(KeyboardInterrupt):
            make_server(make_app(studies, access)).run(sockets=[bound])


def _address(proxy: str) -> str:
    """Return an address in the notation of connections. Raises `UsageError` for an invalid one."""
    try:
        return str(ipaddress.ip_address(proxy))
    except ValueError:
        raise UsageError(
            f"--proxy {quoted(proxy)} is not an IP address; write for example 10.0.0.7"
        ) from None


def _refuse_without_libraries() -> None:
    """Raise `UsageError` with the remedy if a library of the dashboard is missing."""
    try:
        import starlette  # noqa: F401 - only to check that it is installed
        import uvicorn  # noqa: F401 - as above
        import vl_convert  # noqa: F401 - as above
    except ModuleNotFoundError as error:
        raise UsageError(f"serve: {error.name} is not installed; pip install 'perftrail[web]'") from error
