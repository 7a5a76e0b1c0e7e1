"""The studies of the dashboard's tests, made once, and a client without a network."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from perftrail.web.access import Access, Tokens
from perftrail.web.app import make_app
from perftrail.web.guard import Guard
from perftrail.web.studies import find_studies, served_studies
from tests.web.studies import Hostile, make_studies

WRITE, READ = "w" * 24, "r" * 24
HERE = "http://127.0.0.1"
PATIENCE_SECONDS = 60.0


class Client(TestClient):
    """A client that waits for pages which reload themselves."""

    @property
    def guard(self) -> Guard:
        """The access control of the pages."""
        assert isinstance(self.app, Guard)
        return self.app

    def page(self, path: str, status: int = 200) -> httpx.Response:
        """Get a page, after its study was read."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            response = self.get(path)
            waits = "refresh" in response.headers or (
                response.status_code == 503 and "retry-after" in response.headers
            )
            if not waits or time.monotonic() > until:
                assert response.status_code == status, response.text
                return response
            time.sleep(0.05)


@contextmanager
def served(
    root: Path, access: Access | None = None, *, address: str = "127.0.0.1", base: str = HERE
) -> Iterator[Client]:
    """Serve the studies below a directory to a client with an address."""
    with served_studies(find_studies(str(root)), store=None) as found:
        app = make_app(found, access or Access())
        with Client(app, base_url=base, client=(address, 5000), follow_redirects=False) as client:
            yield client


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    return make_studies(tmp_path_factory.mktemp("studies"))


@pytest.fixture(scope="module")
def client(hostile: Hostile) -> Iterator[Client]:
    """A client of all studies, which have been read."""
    with served(hostile.root) as client:
        for name in ("alpha", "beta"):
            client.page(f"/s/{name}")
        yield client


@pytest.fixture(scope="module")
def guarded(hostile: Hostile) -> Iterator[Client]:
    """The same with tokens, before a login."""
    with served(hostile.root, Access(tokens=Tokens({WRITE: "write", READ: "read"}))) as client:
        yield client
