"""A full or broken disk ends every command with a sentence, not with a traceback."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

import pytest

from perftrail.cli import main as command_line
from perftrail.cli.main import cli, main
from perftrail.errors import MACHINE_ERRORS


@pytest.mark.parametrize("number", MACHINE_ERRORS)
def test_an_error_of_the_machine_names_the_file_and_the_remedy(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number), "/results/\x1b[31mresults.db")

    monkeypatch.setattr(cli, "main", fail)
    with pytest.raises(SystemExit) as ended:
        main(["run"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        f"/results/\\x1b[31mresults.db: {os.strerror(number)}; {MACHINE_ERRORS[number]}, then repeat the command: "
        "everything that was stored is kept\n"
    )


def test_other_errors_of_the_system_are_defects_and_keep_their_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(command_line.cli, "main", fail)
    with pytest.raises(OSError, match="Bad file descriptor"):
        main(["run"])
