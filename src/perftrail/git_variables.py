"""Variables with which git executes nothing that a repository, or the user's settings, could name."""

from __future__ import annotations

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "core.quotePath=false",
    "i18n.logOutputEncoding=UTF-8",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "protocol.git.allow=always",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.ext.allow=never",
)
"""Passed as variables, which override the settings of repositories and users.

A driver (``filter.NAME.clean``, ``diff.NAME.textconv``) has a name that only its repository knows, so that no setting
can override it. Commands that read a work tree's files therefore never use a foreign git directory.
"""

NO_TRANSFER = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""Variables that forbid transfers: for a missing object, git would start a program that the repository names."""


def git_variables(*, settings_file: str) -> dict[str, str]:
    """Return the variables of a git that transfers nothing, and reads only these settings besides the repository's."""
    variables = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for number, setting in enumerate(_SETTINGS):
        name, _, value = setting.partition("=")
        variables[f"GIT_CONFIG_KEY_{number}"] = name
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return {
        **variables,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": settings_file,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        **NO_TRANSFER,
    }
