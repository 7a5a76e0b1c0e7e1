"""Write the reference pages from the code: `make docs`. A test fails when they are out of date."""

from __future__ import annotations

import ast
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import perftrail
from perftrail import studyfile
from perftrail.cli.help import EXAMPLES
from perftrail.cli.json_output import json_types
from perftrail.cli.main import COMMANDS, GROUPS, cli
from perftrail.model import json_data
from perftrail.notebook import OpenedStudy, ShownChart
from perftrail.notebook.tables import ANSWERS, CHANGES, COMPARISONS, EACH, ESTIMATES, KINDS, SAMPLES, Column
from perftrail.studyfile.schema import reference
from perftrail.web.app import DESCRIBED, OPERATIONS
from perftrail.web.openapi import document

ROOT = Path(__file__).parents[1]
MAN = ROOT / "man" / "man1"
REFERENCE = ROOT / "docs" / "reference"

BEGIN, END = "<!-- packages: written by `make docs` -->", "<!-- end of packages -->"

TABLES = {
    "samples": SAMPLES,
    "estimates": ESTIMATES,
    "changes": CHANGES,
    "comparisons": COMPARISONS,
    "answers": ANSWERS,
}
"""The columns of each table of a notebook, by the method that returns it."""


def pages() -> dict[str, str]:
    """Return the text of each generated page by its file name."""
    return {
        "study-file.md": reference().rstrip() + "\n",
        "study-file.schema.json": json.dumps(studyfile.schema(), indent=2) + "\n",
        "commands.md": commands(),
        "notebook.md": notebook(),
        "openapi.json": json.dumps(document((DESCRIBED, *OPERATIONS)), indent=1) + "\n",
        "json.md": json_page(),
        **{
            f"json/{name.replace(' --', '-').replace(' ', '-')}.schema.json": json.dumps(schema, indent=1)
            + "\n"
            for name, schema in json_schemas().items()
        },
    }


def json_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each command's `--json` by the command's name."""
    return {name: json_data.document(kind, f"perftrail {name} --json") for name, kind in json_types().items()}


def json_page() -> str:
    """Return the page with every field of each command's `--json`."""
    parts = [
        "# JSON of the commands\n",
        "Each command prints one JSON value with `--json`; `watch` prints one on each line. The folder `json/` has a "
        "JSON Schema for each, generated from the types that print it. Revisions are full ids. A value that does "
        "not exist is null.\n",
    ]
    shown: set[str] = set()
    for name, schema in json_schemas().items():
        parts.append(f"## perftrail {name}\n\n{_kind_words(schema)}\n")
        for kind, fields in schema["$defs"].items():
            if kind not in shown:
                shown.add(kind)
                parts += _fields(kind, fields)
    return "\n".join(parts)


