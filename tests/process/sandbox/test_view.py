"""Files, processes and services that programs in a real sandbox can see and change."""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from perftrail.errors import SandboxError
from perftrail.measure.sandboxes import Sandboxes
from perftrail.model.process import Exited
from perftrail.model.sandbox import Sandbox
from perftrail.process.launcher import Launcher
from tests.process.sandbox.sandboxes import Inside, needs_sandbox, opened

pytestmark = needs_sandbox


def test_the_home_directory_is_there_and_empty(home: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "place") as inside:
        ran = inside.run(f"ls -A {home}; cat {home}/secret; echo mine > {home}/note && cat {home}/note")
    assert ran.ended == Exited(code=0)
    assert "the secret" not in inside.output
    assert inside.output.splitlines()[-1] == "mine"
    assert [path.name for path in home.iterdir()] == ["secret"]


def test_directories_of_the_home_that_the_study_names_are_read_only(home: Path, tmp_path: Path) -> None:
    (home / "tools").mkdir()
    (home / "tools" / "one").write_text("a tool\n")
    sandbox = Sandbox(readable=("~/tools",), why="the tool")
    with opened(tmp_path / "place", sandbox) as inside:
        inside.run(f"cat {home}/tools/one {home}/secret; echo x > {home}/tools/two")
    assert inside.output.startswith("a tool\n")
    assert "the secret" not in inside.output
    assert not (home / "tools" / "two").exists()


def test_the_whole_home_cannot_be_made_readable(home: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="contains the whole home directory"):
        opened(tmp_path / "place", Sandbox(readable=(str(home.parent),), why="all")).__enter__()


def test_a_study_in_the_home_directory_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "study"))
    (tmp_path / "study" / ".keep").touch()
    from perftrail.process.sandbox.view import refuse_whole_home

    with pytest.raises(SandboxError, match="use a separate directory"):
        refuse_whole_home(str(tmp_path / "study"))


