"""Functions that parse untrusted bytes, each with the exceptions that refuse an input, and the first inputs."""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from perftrail import studyfile
from perftrail.builds import artefact, build_log, packing
from perftrail.errors import ClusterError, FormatError, LauncherError, SourceError, StoreError, StudyError
from perftrail.file_tree import remove_tree
from perftrail.formats import FORMATS, printed, read
from perftrail.formats.document import FileContext
from perftrail.model import expression, placeholders
from perftrail.model.metrics import Metric
from perftrail.process import protocol
from perftrail.process.machine.load import read_process_table
from perftrail.sources import ranges, unpacking
from perftrail.sources.packages.debian import DebianVersion, is_debian_version
from perftrail.sources.packages.registry import SemanticVersion, is_semantic_version
from perftrail.store import rows
from perftrail.store.damage import translate_damage
from perftrail.web import request_arguments
from perftrail.web.access import LOOPBACK, Access, LoginSessions, Tokens
from perftrail.web.guard import Guard, RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

CORPUS = Path(__file__).parent / "corpus"
RECORDED = Path(__file__).parents[2] / "tests/formats/data"
"""Output of other tools, which the tests of the formats read."""

LARGEST_SEED_BYTES = 4096
unpacking.LARGEST_TREE_BYTES = 1 << 20  # no input of a fuzzer fills the disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A parser, and the exceptions with which it may refuse an input."""

    parse: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()

    def __call__(self, content: bytes) -> None:
        """Parse an input. Raises whatever is not a refusal."""
        with contextlib.suppress(*self.refusals):
            self.parse(content)


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    """Yield a new directory, in memory if the machine has one there."""
    shared = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="perftrail-fuzz-", dir=shared if shared.is_dir() else None))
    try:
        yield made
    finally:
        remove_tree(made)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _readers(content: bytes) -> None:
    """Read a result file; its first byte chooses the format, or none."""
    if content:
        format = [None, *FORMATS][content[0] % (len(FORMATS) + 1)]
        rest = content[1:]
        context = FileContext(path=Path("a/new/sample.json"), read_relative=lambda _: rest[:200])
        for series in read(rest, name="x", format=format, context=context).series:
            assert series.values
            assert all(map(math.isfinite, series.values))


def _debug_information(content: bytes) -> None:
    kept = artefact.without_debug_information(content)
    assert len(kept) <= 64 * len(content) + 64, "the content that counts is much larger than the file"
    artefact.loader_texts(content)


def _archives(content: bytes) -> None:
    with _directory() as directory:
        (directory / "archive").write_bytes(content)
        unpacking.unpack(directory / "archive", directory / "tree")


def _packed_builds(content: bytes) -> None:
    with _directory() as directory:
        (directory / "tree").mkdir()
        packing.unpack_logs(content, directory / "tree", below="logs")
        packing.unpack(content, directory / "tree")


def _study_files(content: bytes) -> None:
    with _directory() as directory:
        (directory / studyfile.FILE_NAME).write_bytes(content)
        studyfile.load(str(directory), to_read=bool(content) and content[0] % 2 == 0)


def _expressions(content: bytes) -> None:
    parsed = expression.parse(_text(content))
    assert expression.parse(str(parsed)) == parsed or expression.references(parsed)
    expression.evaluate(parsed, lambda _: 2.0)


def _placeholders(content: bytes) -> None:
    text = _text(content)
    values = dict.fromkeys(placeholders.names(text), "{value}")
    placeholders.fill(text, values)
    placeholders.fill_some(text, {"out": "x"})
    placeholders.insert_texts(text, {"out": "x"})
    placeholders.unclosed(text, ["build", "out"])
    placeholders.sources_named([text])
    with contextlib.suppress(ValueError):
        placeholders.split_command(text)


_METRICS = {
    "last": Metric(pattern=r"time[=:] *(\S+)"),
    "sum": Metric(pattern=r"([0-9.eE+-]+|inf|nan) s", pick="sum"),
    "median": Metric(pattern=r"^\w+ +(.*)$", pick="median"),
    "go": Metric(reads="go", item="BenchmarkFold-8", unit="s"),
    "jmh": Metric(reads="jmh", unit="s"),
}


def _printed_metrics(content: bytes) -> None:
    for name, metric in _METRICS.items():
        found = printed.read_metrics({name: metric}, content.decode("utf-8", "replace"), log="log")
        assert not isinstance(found, dict) or all(map(math.isfinite, found.values()))


def _answers_of_the_launcher(content: bytes) -> None:
    answer = protocol.read_answer(content)
    if answer["event"] == "hello":
        protocol.read_hello(answer)
    else:
        protocol.read_result(answer, id="1")


_ROWS = (
    rows.build_outcome_from_json,
    rows.facts_from_json,
    rows.texts_from_json,
    rows.point_from_json,
    rows.origin_from_json,
)


def _store_rows(content: bytes) -> None:
    if content:
        with translate_damage("the store"):
            _ROWS[content[0] % len(_ROWS)](content[1:].decode("utf-8", "replace"))


