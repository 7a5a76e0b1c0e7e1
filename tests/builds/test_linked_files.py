"""Whether a build contains files that a linker made."""

import subprocess
from pathlib import Path

from perftrail.builds.artefact import has_linked_files


def test_a_program_and_a_shared_object_are_linked_but_scripts_and_objects_are_not(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("print(1)\n")
    (tmp_path / "tiny.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-c", "-o", "tiny.o", "tiny.c"], cwd=tmp_path, check=True)
    assert not has_linked_files(tmp_path, None)
    subprocess.run(["cc", "-o", "tiny", "tiny.o"], cwd=tmp_path, check=True)
    assert has_linked_files(tmp_path, None)
    assert has_linked_files(tmp_path, ["tin?"])
    assert not has_linked_files(tmp_path, ["bench.py", "tiny.o"])


def test_a_link_to_an_installed_interpreter_is_not_an_output_of_a_linker(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to("/bin/sh")
    assert not has_linked_files(tmp_path, None)


def test_a_shared_object_is_linked(tmp_path: Path) -> None:
    (tmp_path / "work.c").write_text("int work(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libwork.so", "work.c"], cwd=tmp_path, check=True)
    assert has_linked_files(tmp_path, ["*.so"])