def test_only_the_own_directories_can_be_written_to(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    directories = [inside.own, Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]
    closed = [
        "/etc",
        "/usr/bin",
        "/var",
        "/dev",
        "/run",
        "/home",
        tmp_path / "outside",
        inside.study,
        inside.logs,
    ]
    closed += [inside.study / ".perftrail", inside.own.parent, "/sys/fs/cgroup", "/proc/sys/kernel"]
    for directory in directories:
        assert inside.run(f"echo x > {directory}/pwned").ended == Exited(code=0), (directory, inside.output)
    for each in closed:
        assert inside.run(f"echo x > {each}/pwned").ended != Exited(code=0), each
    assert not Path("/tmp/pwned").exists()
    assert not Path("/dev/shm/pwned").exists()


def test_kernel_settings_cannot_be_changed(inside: Inside) -> None:
    inside.run(
        "for f in $(find /proc/sys /sys -type f -writable 2>/dev/null | head -5); do echo open $f; done"
    )
    assert "open" not in inside.output
    before = Path("/proc/sys/vm/swappiness").read_text()
    assert inside.run("echo 11 > /proc/sys/vm/swappiness").ended != Exited(code=0)
    assert Path("/proc/sys/vm/swappiness").read_text() == before


def test_passwords_of_the_machine_cannot_be_read(inside: Inside) -> None:
    assert inside.run("cat /etc/shadow").ended != Exited(code=0)


def test_results_and_processes_outside_are_not_visible(inside: Inside) -> None:
    inside.run(f"ls -A {inside.study}/.perftrail; ls -d /proc/[0-9]* | wc -l; ls -A /run")
    names, count = inside.output.split()[:-1], int(inside.output.split()[-1])
    assert set(names) == {"builds", "sandboxes", "sources"}
    assert count < 10


def test_its_launcher_hides_its_open_files(inside: Inside) -> None:
    script = "for p in 1 $PPID; do for n in $(seq 0 40); do ls /proc/$p/fd/$n/ && echo got in; done; "
    inside.run(
        script + "cat /proc/$p/environ /proc/$p/mem && echo got in; ls /proc/$p/root/ && echo got in; done"
    )
    assert "Permission denied" in inside.output
    assert "got in" not in inside.output


def test_a_program_inherits_nothing_that_leads_outside(inside: Inside) -> None:
    inside.run("ls -l /proc/self/fd | grep -c -- '->'")
    assert int(inside.output) == 4


def test_files_of_one_start_are_not_visible_to_another(inside: Inside) -> None:
    inside.run(
        "for d in /tmp $HOME /dev/shm; do mkdir $d/d; echo x > $d/d/f; chmod 000 $d/d; ln -s /etc $d/l; done"
    )
    inside.run("ls -A /tmp $HOME /dev/shm | grep -v : | grep -v '^pytest' | grep .")
    assert {"d", "f", "l"} & set(inside.output.split()) == set()
    assert Path("/etc/passwd").exists()


def test_another_program_can_be_started_with_the_same_view(tmp_path: Path) -> None:
    study = tmp_path / "study"
    own = study / ".perftrail" / "builds" / "own"
    own.mkdir(parents=True)
    with Launcher() as outside:
        sandboxes = Sandboxes(
            Sandbox(), study_directory=str(study), results=study / ".perftrail", outside=outside.start()
        )
        with sandboxes.prefix("build", [str(own)]) as words:
            script = f"echo x > {own}/made; echo x > {study}/made"
            done = subprocess.run([*words, "/bin/sh", "-c", script], check=False, capture_output=True)
    assert done.returncode != 0
    assert (own / "made").exists()
    assert not (study / "made").exists()


def test_a_moved_mount_point_is_mounted_again(inside: Inside) -> None:
    if not inside.study.is_relative_to("/tmp"):
        pytest.skip("the tests' directories are not below /tmp")
    top = inside.study.relative_to("/tmp").parts[0]
    assert inside.run(f"mv /tmp/{top} /tmp/moved").ended == Exited(code=0)
    assert inside.run(f"cat {inside.study}/perftrail.toml").ended == Exited(code=0), inside.output
    assert inside.output == "# the study\n"


def test_proxies_with_their_passwords_stay_outside_where_there_is_no_network(inside: Inside) -> None:
    inside.run(
        "echo $https_proxy", environment={"https_proxy": "http://me:word@proxy.invalid", "PATH": "/bin"}
    )
    assert inside.output == "\n"


def test_a_build_takes_from_the_compiler_cache_and_puts_nothing_in(inside: Inside) -> None:
    cache = inside.own.parent / "ccache"
    cache.mkdir()
    environment = {"CCACHE_DIR": str(cache), "PATH": "/usr/lib/ccache:/usr/bin:/bin"}
    ran = inside.run("echo 'int x;' > a.c && cc -c a.c && echo x > $CCACHE_DIR/x", environment=environment)
    assert ran.ended != Exited(code=0)
    assert (inside.own / "a.o").exists()
    assert not any(cache.iterdir())


CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('connected')"


@pytest.mark.skipif(
    not os.access("/var/lib", os.W_OK), reason="only root can make a socket that is not hidden anyway"
)
def test_services_of_the_machine_are_not_reached_through_their_sockets(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib") as directory, socket.socket(socket.AF_UNIX) as service:
        service.bind(f"{directory}/service")
        service.listen()
        for sandbox, reached in ((Sandbox(), False), (Sandbox(network="build", why="a test"), True)):
            with opened(tmp_path / str(reached), sandbox) as inside:
                inside.run(f'exec python3 -c "{CONNECT}" {directory}/service')
            assert ("connected" in inside.output) is reached, inside.output


def test_services_in_the_studys_directory_are_not_reached_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study").mkdir()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study" / "service"
    with socket.socket(socket.AF_UNIX) as service:
        service.bind("study/service")  # a short name: a socket's path has at most 108 bytes
        service.listen()
        with (
            mock.patch("perftrail.process.sandbox.view._sockets", return_value=[str(path)]),
            opened(tmp_path) as inside,
        ):
            script = f"import os, sys; os.chdir(sys.argv[1]); sys.argv[1] = 'service'; {CONNECT}"
            inside.run(f'exec python3 -c "{script}" {path.parent}')
        assert "connected" not in inside.output
        assert path.is_socket()


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the numbers of the system calls are those of x86-64"
)
def test_keys_of_the_session_stay_outside(tmp_path: Path) -> None:
    add_key, keyctl, session, join, search = 248, 250, -3, 1, 10
    call = ctypes.CDLL(None).syscall
    if call(keyctl, join, None) < 0:
        pytest.skip("this machine has no keyrings")
    key = call(add_key, b"user", b"perftrail-test", b"secret", 6, session)
    assert key > 0
    script = f"print(ctypes.CDLL(None).syscall({keyctl}, {search}, {session}, b'user', b'perftrail-test', 0))"
    with opened(tmp_path) as inside:
        inside.run(f'exec python3 -c "import ctypes; {script}"')
        assert inside.output == "-1\n"
    assert call(keyctl, search, session, b"user", b"perftrail-test", 0) == key


def test_a_path_socket_in_a_writable_directory_is_the_programs_own(inside: Inside) -> None:
    inside.run(
        "exec python3 -c \"import socket; s = socket.socket(1); s.bind('s'); s.listen(); "
        "c = socket.socket(1); c.connect('s'); print('connected')\""
    )
    assert inside.output == "connected\n"
