"""Machines without access to the command's directory: missing files are sent to them, and results back, encrypted."""

from __future__ import annotations

from pathlib import Path

import dask
import pytest
from distributed import Security

from benchmarks.cluster.machines import machines
from perftrail.cluster.dask import connected
from perftrail.errors import ClusterError
from tests.cluster.test_machines import kept, run
from tests.e2e.printing import program
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("cluster")

CERTIFICATE = {
    "tls_ca_file": "ca-file",
    "tls_client_cert": "client.cert",
    "tls_client_key": "client.key",
    "tls_worker_cert": "worker.cert",
    "tls_worker_key": "worker.key",
}

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = ["sh ./build.sh", "cp {{study}}/greeting greeting"]
outputs = ["program", "greeting"]

[benchmark.work]
build = ["cp {{build}}/greeting {{out}}/greeting"]
command = "cat {{out}}/greeting {{study}}/greeting && exec {{build}}/program"
shell = true
metrics = {{ cost = {{ pattern = 'cost ([-0-9.]+)' }}, said = {{ pattern = 'hello ([0-9]+)' }} }}

[measure]
warmups = 0
invocations = 2
"""


def test_builds_and_files_of_a_study_are_sent_and_logs_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(3):
        repository.commit(program(100 + number, name=f"revision {number}"))
    file, here = tmp_path / "study" / "perftrail.toml", tmp_path / "here"
    file.parent.mkdir()
    file.write_text(STUDY.format(location=repository.path))
    (file.parent / "greeting").write_text("hello 7\n")
    security = Security.temporary()
    certificate = {name: written(tmp_path, security, name) for name in CERTIFICATE}
    for name, path in certificate.items():
        monkeypatch.setenv(variable(name), path)
    with machines(tmp_path / "machines", ("one", "two"), "--apart", security=security) as two:
        with dask.config.set(
            {f"distributed.comm.tls.{CERTIFICATE[name]}": path for name, path in certificate.items()}
        ):
            local = run(file, None, store=here)
            away = run(file, two.address.replace("tls://", "dask+tls://"))
        with (
            pytest.raises(ClusterError, match=r"the encrypted connection failed.*tls\.ca-file"),
            connected(two.address),
        ):
            pass
    assert (away.measured, away.cells, dict(away.failures)) == (3, 3, dict(local.failures)) == (3, 3, {})
    assert kept(file)["made"] == kept(file, store=here)["made"]
    results = file.parent / ".perftrail"
    assert len(list(results.glob("builds/*/tree/program"))) == 3
    assert len(list((tmp_path / "machines" / "one").glob("studies/*/builds/*/tree/program"))) == 3
    assert len(list(results.glob("logs/runs/*/*.out"))) == 6
    assert "hello 7" in next(results.glob("logs/runs/*/*.out")).read_text()


def written(directory: Path, security: Security, name: str) -> str:
    path = directory / f"{name}.pem"
    path.write_text(getattr(security, name))
    return str(path)


def variable(name: str) -> str:
    """Dask's own variable for a part of a certificate, which it reads when it starts."""
    return f"DASK_DISTRIBUTED__COMM__TLS__{CERTIFICATE[name]}".upper().replace("-", "_").replace(".", "__")
