"""Completion in real shells, and where its script is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.calling import called
from tests.e2e.terminal import Terminal
from tests.needs import skip_for
from tests.starting import start

BIN = Path(sys.executable).parent

FILES = {
    "bash": ".local/share/bash-completion/completions/perftrail",
    "zsh": ".local/share/zsh/site-functions/_perftrail",
    "fish": ".config/fish/completions/perftrail.fish",
}


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "xterm"}


def installed(shell: str, home: Path) -> Path:
    done = start("completion", "--install", env={**environment(home), "SHELL": f"/bin/{shell}"})
    assert done.returncode == 0, done.stderr
    file = home / FILES[shell]
    assert done.stdout.splitlines()[0] == f"wrote {file}"
    assert file.read_text("utf-8") == called("completion", shell).stdout
    return file


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        skip_for(shell)


def test_bash_completes_commands_options_and_benchmarks(tmp_path: Path) -> None:
    script = installed("bash", tmp_path)
    (tmp_path / "perftrail.toml").write_text("[benchmark.parse]\n[benchmark.print]\n[benchmark.sort]\n")
    words = ["comp", "check --tr", "compare HEAD --bench p", "unknown --"]
    lines = [
        f"COMPREPLY=() COMP_WORDS=(perftrail {line}) COMP_CWORD={len(line.split())}; _perftrail_completion perftrail;"
        'echo "${COMPREPLY[@]}"'
        for line in words
    ]
    done = subprocess.run(
        ["bash", "-c", f". {script}; " + "; ".join(lines)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["compare completion", "--try", "parse print", "--version --help"]
    assert done.stderr == ""


def test_fish_completes_from_its_directory(tmp_path: Path) -> None:
    needs("fish")
    installed("fish", tmp_path)
    done = subprocess.run(
        ["fish", "-c", 'complete -C "perftrail comp"'],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["compare", "completion"]


def test_zsh_completes_with_the_printed_lines(tmp_path: Path) -> None:
    needs("zsh")
    script = installed("zsh", tmp_path)
    printed = start("completion", "zsh", "--install", env=environment(tmp_path)).stdout.splitlines()
    assert printed[2] == f"    fpath=({script.parent} $fpath)"
    (tmp_path / ".zshrc").write_text(
        "\n".join([*printed[2:], "PS1='ready> '"]).replace("&& compinit", "&& compinit -u")
    )
    with Terminal("-i", program=("zsh",), cwd=tmp_path, env=environment(tmp_path)) as zsh:
        zsh.read_until("ready> ")
        zsh.type("perftrail complet\t")
        zsh.read_until("perftrail completion")
        zsh.type("\x03\x04")


def test_names_of_commands_are_completed_without_importing_commands() -> None:
    code = (
        "import os, sys; from perftrail.cli.main import main\n"
        "os.environ.update(_PERFTRAIL_COMPLETE='bash_complete', COMP_WORDS='perftrail fi', COMP_CWORD='1')\n"
        "try: main([])\n"
        "except SystemExit: pass\n"
        "assert 'click.shell_completion' in sys.modules\n"
        "sys.exit(str([name for name in sys.modules if name.startswith('perftrail.cli.commands.')] or ''))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr.strip()) == ("plain,find\n", "")


def test_an_unknown_shell_is_refused(tmp_path: Path) -> None:
    done = start("completion", env={**environment(tmp_path), "SHELL": "/bin/dash"})
    assert done.returncode == 2
    assert "perftrail completion bash" in done.stderr
    assert called("completion", "dash").returncode == 2
