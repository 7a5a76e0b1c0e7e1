"""JSON Schema and reference of study files, generated from the model, for editors and for the docs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, Literal, get_args, get_origin

from perftrail.model.benchmark import Value
from perftrail.model.field import LONGEST_NAME, Key
from perftrail.model.measurement import Quiet
from perftrail.model.metrics import COUNTED, MEASURED, OWN_METRICS, Metric
from perftrail.model.notation import DURATION, FRACTION, NUMBERS, SIZE
from perftrail.model.study import Invocations
from perftrail.studyfile.structure import Document, FileKey, Hint, keys_of

Schema = dict[str, Any]
"""A JSON Schema as plain data. Any: its values are of every JSON type."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_IMPORTED_SAMPLES: Schema = {
    "required": ["source"],
    "properties": {"source": {"required": ["kind"], "properties": {"kind": {"const": "samples"}}}},
}
"""A study of imported samples, which runs nothing."""
_LARGEST_WHOLE = 2**63 - 1


def schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of valid study files.

    It does not cover rules across several keys, such as the names in an expression: `load` checks these.
    """
    measured = {
        "if": _IMPORTED_SAMPLES,
        "else": {"anyOf": [{"required": ["benchmark"]}, {"required": ["suite"]}]},
    }
    return {"$schema": DIALECT, "title": "perftrail study", **_table(Document), **measured}


def _table(kind: type) -> Schema:
    keys = keys_of(kind)
    result: Schema = {
        "type": "object",
        "description": described(kind),
        "properties": {key.name: _key(key) for key in keys},
        "additionalProperties": False,
    }
    required = [key.name for key in keys if key.required]
    return {**result, "required": required} if required else result


def described(kind: type) -> str:
    """Return the first paragraph of a table's docstring in the model."""
    return inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _key(key: FileKey) -> Schema:
    result = {**_typed(key.type, key.key), "description": key.key.doc}
    default = default_of(key)
    return result if default is None else {**result, "default": default}


def default_of(key: FileKey) -> str | int | float | None:
    """Return the TOML value of a missing key; `None` if it has no value."""
    if isinstance(key.default, Invocations | Quiet):
        return str(key.default)
    return key.default if isinstance(key.default, str | int | float) and key.default != "" else None


def _typed(kind: Hint, key: Key) -> Schema:
    if key.form != "plain":
        return {"anyOf": _FORMS[key.form](key)}
    origin: object = get_origin(kind)
    parts = get_args(kind)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple:
        return {"type": "array", "items": _typed(parts[0], key)}
    if origin is Mapping:
        return _names(parts[1], key)
    return _table(kind) if is_dataclass(kind) and isinstance(kind, type) else _scalar(kind, key)


def _names(value: Hint, key: Key) -> Schema:
    names: Schema = {"pattern": key.names, "maxLength": LONGEST_NAME} if key.names else {}
    if value is Metric:
        names["not"] = {"enum": list(OWN_METRICS)}
    return {"type": "object", "propertyNames": names, "additionalProperties": _typed(value, key)}


def _scalar(kind: Hint, key: Key) -> Schema:
    if kind == Value:
        return {"type": ["number", "string"]}
    if kind is str:
        return {"type": "string"}
    if kind is bool:
        return {"type": "boolean"}
    return {"type": "integer" if kind is int else "number", **_bounds(key)}


def _bounds(key: Key) -> Schema:
    bounds = {"exclusiveMinimum": key.above, "exclusiveMaximum": key.below, "minimum": key.least}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _duration(key: Key) -> list[Schema]:
    return [{"type": "number", **_bounds(key)}, {"type": "string", "pattern": DURATION}]


def _size(key: Key) -> list[Schema]:
    return [
        {"type": "integer", **_bounds(key), "maximum": _LARGEST_WHOLE},
        {"type": "string", "pattern": SIZE},
    ]


def _fraction(key: Key) -> list[Schema]:
    return [{"type": "number", **_bounds(key)}, {"type": "string", "pattern": FRACTION}]


def _invocations(_: Key) -> list[Schema]:
    return [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9]+\s*(\.\.\s*[0-9]+\s*)?$"},
    ]


def _quiet(_: Key) -> list[Schema]:
    return [{"enum": ["flag", "refuse"]}, {"type": "string", "pattern": rf"^\s*wait {DURATION[1:]}"}]


def _texts(_: Key) -> list[Schema]:
    return [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]


