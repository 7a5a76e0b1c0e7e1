"""The environment of the tests, whatever that of their caller is."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import tempfile
import time
from pathlib import Path

DECLARED = {
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm-256color",
    "TZ": "UTC",
}
"""Variables that every test has. Tests of other terminals, languages and time zones set their own."""

REMOVED = ("CLICOLOR", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "NO_COLOR")
REMOVED_BEGINNINGS = ("GIT_", "XDG_CONFIG", "XDG_DATA", "XDG_STATE", "PYTHONWARN")
"""Variables that no test has, by name or beginning: a hook of git, for example, sets the repository of its children."""


def declare() -> None:
    """Set the environment of this process. Compilers' caches and toolchains stay those of the caller."""
    for name in list(os.environ):
        if name in REMOVED or name.startswith(REMOVED_BEGINNINGS):
            del os.environ[name]
    os.environ.update(DECLARED, XDG_STATE_HOME=_state())
    time.tzset()
    os.umask(0o022)
    if not _is_usable(os.environ.get("HOME", "")):
        os.environ["HOME"] = _home()


def _state() -> str:
    """Create the directory of the user's state, which exists until this process ends."""
    directory, process = tempfile.mkdtemp(prefix="perftrail-tests-state-"), os.getpid()

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


def _home() -> str:
    """Return the user's directory of the system's list, where toolchains are; a new one if there is none."""
    try:
        listed = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        listed = ""
    return listed if _is_usable(listed) else tempfile.mkdtemp(prefix="perftrail-home-")


def _is_usable(home: str) -> bool:
    return Path(home).is_absolute() and os.access(home, os.W_OK)
