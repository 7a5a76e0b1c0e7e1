"""What pages are drawn and look like with: files of the package, and Vega, at addresses that change as they do."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

from perftrail.report.page_images import bundle, bundle_name

if TYPE_CHECKING:
    from starlette.requests import Request

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}
VEGA = "vega.js"

KEPT = "public, max-age=31536000, immutable"
"""How browsers keep what another address would have if it were another."""


def address(name: str) -> str:
    """Give where a file is to be had: elsewhere when it is another, so that no browser shows a page with an old one."""
    return f"/static/{name}?{_stamp(name)}"


async def static(request: Request) -> Response:
    """Give such a file."""
    name = request.path_params["name"]
    if name not in (*_names(), VEGA):
        raise HTTPException(404, "there is no such file")
    packed = await asyncio.to_thread(_packed, name)
    headers = {
        "Cache-Control": KEPT if request.url.query == _stamp(name) else "no-cache",
        "Vary": "Accept-Encoding",
    }
    kind = KINDS[name.rpartition(".")[2]]
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(packed), media_type=kind, headers=headers)
    return Response(packed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})


@cache
def _names() -> frozenset[str]:
    return frozenset(each.name for each in (files("perftrail.web") / "static").iterdir())


@cache
def _packed(name: str) -> bytes:
    plain = bundle().encode() if name == VEGA else (files("perftrail.web") / "static" / name).read_bytes()
    return gzip.compress(plain, mtime=0)


@cache
def _stamp(name: str) -> str:
    told = bundle_name().encode() if name == VEGA else _packed(name)
    return hashlib.sha256(told).hexdigest()[:12]
