"""The reference of the study file as Markdown, made from the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Literal, get_args, get_origin

from perftrail.model.benchmark import Value
from perftrail.model.metrics import COUNTED, MEASURED
from perftrail.studyfile.schema import default_of, described
from perftrail.studyfile.structure import Document, FileKey, Hint, keys_of

_BANNER = "<!-- made by perftrail.studyfile.reference from src/perftrail/model/study.py and its parts: edit them -->"
_FORMS = {
    "duration": 'seconds, or text as `"10min"`, `"1h30min"`, `"500ms"`',
    "size": 'bytes, or text as `"512MiB"`, `"2GiB"`, `"1GB"`',
    "invocations": 'a number, or text as `"5..30"`',
    "quiet": '`"mark"`, `"refuse"`, or `"wait 60s"`',
    "texts": "text, or list of text",
}


def reference() -> str:
    """Give a page that names every table and key of the study file."""
    sections = "\n".join(_section("", Document))
    measured = "\n".join(f"| `{name}` | {each.unit} |" for name, each in MEASURED.items())
    counted = "\n".join(
        f"| `{name}` | {each.unit} | `{counter}` |"
        for counter, metrics in COUNTED.items()
        for name, each in metrics.items()
    )
    return (
        f"{_BANNER}\n\n# The study file\n\n{sections}\n"
        "## Metrics of every benchmark\n\nThese need no declaration.\n\n"
        f"| metric | unit |\n|---|---|\n{measured}\n\n"
        "These are there when the benchmark's `counters` ask for them. A benchmark that counts instructions has "
        "no other metric: it is run in another way.\n\n"
        f"| metric | unit | counter |\n|---|---|---|\n{counted}\n"
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
    """Give the table that a key holds, one or several; `None` of a key with plain values."""
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
        return _FORMS[key.key.form]
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
