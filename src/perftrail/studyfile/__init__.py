"""Study files: reading, validation, JSON Schema and reference.

- `reading`: load a study from its file.
- `syntax`: read TOML, and report every syntax mistake.
- `structure`: convert TOML data to the model.
- `problems`, `key_lines`: collect mistakes with their lines.
- `rules`: check values against each other.
- `schema`: JSON Schema and Markdown reference, generated from the model.
- `writing`: write TOML strings.
"""

from __future__ import annotations

from perftrail.studyfile.reading import (
    COMMAND_STUDY,
    FILE_NAME,
    directory_of,
    find_upwards,
    load,
    load_readable,
    mistake,
    no_study,
)
from perftrail.studyfile.schema import schema

__all__ = [
    "COMMAND_STUDY",
    "FILE_NAME",
    "directory_of",
    "find_upwards",
    "load",
    "load_readable",
    "mistake",
    "no_study",
    "schema",
]