_PASSED_ON = PlainTextResponse("passed on")
_GUARD = Guard(
    app=_PASSED_ON,
    access=Access(
        tokens=Tokens({"x" * 32: "read"}), header="x-user", proxies=LOOPBACK, writers=frozenset({"a"})
    ),
    login_sessions=LoginSessions(),
    rate_limit=RateLimit(burst=math.inf, each_second=math.inf),
)


def _requests(content: bytes) -> None:
    """Send a request through the guard: method, path, query, headers by line, and a body."""
    head, _, body = content.partition(b"\n\n")
    method, path, query, *headers = [*head.split(b"\n"), b"", b"", b""]
    pairs = [each.partition(b":")[::2] for each in headers if b":" in each]
    scope: dict[str, Any] = {
        "type": "http",
        "method": method.decode("latin-1") or "GET",
        "path": "/" + path.decode("utf-8", "replace"),
        "raw_path": b"/" + bytes(each for each in path if each < 128),
        "query_string": bytes(each for each in query if each < 128),
        "headers": [(name.strip().lower(), value.strip()) for name, value in pairs],
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "server": ("localhost", 80),
    }
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(_GUARD(scope, receive, send))
    assert sent[0]["status"] < 500


def _queries(content: bytes) -> None:
    request = Request({"type": "http", "query_string": content, "headers": []})
    for name in ("first", "last", "a"):
        request_arguments.named(request, name)
        request_arguments.whole_number(request, name, 0)


def _ranges(content: bytes) -> None:
    text = _text(content)
    for edge in ("start", "end"):
        ranges.moment(text, edge=edge)
    ranges.version_key(text)
    ranges.parse_span(text)
    ranges.parse_range(text)


def _versions(content: bytes) -> None:
    text = _text(content)
    if is_semantic_version(text):
        SemanticVersion.read(text)
    if is_debian_version(text):
        DebianVersion.read(text)
    with contextlib.suppress(SourceError):
        SemanticVersion.read(text)
    DebianVersion.read(text)


def _process_names(content: bytes) -> None:
    """Read the kernel's line about a process, whose name is the input."""
    name = content.replace(b"\0", b"")[:15]
    with _directory() as root:
        (root / "proc/7").mkdir(parents=True)
        (root / "proc/7/stat").write_bytes(
            b"7 (" + name + b") S 1 7 7 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 5 6 7\n"
        )
        [(_, process)] = read_process_table(root).items()
    assert (process.parent, process.name) == (1, name.decode("utf-8", "replace"))


def _logs(content: bytes) -> None:
    build_log.log_excerpt(content.decode("utf-8", "replace"))


TARGETS: dict[str, Target] = {
    "readers": Target(parse=_readers, refusals=(FormatError,)),
    "debug_information": Target(parse=_debug_information),
    "archives": Target(parse=_archives, refusals=(SourceError,)),
    "packed_builds": Target(parse=_packed_builds, refusals=(ClusterError,)),
    "study_files": Target(parse=_study_files, refusals=(StudyError,)),
    "expressions": Target(parse=_expressions, refusals=(expression.ExpressionError,)),
    "placeholders": Target(parse=_placeholders),
    "printed_metrics": Target(parse=_printed_metrics),
    "answers_of_the_launcher": Target(parse=_answers_of_the_launcher, refusals=(LauncherError,)),
    "store_rows": Target(parse=_store_rows, refusals=(StoreError,)),
    "requests": Target(parse=_requests),
    "queries": Target(parse=_queries, refusals=(HTTPException,)),
    "ranges": Target(parse=_ranges, refusals=(SourceError,)),
    "versions": Target(parse=_versions, refusals=(SourceError,)),
    "process_names": Target(parse=_process_names),
    "logs": Target(parse=_logs),
}
"""Every target by its name."""


def seeds(target: str) -> list[bytes]:
    """Return the first inputs of a target: its corpus, and for the readers the recorded output of other tools."""
    found = [file.read_bytes() for file in sorted((CORPUS / target).glob("*"))]
    if target == "readers":
        for file in sorted(RECORDED.rglob("*")):
            if file.is_file():
                content = file.read_bytes()[:LARGEST_SEED_BYTES]
                found += [bytes([number]) + content for number in (0, *_formats_of(file))]
    elif target == "study_files":
        texts = (Path(__file__).parents[2] / "studies").glob("*/perftrail.toml")
        found += [file.read_bytes()[:LARGEST_SEED_BYTES] for file in sorted(texts)]
    elif target == "debug_information" and (program := shutil.which("true")):
        content = Path(program).read_bytes()
        found += [content[:LARGEST_SEED_BYTES], content[:64]]
    return found or [b""]


def _formats_of(file: Path) -> list[int]:
    """Return the first bytes that choose the format of a recorded file, by the name of its directory."""
    directory = file.relative_to(RECORDED).parts[0]
    return [number for number, name in enumerate(FORMATS, start=1) if name.startswith(directory)]