def _fields(kind: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {kind}\n\n{schema['description']}\n"
    yield "| field | type | meaning |\n|---|---|---|"
    for name, field in schema["properties"].items():
        optional = "" if name in schema["required"] else " (may be missing)"
        yield f"| `{name}` | {_kind_words(field)}{optional} | {field.get('description', '')} |"
    yield ""


def _kind_words(schema: dict[str, Any]) -> str:
    """Return the type of a value in words, with links to the types of objects."""
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
        return f"[{kind}](#{kind.lower()})"
    if "anyOf" in schema:
        return " or ".join(map(_kind_words, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{each}`" if each else "empty" for each in schema["enum"])
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])}: {_kind_words(schema['prefixItems'][0])}"
    if "items" in schema:
        return f"list of {_kind_words(schema['items'])}"
    values = schema.get("additionalProperties")
    return f"object of {_kind_words(values)} by name" if values else schema.get("type", "any value")


def packages() -> str:
    """Return the table of packages, the highest layer first, each with the first paragraph of its docstring."""
    root = Path(perftrail.__file__).parent
    lines = ["| package | modules | what it is |", "|---|---|---|"]
    for row in _layers():
        for name in row.split(" | "):
            files = sorted((root / name).rglob("*.py")) or [root / f"{name}.py"]
            first = root / name / "__init__.py"
            tree = ast.parse((first if first.exists() else files[0]).read_text(encoding="utf-8"))
            summary = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
            lines.append(f"| `{name}` | {len(files)} | {summary} |")
        lines.append("| | | |")
    return "\n".join(lines[:-1]) + "\n"


def architecture(text: str) -> str:
    """Return ARCHITECTURE.md's text with the current packages and their imports."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{diagram()}\n{packages()}{END}{after}"


def diagram() -> str:
    """Return a diagram of the imports between packages, without indirect ones."""
    imports = package_imports()
    reached: dict[str, set[str]] = {}

    def below(name: str) -> set[str]:
        if name not in reached:
            reached[name] = set().union(*({each} | below(each) for each in imports[name]))
        return reached[name]

    lines = ["```mermaid", "flowchart TD"]
    for name, used in imports.items():
        direct = [each for each in imports if each in used and not any(each in below(via) for via in used)]
        if direct:
            lines.append(f"  {name} --> {' & '.join(direct)}")
    return "\n".join([*lines, "```", ""])


def package_imports() -> dict[str, set[str]]:
    """Return the packages that each package imports, imports for types included, the highest packages first."""
    root = Path(perftrail.__file__).parent
    names = [name for row in _layers() for name in row.split(" | ")]
    imports: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        for file in sorted((root / name).rglob("*.py")) or [root / f"{name}.py"]:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ImportFrom) or not node.module:
                    continue
                parts = [*node.module.split("."), node.names[0].name]
                if parts[0] == "perftrail" and parts[1] in imports:
                    imports[name].add(parts[1])
        imports[name].discard(name)
    return imports


def _layers() -> list[str]:
    """Return the rows of packages that `lint-imports` checks, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows: list[str] = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return rows


COPIED = re.compile(r"(<!-- (table|value) (.*?)-->)(.*?)(<!-- end -->)", re.DOTALL)


def pages_with_results() -> list[Path]:
    """Return the pages with numbers of the results."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages += [
        page for part in ("explanation", "how-to") for page in sorted((ROOT / "docs" / part).glob("*.md"))
    ]
    return [
        page for page in pages if not page.is_symlink() and COPIED.search(page.read_text(encoding="utf-8"))
    ]


def with_results(text: str) -> str:
    """Return a page's text with the tables and values that its comments name, copied from pages with results.

    `<!-- table FILE` names its columns, and in a line `rows: COLUMN = VALUE | VALUE` the rows, of the first table that
    has them. `<!-- value FILE | COLUMN | COLUMN = VALUE` names one cell. Files are relative to docs/. The second of two
    columns with one name is `NAME (2)`.
    """

    def copied(found: re.Match[str]) -> str:
        begin, kind, words, _, end = found.groups()
        if kind == "value":
            file, column, *wanted = (word.strip() for word in words.split(" | "))
            rows = _result_rows(file, [column], dict(_condition(each) for each in wanted))
            if len(rows) != 1:
                raise ValueError(f"{begin}: {len(rows)} rows, not one")
            return f"{begin}{rows[0][column]}{end}"
        file, *lines = words.strip().splitlines()
        settings = dict(line.split(": ", 1) for line in lines)
        columns = settings["columns"].split(" | ")
        wanted = [settings["rows"]] if "rows" in settings else []
        rows = _result_rows(file, columns, dict(_condition(each) for each in wanted))
        if not rows:
            raise ValueError(f"{begin}: no rows")
        heads = [column.removesuffix(" (2)") for column in columns]
        table = ["| " + " | ".join(heads) + " |", "|---" * len(columns) + "|"]
        table += ["| " + " | ".join(row[column] for column in columns) + " |" for row in rows]
        return "\n".join([begin, *table, end])

    return COPIED.sub(copied, text)


def _condition(text: str) -> tuple[str, list[str]]:
    column, _, values = text.partition(" = ")
    return column, values.split(" | ")


def _result_rows(file: str, columns: list[str], wanted: dict[str, list[str]]) -> list[dict[str, str]]:
    """Return the rows of the first table of a page with all columns that have the wanted values, in their order."""
    text = (ROOT / "docs" / file).read_text(encoding="utf-8")
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        names, _, *cells = (
            [cell.strip(" *") for cell in line.strip().strip("|").split("|")] for line in block.splitlines()
        )
        names = [f"{name} (2)" if name in names[:at] else name for at, name in enumerate(names)]
        if {*columns, *wanted} <= {*names}:
            rows = [dict(zip(names, each, strict=True)) for each in cells]
            chosen = [row for row in rows if all(row[name] in values for name, values in wanted.items())]
            if chosen:
                return chosen
    return []


def commands() -> str:
    """Return the page with the help of every command, as the terminal prints it."""
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
        parts += _command(command, name, context, settings)
    return "\n".join(parts)


def _command(
    command: click.Command, name: str, above: click.Context, settings: dict[str, Any]
) -> Iterator[str]:
    """Yield a command's help, and the help of each of its subcommands."""
    context = click.Context(command, info_name=name, parent=above, **settings)
    yield f"## {context.command_path}\n"
    yield "```text\n" + command.get_help(context) + "\n```\n"
    if isinstance(command, click.Group):
        for subcommand in command.list_commands(context):
            inner = command.get_command(context, subcommand)
            assert inner is not None
            yield from _command(inner, subcommand, context, settings)


def man_pages() -> dict[str, str]:
    """Return every manual page by its file name: perftrail, git-perftrail for `git help`, and one of each command."""
    context = click.Context(cli, info_name="perftrail", help_option_names=["-h", "--help"])
    listed = [*_man_section("COMMANDS")]
    for title, group in GROUPS.items():
        listed.append(f".SS {_roff(title)}")
        for name, line in group.items():
            listed += [".TP", f".BR perftrail\\-{_roff(name)} (1)", _roff(line)]
    about = _man_text(cli)
    exits = [*_man_section("EXIT STATUS"), *_man_paragraphs([EXIT_CODES])]
    found = {
        "perftrail": _man_page(
            "perftrail", SUMMARY, ["\\fBperftrail\\fR \\fICOMMAND\\fR \\&..."], [*about, *listed]
        ),
        "git-perftrail": _man_page(
            "git-perftrail",
            SUMMARY,
            ["\\fBgit perftrail\\fR \\fICOMMAND\\fR \\&..."],
            [*_man_paragraphs([GIT_WORDS]), *about, *listed],
        ),
    }
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, help_option_names=["-h", "--help"])
        found[f"perftrail-{name}"] = _man_page(
            f"perftrail-{name}",
            COMMANDS[name].rstrip("."),
            _man_synopsis(command, inner),
            [*_man_text(command), *_man_options(command, inner), *_man_examples(name), *exits],
        )
    return {f"{name}.1": text for name, text in found.items()}


