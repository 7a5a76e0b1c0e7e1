"""The JSON Schema and the reference page agree with the reader of study files."""

from __future__ import annotations

import tomllib
from typing import Any

import jsonschema
import pytest

from perftrail import studyfile
from perftrail.studyfile.schema import reference
from perftrail.studyfile.structure import Document, keys_of
from tests.studyfile.studies import GOOD, SMALL, spoiled
from tests.studyfile.test_bad_studies import MISTAKES, Spoiled

RELEASE = SMALL.replace('"directory"', '"release"').replace(
    '"."', '"pypi:x"\nrequires = ["y"]\nyanked = true'
)
WRITTEN_OTHERWISE = f"""\
{SMALL}timeout = 1.5
memory_limit = 1000000
stdin = "{{study}}/x"
parameters = {{ n = [1, 0.5, "x"] }}
exclude = [{{ n = 1, variant = "v" }}, {{ n = "x" }}]
env = {{ A = "b" }}
[variants.v]
[measure]
invocations = 60
seed = 3
warmups = 0
[find]
budget = 60
budget_builds = 3
"""

SHAPE = (
    "unknown key",
    "expected ",
    "is not a valid choice",
    "is out of range",
    "needs a time",
    "is not a",
    "missing;",
    "is not a valid name",
)
"""Words of error messages that a schema can find too: about the form of one value."""
BEYOND = (
    "derived.ratio.value",
    "find.metric",
    "exclude",
    "30..5",
    "not nan",
    "0s is out",
    "wait 0s",
    "is not a range",
    "regular expression",
    "is not an address",
    "is not a valid address",
    "is not a valid archive",
    "is not a valid package",
    "is not a valid location",
    "is not a valid requirement",
    "is not a SHA-256",
    "is not a valid mail",
    "is not a valid webhook",
    "is not rel",
)
"""Words of other messages: a schema cannot compare numbers in text, or interpret a text as git does."""


def _errors(text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(studyfile.schema())
    data: Any = tomllib.loads(text)
    return [error.message for error in validator.iter_errors(data)]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(studyfile.schema())


@pytest.mark.parametrize("text", [GOOD, SMALL, RELEASE, WRITTEN_OTHERWISE])
def test_a_good_study_satisfies_the_schema(text: str) -> None:
    assert _errors(text) == []


def _of_shape(expected: str) -> bool:
    return any(word in expected for word in SHAPE) and not any(word in expected for word in BEYOND)


@pytest.mark.parametrize(
    "case", [case for case in MISTAKES if _of_shape(case.expected[0])], ids=lambda case: case.sentence
)
def test_a_mistake_of_shape_breaks_the_schema(case: Spoiled) -> None:
    assert _errors(case.spoil(GOOD)) != []


def test_every_key_has_a_description_that_ends_a_sentence() -> None:
    def descriptions(node: Any) -> list[str]:
        if not isinstance(node, dict):
            return []
        own = [node["description"]] if isinstance(node.get("description"), str) else []
        return own + [text for value in node.values() for text in descriptions(value)]

    found = descriptions(studyfile.schema())
    assert len(found) > 50
    assert all(text.endswith(".") and text[0].isprintable() for text in found)


def test_no_table_of_the_schema_takes_unknown_keys() -> None:
    assert _errors(spoiled("[measure]", "[measure]\nunknown = 1"))
    assert _errors(spoiled("[build]", "unknown = 1\n[build]"))


def test_the_reference_names_every_table_and_key() -> None:
    page = reference()
    for key in keys_of(Document):
        assert f"[{key.name}" in page
    for name in ("memory_limit", "budget_builds", "touching", "yanked", "prefix", "peak_memory_tree"):
        assert f"`{name}`" in page
