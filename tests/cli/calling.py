"""Runs the command line in the process of the tests: for commands that measure nothing, of which most tests read the
output.

`tests.starting` starts it in a real process.
"""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from perftrail.cli.main import main
from perftrail.present.output_settings import settings


def called(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, with files for its output and no input; return what it printed."""
    words = [str(each) for each in arguments]
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before = (settings.color, settings.quiet, settings.verbose)
    code: object = None
    with ExitStack() as stack:
        stack.enter_context(chdir(cwd or Path.cwd()))
        stack.enter_context(redirect_stdout(stdout))
        stack.enter_context(redirect_stderr(stderr))
        stack.enter_context(patch("sys.stdin", stack.enter_context(Path(os.devnull).open())))
        try:
            main(words)
        except SystemExit as ended:
            code = ended.code
        finally:
            settings.color, settings.quiet, settings.verbose = before
    assert isinstance(code, int), code
    printed = [each.buffer.getvalue().decode() for each in (stdout, stderr)]
    return subprocess.CompletedProcess(words, code, stdout=printed[0], stderr=printed[1])