SUMMARY = "find which change made a program faster or slower"
GIT_WORDS = "git perftrail is perftrail: git starts it like its own commands, in any check-out."
EXIT_CODES = (
    "0 answered, 1 not answered, 2 wrong usage or invalid study file, 3 a gate failed, 130 interrupted. "
    "perftrail-bisect-step(1) has its own."
)


def _man_page(name: str, summary: str, synopsis: list[str], body: list[str]) -> str:
    others = "perftrail(1)" if name != "perftrail" else "git-perftrail(1)"
    lines = [
        '.\\" generated by docs/generate.py from the help of the commands: edit that',
        f'.TH {_roff(name.upper())} 1 "" "perftrail {perftrail.__version__}" "perftrail"',
        *_man_section("NAME"),
        f"{_roff(name)} \\- {_roff(summary)}",
        *_man_section("SYNOPSIS"),
        *(line for each in synopsis for line in (each, ".br")),
        *_man_section("DESCRIPTION"),
        *body,
        *_man_section("SEE ALSO"),
        _roff(others),
    ]
    return "\n".join(lines) + "\n"


def _man_section(title: str) -> tuple[str]:
    return (f".SH {title}",)


def _man_synopsis(command: click.Command, context: click.Context) -> list[str]:
    words = " ".join(command.collect_usage_pieces(context))
    return [f"\\fB{_roff(context.command_path)}\\fR {_roff(words)}"]


