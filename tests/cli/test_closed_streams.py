"""A caller may have closed standard streams."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
from perftrail.cli.start import open_closed_streams
open_closed_streams()
print("out", sys.stdout.isatty())
print("err", file=sys.stderr)
with open(os.devnull) as file:
    sys.exit(file.fileno() <= 2)
"""


@pytest.mark.parametrize(
    ("closed", "printed"), [(">&-", "err"), ("2>&-", "out False"), ("<&- >&- 2>&-", ""), ("<&-", "out False")]
)
def test_closed_streams_print_nothing_and_no_file_takes_their_place(closed: str, printed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    assert printed in (done.stdout + done.stderr).splitlines() or not (printed or done.stdout + done.stderr)