def _numbers(_: Key) -> list[Schema]:
    return [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": NUMBERS}]


_FORMS = {
    "duration": _duration,
    "fraction": _fraction,
    "size": _size,
    "invocations": _invocations,
    "quiet": _quiet,
    "texts": _texts,
    "numbers": _numbers,
}


_BANNER = "<!-- generated by perftrail.studyfile.schema from src/perftrail/model: edit that -->"
_PLACEHOLDERS = """## Placeholders

| placeholder | value | where |
|---|---|---|
| `{build}` | the revision's build directory: the root of its tree | everywhere |
| `{study}` | the directory of the study file | everywhere |
| `{revision}` | the revision's full id | everywhere |
| `{date}` | the revision's date in UTC, for example `2024-02-29T23:30:00Z`: of its commit, or of its release | \
`steps` and `env` of `[build]`, `[[build.when]]` and `variants.NAME.build` |
| `{cpus}` | the number of CPUs; in build recipes, the number of CPUs of one build if `--jobs` is used | everywhere |
| `{source.NAME}` | the tree of the source `[sources.NAME]` | everywhere, and at the beginning of `outputs` |
| `{out}` | the directory for the files of a benchmark's `build` | `[benchmark.NAME]`, `variants.NAME.run` |
| `{PARAMETER}` | its value at the point | `[benchmark.NAME]`; `variants.NAME.run` if every benchmark has it |
| `{PART}` | the text of the variant's `run.parts.PART` | a benchmark's `command` and shell lines, and services |
| `{port}` | the free TCP port of a service: its own, or of the benchmark's only service | services and benchmarks |
| `{data}` | the directory of its data, likewise; without a service, for files of `setup` | services and benchmarks |
| `{port.NAME}`, `{data.NAME}` | the port and the data of `[service.NAME]` | services and benchmarks |
| `{layout}` | the seed of a link order: 1, 2, … | `relink` |

Everywhere means: `steps`, `relink` and `env` of `[build]`, `[[build.when]]` and `variants.NAME.build`; `command`,
`build`, `relink`, `env`, `stdin`, `setup`, `prepare`, `conclude` and `cleanup` of a benchmark; the texts of a service;
`prefix`, `env` and `parts` of `variants.NAME.run`.

Write `{{NAME}}` for a literal `{NAME}`. `${NAME}` belongs to the shell. Other braces stay unchanged, for example in
awk. In shell lines, perftrail quotes the values.

## Relative paths

| path | relative to |
|---|---|
| `location` of a source, the keys of `overlay`, `patch`, `stdin` | the directory of the study file |
| `touching`, `sparse`, `label.file`, `unaffected_by` | the root of the revision's tree |
| `variants.NAME.directory` | `source.location` |
| `archives.file` | `source.location` |
| paths in `steps` and `relink` of a build | the build's `directory` |
| paths in `build` and `relink` of a benchmark | a separate directory of that benchmark build |
| `directory` of a build and of a benchmark, `outputs`, the values of `overlay` | the root of the revision's tree |
| paths in `command` | the benchmark's `directory` |
| paths in `command` without `directory` | an empty directory, new for each invocation: name files by `{build}`, \
`{out}` or `{study}` |

`location`, `stdin` and `sandbox.readable` may begin with `~/`, the home directory. Elsewhere only a shell expands it:
in `steps`, `relink` and `build`, and in `command` with `shell = true`.
"""

_WRITTEN_FORMS = {
    "duration": 'seconds, or text as `"10min"`, `"1h30min"`, `"500ms"`',
    "fraction": 'a number, or text as `"2%"`',
    "size": 'bytes, or text as `"512MiB"`, `"2GiB"`, `"1GB"`',
    "invocations": 'a number, or text as `"5..30"`',
    "quiet": '`"flag"`, `"refuse"`, or `"wait 60s"`',
    "texts": "text, or list of text",
    "numbers": 'a number, or text as `"0,2-3"`',
}


def reference() -> str:
    """Return the page with every table and key of the study file."""
    sections = "\n".join(_section("", Document))
    measured = "\n".join(f"| `{name}` | {each.unit} | {each.meaning} |" for name, each in MEASURED.items())
    counted = "\n".join(
        f"| `{name}` | {each.unit} | `{counter}` | {each.meaning} |"
        for counter, metrics in COUNTED.items()
        for name, each in metrics.items()
    )
    return (
        f"{_BANNER}\n\n# The study file\n\n{sections}\n{_PLACEHOLDERS}\n"
        "## Metrics of every benchmark\n\nThese need no declaration.\n\n"
        f"| metric | unit | meaning |\n|---|---|---|\n{measured}\n\n"
        "The benchmark's `counters` add these. A benchmark that counts allocations or instructions has "
        "no other metric, because it runs in another way.\n\n"
        f"| metric | unit | counter | meaning |\n|---|---|---|---|\n{counted}\n"
    )


def _section(title: str, table: type) -> Iterator[str]:
    if title:
        yield f"## `{title}`\n\n{described(table)}\n"
    plain = [key for key in keys_of(table) if _table_of(key) is None]
    if plain:
        yield "| key | value | default | meaning |\n|---|---|---|---|"
        yield "".join(f"{_row(key)}\n" for key in plain)
    for key in keys_of(table):
        below = _table_of(key)
        if below is not None:
            yield from _section(_title(title, key), below)


def _title(title: str, key: FileKey) -> str:
    inner = title.strip("[]")
    origin: object = get_origin(key.type)
    name = f"{inner}.{key.name}" if inner else key.name
    if origin is Mapping:
        return f"[{name}.NAME]"
    return f"[[{name}]]" if origin is tuple else f"[{name}]"


def _table_of(key: FileKey) -> type | None:
    """Return the table, single or repeated, of a key; `None` for a key with plain values."""
    parts: tuple[Hint, ...] = get_args(key.type) or (key.type,)
    found = [part for part in parts if is_dataclass(part) and isinstance(part, type)]
    return found[0] if found and key.key.form == "plain" else None


def _row(key: FileKey) -> str:
    default = "required" if key.required else "" if default_of(key) is None else f"`{_toml(default_of(key))}`"
    return f"| `{key.name}` | {_kind(key.type, key)} | {default} | {key.key.doc} |"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return (
        f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
    )


def _kind(kind: Hint, key: FileKey) -> str:
    if key.key.form != "plain":
        return _WRITTEN_FORMS[key.key.form]
    if kind == Value:
        return "number or text"
    origin: object = get_origin(kind)
    parts = get_args(kind)
    if origin is Literal:
        return ", ".join(f'`"{part}"`' for part in parts)
    if origin is tuple:
        return f"list of {_kind(parts[0], key)}"
    if origin is Mapping:
        return f"table of {_kind(parts[1], key)}"
    return _NAMES[kind]


_NAMES = {str: "text", bool: "true or false", int: "whole number", float: "number"}
