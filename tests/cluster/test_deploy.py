"""Files of `deploy/`: valid Kubernetes manifests, and pods that are suitable for measurements."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from benchmarks.cluster.machines import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
VERSION = "1.29"


def documents() -> list[dict[str, Any]]:
    return [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]


@pytest.mark.parametrize("document", documents(), ids=lambda each: f"{each['kind']}")
def test_manifests_satisfy_the_schema_of_kubernetes(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, VERSION, strict=True)


def test_a_mistake_in_a_manifest_is_seen() -> None:
    (worker,) = (each for each in documents() if each["kind"] == "DaemonSet")
    worker["spec"]["template"]["spec"]["contaners"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(worker, VERSION, strict=True)


def test_workers_have_whole_processors_for_themselves() -> None:
    (worker,) = (each for each in documents() if each["kind"] == "DaemonSet")
    for container in worker["spec"]["template"]["spec"]["containers"]:
        resources = container["resources"]
        assert resources["requests"] == resources["limits"]
        assert resources["limits"]["cpu"].isdigit()


def test_scheduler_and_workers_name_each_other_and_the_certificates_alike() -> None:
    by_kind = {each["kind"]: each for each in documents()}
    service = by_kind["Service"]
    labels = by_kind["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    command = by_kind["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]["command"]
    (port,) = service["spec"]["ports"]
    assert f"tls://{service['metadata']['name']}:{port['port']}" in command
    for kind in ("Deployment", "DaemonSet"):
        pod = by_kind[kind]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        mounted = {each["name"] for each in container["volumeMounts"]}
        assert mounted == {each["name"] for each in pod["volumes"]}
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert variables["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "true"


def test_a_worker_makes_its_own_directory_as_a_volume_belongs_to_root() -> None:
    (worker,) = (each for each in documents() if each["kind"] == "DaemonSet")
    (container,) = worker["spec"]["template"]["spec"]["containers"]
    command = container["command"]
    directory = Path(command[command.index("--directory") + 1])
    volumes = {Path(each["mountPath"]) for each in container["volumeMounts"]}
    assert directory not in volumes
    assert volumes & set(directory.parents)


@pytest.mark.parametrize("script", sorted(DEPLOY.glob("slurm/*.sh")), ids=lambda path: path.name)
def test_scripts_are_valid_shell_and_report_missing_arguments(script: Path) -> None:
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "give the scheduler address" in done.stderr
