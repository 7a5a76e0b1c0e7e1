"""The study of light weight threads in OCaml runs from its file alone, with the compilers of Debian and small sizes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perftrail import studyfile
from tests.e2e.printing import perftrail

pytestmark = pytest.mark.slow("builds")

STUDY = Path(__file__).parents[2] / "studies" / "ocaml-light-threads"
HERE = ("tramp", "promise", "callcc", "sys")
"""Programs that need only a compiler."""

LIBRARIES = {"lwt": "lwt.unix", "equeue": "equeue"}
"""Programs that need a library, with its name."""


def has(*command: str) -> bool:
    """Whether a command exists and succeeds."""
    if shutil.which(command[0]) is None:
        return False
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


LACKING = (
    "no OCaml with ocamlfind here: apt-get install ocaml-nox ocaml-native-compilers ocaml-findlib"
    if not has("ocamlfind", "ocamlopt", "-version")
    else "no npm here that reaches a registry, where the study's other compilers are"
    if not has("npm", "view", "ocaml@5.3.0", "version")
    else ""
)


def test_the_whole_file_is_a_study() -> None:
    study = studyfile.load(str(STUDY))
    assert {"vm", "effects", *HERE, *LIBRARIES} < set(study.variants)
    assert list(study.benchmarks) == ["kpn", "sieve", "sorter", "setup"]
    assert max(study.benchmarks["sorter"].parameters["length"]) == 3000
    assert study.claims


@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_every_implementation_gives_the_same_answers(tmp_path: Path) -> None:
    """The two compilers that are built from source are left out: they take minutes."""
    found = [*HERE, *(name for name, library in LIBRARIES.items() if has("ocamlfind", "query", library))]
    only = [f"variant={','.join(found)}", "numbers=1000", "below=1000", "length=20"]
    chosen = [part for rule in only for part in ("--only", rule)]
    ran = perftrail("run", STUDY, "--json", "--store", tmp_path, *chosen)
    data: dict[str, Any] = json.loads(ran.stdout)
    assert data["disagreements"] == data["failures"] == []
    assert data["measured"] == data["points"] == 8 * len(found) - 4  # callcc has no native code
    shown = perftrail("show", STUDY, "--claims", "--json", "--store", tmp_path)
    judged = {each["name"]: each for each in json.loads(shown.stdout)}
    assert judged["sieve-dlcont"]["verdict"] == "cannot be measured"
    assert judged["sieve-sys-native"]["ratio"]["value"] > 2.0