def _man_text(command: click.Command) -> list[str]:
    """Return the paragraphs of a command's help, and those of its subcommands."""
    return _man_paragraphs(inspect.cleandoc(command.help or "").split("\n\n"))


def _man_paragraphs(paragraphs: list[str]) -> list[str]:
    lines: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith("\b\n"):
            lines += [".PP", ".nf", *map(_roff, paragraph.removeprefix("\b\n").splitlines()), ".fi"]
        else:
            lines += [".PP", _roff(" ".join(paragraph.split()))]
    return lines


def _man_options(command: click.Command, context: click.Context) -> list[str]:
    """Return the options of a command, and those of each of its subcommands."""
    lines = [*_man_section("OPTIONS")]
    for param in command.get_params(context):
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record is not None:
            lines += [".TP", f"\\fB{_roff(record[0])}\\fR", _roff(record[1])]
    if not isinstance(command, click.Group):
        return lines
    lines += _man_section("SUBCOMMANDS")
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        below = click.Context(inner, info_name=name, parent=context, help_option_names=["-h", "--help"])
        lines += [f".SS {_roff(name)}", *_man_synopsis(inner, below), *_man_text(inner)]
        lines += _man_options(inner, below)[1:]
    return lines


def _man_examples(name: str) -> list[str]:
    lines = [*_man_section("EXAMPLES")]
    for line, meaning in EXAMPLES[name]:
        lines += [".TP", f"\\fB{_roff(line)}\\fR", _roff(meaning)]
    return lines


def _roff(text: str) -> str:
    """Return text for a manual page: backslashes, hyphens, quotes and leading dots are literal."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{text}" if text.startswith(".") else text


def notebook() -> str:
    """Return the page of the Python interface from its docstrings, with the columns of each table."""
    parts = ["# In Python and notebooks\n", _described("perftrail.open", perftrail.open)]
    for kind in (OpenedStudy, ShownChart):
        parts.append(f"## {kind.__name__}\n\n{inspect.getdoc(kind)}\n")
        for name, member in vars(kind).items():
            if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
                continue
            parts.append(_described(name, member))
            if name in TABLES:
                parts += _columns(TABLES[name])
    return "\n".join(parts)


def _described(name: str, member: object) -> str:
    """Return the signature and the docstring of a function, a method or a property."""
    signature = str(inspect.signature(member)) if callable(member) else ""
    plain = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature).replace("pa.Table", "pyarrow.Table")
    shown = plain.replace("(self, ", "(").replace("(self)", "()")
    return f"### `{name}{shown}`\n\n{inspect.getdoc(member)}\n"


def _columns(columns: tuple[Column, ...]) -> Iterator[str]:
    yield "| column | type | unit | meaning |\n|---|---|---|---|"
    for each in columns:
        kind = "int64, double or names" if each.name == "PARAMETER…" else KINDS[each.kind]
        unit = "of the row" if each.unit == EACH else each.unit
        yield f"| `{each.name}` | {kind} | {unit} | {each.meaning} |"
    yield ""


if __name__ == "__main__":
    for file, text in pages().items():
        (REFERENCE / file).parent.mkdir(exist_ok=True)
        (REFERENCE / file).write_text(text, encoding="utf-8")
    MAN.mkdir(parents=True, exist_ok=True)
    for file, text in man_pages().items():
        (MAN / file).write_text(text, encoding="utf-8")
    page = ROOT / "ARCHITECTURE.md"
    page.write_text(architecture(page.read_text(encoding="utf-8")), encoding="utf-8")
    for page in pages_with_results():
        page.write_text(with_results(page.read_text(encoding="utf-8")), encoding="utf-8")
