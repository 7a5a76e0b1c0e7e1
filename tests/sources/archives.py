"""Archives for tests, made in memory, valid and hostile."""

from __future__ import annotations

import io
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def tar_of(
    files: Mapping[str, str],
    *,
    before: Sequence[tarfile.TarInfo] = (),
    extra: Sequence[tarfile.TarInfo] = (),
    compression: str = "gz",
    mode: int = 0o644,
) -> bytes:
    """Make a tar archive of files, their contents as date, and of additional entries."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=f"w:{compression}") as archive:  # type: ignore[call-overload] # any mode
        for entry in before:
            archive.addfile(entry)
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), mode
            archive.addfile(entry, io.BytesIO(text.encode()))
        for entry in extra:
            archive.addfile(entry)
    return held.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """Make an entry of a tar archive that is no plain file."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def zip_of(files: Mapping[str, str], *, modes: Mapping[str, int] | None = None) -> bytes:
    """Make a zip archive of files; a mode includes the type, as on Unix."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (modes or {}).get(name, 0o100644) << 16
            archive.writestr(entry, text)
    return held.getvalue()


@contextmanager
def serving(files: Mapping[str, bytes], requests: list[str]) -> Iterator[str]:
    """Serve files on a free port of loopback for as long as the context lasts; each request is recorded."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            body = files.get(self.path.removeprefix("/"))
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: a test's output is for failures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
