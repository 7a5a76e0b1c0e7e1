"""A package index on loopback, filled with packages that the test makes by hand."""

from __future__ import annotations

import hashlib
import html
import io
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BACKEND = '''\
"""A build backend in one file, so that building from source needs nothing else."""
import zipfile

FILES = {files!r}
BROKEN = {broken!r}


{code}

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if BROKEN:
        raise RuntimeError(BROKEN)
    name = "{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(f"{{wheel_directory}}/{{name}}", "w") as wheel:
        for path, text in FILES.items():
            wheel.writestr(path, text)
    return name
'''

BUILD_SYSTEM = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@dataclass
class PackageIndex:
    """What an index offers: files by project, each with the attributes of its link."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def add(
        self,
        project: str,
        version: str,
        text: str,
        *,
        yanked: str | None = None,
        requires_python: str | None = None,
        tag: str = "py3-none-any",
        other_files: Mapping[str, str] | None = None,
    ) -> None:
        """Offer a wheel of one module and additional files."""
        name = f"{project}-{version}-{tag}.whl"
        contents = io.BytesIO()
        with zipfile.ZipFile(contents, "w") as wheel:
            for path, inside in {**_wheel_files(project, version, text, tag), **(other_files or {})}.items():
                wheel.writestr(path, inside)
        self._offer(project, name, contents.getvalue(), yanked=yanked, requires_python=requires_python)

    def add_source(self, project: str, version: str, text: str, *, broken: str = "", code: str = "") -> None:
        """Offer a source distribution only, which pip has to build; `broken` is what its build raises.

        `code` runs when pip imports the build program.
        """
        files = _wheel_files(project, version, text, "py3-none-any")
        inside = {
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
            "pyproject.toml": BUILD_SYSTEM,
            "backend.py": BACKEND.format(
                files=files, broken=broken, code=code, name=project, version=version
            ),
        }
        contents = io.BytesIO()
        with tarfile.open(fileobj=contents, mode="w:gz") as archive:
            for path, content in inside.items():
                entry = tarfile.TarInfo(f"{project}-{version}/{path}")
                entry.size = len(content.encode())
                archive.addfile(entry, io.BytesIO(content.encode()))
        self._offer(project, f"{project}-{version}.tar.gz", contents.getvalue())

    def _offer(self, project: str, name: str, content: bytes, **attributes: str | None) -> None:
        self.files[name] = content
        written = "".join(
            f' data-{attribute.replace("_", "-")}="{html.escape(value)}"'
            for attribute, value in attributes.items()
            if value is not None
        )
        digest = hashlib.sha256(content).hexdigest()
        link = f'<a href="/files/{name}#sha256={digest}"{written}>{name}</a>'
        self.links.setdefault(project.replace("_", "-"), []).append(link)


@contextmanager
def serving(index: PackageIndex) -> Iterator[PackageIndex]:
    """Serve an index on a free port of loopback for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.requests.append(self.path)
            kind, _, rest = self.path.strip("/").partition("/")
            content, body = "text/html", b""
            if kind == "files" and rest in index.files:
                content, body = "application/octet-stream", index.files[rest]
            elif kind == "simple" and rest in index.links:
                body = f"<!DOCTYPE html><html><body>{''.join(index.links[rest])}</body></html>".encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", content)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: a test's output is for failures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _wheel_files(project: str, version: str, text: str, tag: str) -> Mapping[str, str]:
    about = f"{project}-{version}.dist-info"
    files = {
        f"{project}.py": text,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"])
    return {**files, f"{about}/RECORD": record}
