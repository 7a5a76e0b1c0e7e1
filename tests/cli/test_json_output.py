"""Every `--json` has a type, whose schema is valid; other data is refused."""

from __future__ import annotations

import json

import click
import jsonschema
import pytest

from perftrail.cli import json_output
from perftrail.cli.json_output import COMMANDS_WITH_JSON, ROWS_AT_ONCE, encoded, json_types, print_json_rows
from perftrail.cli.main import COMMANDS, cli
from perftrail.model.json_data import document, finite


def commands_with_json() -> set[str]:
    """The commands that have the option `--json`."""
    context = click.Context(cli)
    found = set()
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts = {f"{name} {inner}": part for inner, part in getattr(command, "commands", {}).items()}
        for shown, each in (parts or {name: command}).items():
            if any("--json" in option.opts for option in each.params):
                found.add(shown)
    return found


def test_each_command_with_the_option_has_a_type() -> None:
    assert commands_with_json() == {name.partition(" --")[0] for name in COMMANDS_WITH_JSON}


@pytest.mark.parametrize("command", COMMANDS_WITH_JSON)
def test_each_schema_is_valid_and_describes_its_objects(command: str) -> None:
    schema = document(json_types()[command], command)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert all(each["description"] for each in schema["$defs"].values())


def test_json_of_another_type_fails_in_tests() -> None:
    with pytest.raises(jsonschema.ValidationError, match="'store' is a required property"):
        encoded("store compact", {"before_bytes": 1, "after_bytes": 2})
    with pytest.raises(ValueError, match="no type"):
        encoded("serve", {})


@pytest.mark.parametrize("count", [0, 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 1])
def test_many_rows_are_printed_as_one_list(capsys: pytest.CaptureFixture[str], count: int) -> None:
    rows = [
        {"benchmark": "[b", "metric": "m]\n]", "value": float(number), "nested": [[], {}]}
        for number in range(count)
    ]
    whole = f"{json.dumps(rows, indent=1)}\n"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_output, "encoded", lambda _, data: json.dumps(data, indent=1))
        print_json_rows("show", iter(rows))
    assert capsys.readouterr().out == whole


def test_an_infinite_number_is_null() -> None:
    samples = {"name": "x", "low": float("-inf"), "high": float("inf"), "all": [float("nan"), 1.0]}
    assert finite(samples) == {"name": "x", "low": None, "high": None, "all": [None, 1.0]}
