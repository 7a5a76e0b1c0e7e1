"""The same pages over a store in a server's database, and a note that is stored there."""

from __future__ import annotations

import pytest

from perftrail.store.copying import copy_store
from perftrail.web.access import Access
from perftrail.web.app import make_app
from perftrail.web.studies import served_studies
from tests.web.conftest import HERE, Client
from tests.web.studies import Hostile


@pytest.mark.long
def test_a_study_whose_results_a_server_keeps_is_shown_alike(hostile: Hostile, postgresql: str) -> None:
    study = hostile.root / "alpha"
    copy_store(str(study / ".perftrail" / "results.db"), postgresql)
    with served_studies((str(study / "perftrail.toml"),), store=postgresql) as found:
        app = make_app(found, Access())
        with Client(app, base_url=HERE, client=("127.0.0.1", 5000), follow_redirects=False) as client:
            for path in (
                "",
                "/history",
                "/compare?a=%231&b=%2340",
                "/searches",
                f"/samples/{hostile.runnable}",
            ):
                assert client.page(f"/s/alpha{path}").status_code == 200
            first, *_ = client.page("/api/studies/alpha/regressions").json()
            reported = client.post(
                f"/api/studies/alpha/regressions/{first['id']}/notes", json={"status": "fixed"}
            )
            assert reported.status_code == 201
            assert client.get("/api/studies/alpha/regressions").json()[0]["status"] == "fixed"
