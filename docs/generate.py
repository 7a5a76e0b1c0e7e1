"""Writes the reference pages from the code: `make docs`. A test fails when they are out of date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from perftrail import studyfile
from perftrail.cli.main import COMMANDS, cli
from perftrail.studyfile.reference import reference

REFERENCE = Path(__file__).parent / "reference"


def pages() -> dict[str, str]:
    """Every generated page by its file name."""
    return {
        "study-file.md": reference().rstrip() + "\n",
        "study-file.schema.json": json.dumps(studyfile.schema(), indent=2) + "\n",
        "commands.md": commands(),
    }


def commands() -> str:
    """Every command with its help, as the terminal shows it."""
    settings: dict[str, Any] = {
        "max_content_width": 100,
        "terminal_width": 100,
        "help_option_names": ["-h", "--help"],
    }
    context = click.Context(cli, info_name="perftrail", **settings)
    parts = ["# Commands\n", "```text\n" + cli.get_help(context) + "\n```\n"]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, **settings)
        parts.append(f"## perftrail {name}\n")
        parts.append("```text\n" + command.get_help(inner) + "\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    for file, text in pages().items():
        (REFERENCE / file).write_text(text, encoding="utf-8")
