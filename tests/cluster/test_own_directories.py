"""Real machines without access to the command's directory: files are sent to them, and results back, encrypted."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dask
import pytest
from distributed import Security

from benchmarks.cluster.machines import Machines, machines
from perftrail.cluster.dask import connected
from perftrail.errors import ClusterError
from tests.cluster.test_machines import kept, run
from tests.cluster.test_relinking_on_workers import apart, relinking_study
from tests.e2e.printing import program
from tests.sources.repositories import Repository

pytestmark = [
    pytest.mark.slow("cluster"),
    pytest.mark.skipif(not hasattr(tarfile, "tar_filter"), reason="needs Python 3.11.4"),
]

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


@dataclass(frozen=True)
class Apart:
    """Two machines that share no directory with the command, and the files of its certificate by their names."""

    machines: Machines
    certificate: Mapping[str, str]

    @contextmanager
    def certified(self) -> Iterator[str]:
        """Return the engine's address; Dask has the certificate during the block."""
        named = {f"distributed.comm.tls.{CERTIFICATE[name]}": path for name, path in self.certificate.items()}
        with dask.config.set(named):
            yield self.machines.address.replace("tls://", "dask+tls://")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    directory = tmp_path_factory.mktemp("apart")
    security = Security.temporary()
    certificate = {name: written(directory, security, name) for name in CERTIFICATE}
    with pytest.MonkeyPatch.context() as patch:
        for name, path in certificate.items():
            patch.setenv(variable(name), path)
        with machines(directory / "machines", ("one", "two"), "--apart", security=security) as started:
            yield Apart(machines=started, certificate=certificate)


def test_builds_and_files_of_a_study_are_sent_and_logs_returned(tmp_path: Path, two: Apart) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(2):
        repository.commit(program(100 + number, name=f"revision {number}"))
    file, here = tmp_path / "study" / "perftrail.toml", tmp_path / "here"
    file.parent.mkdir()
    file.write_text(STUDY.format(location=repository.path))
    (file.parent / "greeting").write_text("hello 7\n")
    local = run(file, None, store=here)
    with two.certified() as engine:
        away = run(file, engine)
    assert (away.measured, away.cells, dict(away.failures)) == (2, 2, dict(local.failures)) == (2, 2, {})
    assert kept(file)["made"] == kept(file, store=here)["made"]
    results = file.parent / ".perftrail"
    assert len(list(results.glob("builds/*/tree/program"))) == 2
    home = Path(two.certificate["tls_ca_file"]).parent / "machines"
    assert len(list((home / "one").glob("studies/*/builds/*/tree/program"))) == 2
    assert len(list(results.glob("logs/runs/*/*.out"))) == 4
    assert "hello 7" in next(results.glob("logs/runs/*/*.out")).read_text()
    measuring = {name for name, samples in kept(file)["samples"].items() if samples}
    assert measuring == {"one"}, "samples are of the first machine by its name"


def test_layouts_made_by_machines_apart_run_on_them(tmp_path: Path, two: Apart) -> None:
    study = relinking_study(tmp_path)
    with two.certified() as engine:
        linked, first, second = apart(study, engine)
    assert first > 0 > second
    assert linked < 0


def test_a_connection_without_the_certificate_says_which_settings_to_make(two: Apart) -> None:
    with (
        pytest.raises(ClusterError, match=r"the encrypted connection failed.*tls\.ca-file"),
        connected(two.machines.address),
    ):
        pass


def written(directory: Path, security: Security, name: str) -> str:
    path = directory / f"{name}.pem"
    path.write_text(getattr(security, name))
    return str(path)


def variable(name: str) -> str:
    """Dask's own variable for a part of a certificate, which it reads when it starts."""
    return f"DASK_DISTRIBUTED__COMM__TLS__{CERTIFICATE[name]}".upper().replace("-", "_").replace(".", "__")
