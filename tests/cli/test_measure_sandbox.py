"""`perftrail measure --sandbox` with real sandboxes: permissions of a command, and the report of refusals."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.calling import called
from tests.cli.test_measure import measure
from tests.process.sandbox.sandboxes import needs_sandbox

ONCE = ("-r", "1", "-w", "0")

ATTEMPTS = """\
cat "$HOME/secret" 2>/dev/null && echo read the home
(echo x > here) 2>/dev/null && echo wrote where it was started
(echo x > /etc/perftrail-was-here) 2>/dev/null && echo wrote to the system
grep -qv '^ *lo:' /proc/net/dev && tail -n +3 /proc/net/dev | grep -v '^ *lo:' && echo has a network
cat data
echo x > "$TMPDIR/kept" && echo "has $TMPDIR"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "somebody"
    path.mkdir()
    (path / "secret").write_text("the secret\n")
    return path


@needs_sandbox
def test_a_command_in_a_sandbox_reads_its_directory_and_writes_only_to_its_scratch(
    tmp_path: Path, home: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "data").write_text("the data\n")
    (work / "attempts.sh").write_text(ATTEMPTS)
    done = measure("--sandbox", *ONCE, "--show-output", "sh ./attempts.sh", cwd=work, env={"HOME": str(home)})
    assert done.returncode == 0, done.stderr
    output = done.stderr.splitlines()
    assert output[0] == "the data"
    assert output[1].startswith("has /")
    assert len(output) == 2
    assert not Path(output[1].removeprefix("has ")).exists()
    assert sorted(path.name for path in work.iterdir()) == ["attempts.sh", "data"]


@needs_sandbox
def test_a_command_sees_files_prepared_in_the_scratch_directory(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("the input\n")
    done = measure(
        "--sandbox",
        *("-r", "2", "-w", "0", "--json"),
        *("--setup", 'echo once > "$TMPDIR/once"; echo gone > /tmp/gone'),
        *("--prepare", 'cp in "$TMPDIR/copy"'),
        *("--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--shell"),
        'cat "$TMPDIR/once" "$TMPDIR/copy" - && rm "$TMPDIR/copy" && ls /tmp',
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text().splitlines()[:3] == ["once", "the input", "the input"]
    assert "gone" not in (tmp_path / "out").read_text()
    assert '"sandbox": true' in done.stdout


@needs_sandbox
def test_refusals_of_the_sandbox_are_reported_with_their_remedy(tmp_path: Path, home: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    refused = measure("--sandbox", *ONCE, "--output", "said", "sh -c 'echo x > here'", cwd=work)
    assert refused.returncode == 1
    assert "the sandbox refused writing" in refused.stderr
    program = Path(shutil.copy("/bin/echo", home / "mine"))
    hidden = measure("--sandbox", *ONCE, "--", str(program), "x", cwd=work, env={"HOME": str(home)})
    assert hidden.returncode == 1
    assert "--readable PATH" in hidden.stderr
    shown = measure(
        *("--sandbox", "--readable", "~/mine", *ONCE, "--show-output", "--", str(program), "it runs"),
        cwd=work,
        env={"HOME": str(home)},
    )
    assert (shown.returncode, shown.stderr) == (0, "it runs\n")


def test_invalid_readable_paths_are_reported(tmp_path: Path) -> None:
    for arguments, text in (
        (("--readable", "/tmp"), "--sandbox"),
        (("--sandbox", "--readable", "tmp"), "begins with / or ~/"),
        (("--sandbox", "--readable", str(tmp_path / "absent")), "must be an existing path"),
    ):
        done = called("measure", *arguments, "true")
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr
