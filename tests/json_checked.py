"""Compares what commands print with `--json` with the schemas of their types, in every test that prints it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache

import jsonschema

from perftrail.cli import json_output
from perftrail.model.json_data import document

_encoded = json_output.encoded


@cache
def _validator(command: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(document(json_output.json_types()[command], command))


def validate(command: str, text: str) -> None:
    """Raise `jsonschema.ValidationError` for a text that is not of the type of a command's JSON."""
    _validator(command).validate(json.loads(text))


def _checked(command: str, data: Mapping[str, object] | Sequence[object], *, one_line: bool = False) -> str:
    text = _encoded(command, data, one_line=one_line)
    validate(command, text)
    return text


def check_printed_json() -> None:
    """Let each command of this process and of its children validate its JSON before it prints it."""
    json_output.encoded = _checked
