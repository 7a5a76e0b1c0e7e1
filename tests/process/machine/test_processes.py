"""The busiest processes of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.process.machine.load import Watch, busiest, read_process_table
from tests.process.machine.cpu_load import hog
from tests.process.machine.fake_root import write_files

NOBODY = -1


def stat(pid: int, name: str, parent: int, user: int, system: int) -> dict[str, str]:
    return {
        f"proc/{pid}/stat": f"{pid} ({name}) R {parent} 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 9\n"
    }


def test_the_busiest_come_first_without_those_of_perftrail(tmp_path: Path) -> None:
    files = stat(10, "us", 1, 0, 0) | stat(11, "our child", 10, 0, 0) | stat(12, "our grandchild", 11, 0, 0)
    before = read_process_table(
        write_files(tmp_path, files | stat(20, "a ) b (", 1, 100, 0) | stat(21, "little", 1, 5, 0))
    )
    files = (
        stat(10, "us", 1, 50, 0) | stat(11, "our child", 10, 70, 0) | stat(12, "our grandchild", 11, 90, 0)
    )
    later = stat(20, "a ) b (", 1, 130, 10) | stat(21, "little", 1, 10, 0) | stat(22, "new", 1, 20, 0)
    after = read_process_table(write_files(tmp_path, files | later | stat(23, "idle", 1, 0, 0)))
    found = busiest(before, after, seconds=0.5, own=10)
    assert [(each.pid, each.name) for each in found] == [(20, "a ) b ("), (22, "new"), (21, "little")]
    assert [each.cpus for each in found] == pytest.approx([0.8, 0.4, 0.1])


def test_a_process_that_ends_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"proc/30/status": "Name: gone\n", "proc/31/stat": "31 (cut"} | stat(32, "there", 1, 0, 0)
    )
    assert list(read_process_table(tmp_path)) == [32]


def test_the_names_of_real_processes_are_found() -> None:
    with hog() as hogging, Watch() as looking:
        # It is a child of this process; for another process it is foreign.
        before = read_process_table(Path("/"))
        looking.busiest(seconds=0.3)
        found = busiest(before, read_process_table(Path("/")), seconds=0.3, own=NOBODY, limit=1000)
    assert hogging.pid in {each.pid for each in found}
