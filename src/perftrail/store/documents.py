"""Documents of a store: comparisons, explanations, listings, observed builds and notes, each as JSON in one table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from perftrail.errors import StoreError
from perftrail.model.store_records import (
    STATUSES,
    ComparisonRecord,
    ExplanationRecord,
    ListingRecord,
    ReadsRecord,
    RegressionNote,
)
from perftrail.model.wording import listed
from perftrail.store.rows import identifier, record_from_json, record_to_json, storable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import TracebackType
    from typing import Self

Document = ComparisonRecord | ExplanationRecord | ListingRecord | ReadsRecord | RegressionNote

AnyDocument = TypeVar(
    "AnyDocument", ComparisonRecord, ExplanationRecord, ListingRecord, ReadsRecord, RegressionNote
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of document: its `name` in the table, its `noun` in errors, and the `title` of several.

    `key` are the fields that identify a document: of several with one key, the last counts. Without `replaces`, all
    of them count. `finished` is the field with its time.
    """

    name: str
    noun: str
    title: str
    key: Sequence[str] = ()
    replaces: bool = True
    finished: str = "finished"


KINDS: Mapping[type[Document], Kind] = {
    ComparisonRecord: Kind(name="comparison", noun="comparison", title="comparisons", replaces=False),
    ListingRecord: Kind(name="listing", noun="listing", title="listings", key=("suite", "key")),
    ReadsRecord: Kind(name="build_reads", noun="observation", title="build_reads", key=("recipe", "key")),
    ExplanationRecord: Kind(name="explanation", noun="explanation", title="explanations", key=("key",)),
    RegressionNote: Kind(
        name="regression_note",
        noun="note",
        title="notes",
        key=("regression",),
        replaces=False,
        finished="written",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRow:
    """A document in storable form: `key` are the texts of its key fields, separated by slashes."""

    kind: str
    key: str
    finished: str
    json: str


def document_row(document: Document) -> DocumentRow:
    """Return the row of a document. Raises `StoreError` for a key or data that cannot be stored."""
    kind = KINDS[type(document)]
    if isinstance(document, RegressionNote) and document.status not in STATUSES:
        raise StoreError(f"note: the status {document.status!r} is not valid; choose {listed(STATUSES)}")
    nouns = {"key": kind.noun, "recipe": kind.noun}
    keys = [identifier(getattr(document, name), nouns.get(name, name)) for name in kind.key]
    return DocumentRow(
        kind=kind.name,
        key="/".join(keys),
        finished=storable(getattr(document, kind.finished)),
        json=record_to_json(document, " ".join([kind.noun, *(key[:12] for key in keys[-1:])])),
    )


def document_from_json(kind: type[AnyDocument], text: str, where: str) -> AnyDocument:
    """Return a document from its JSON; `where` names the store. Raises an error of `damage.UNREADABLE`."""
    return record_from_json(kind, text, where)


def counting(kind: type[Document], rows: Collection[DocumentRow]) -> Sequence[DocumentRow]:
    """Return the rows of a kind that count, in the order in which their keys were first stored."""
    own = [row for row in rows if row.kind == KINDS[kind].name]
    return [*{row.key: row for row in own}.values()] if KINDS[kind].replaces else own


class DocumentStore(ABC):
    """The documents of a `perftrail.ports.Store`, on top of two methods; a context manager that closes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""

    @abstractmethod
    def add_document(self, document: Document) -> None:
        """Store a document, which may replace the last one with its key."""

    @abstractmethod
    def documents(self, kind: type[AnyDocument], within: str = "") -> Sequence[AnyDocument]:
        """Return the documents of a kind that count, or those whose first key field is `within`."""

    def add_comparison(self, record: ComparisonRecord) -> None:
        """Store the result of a comparison."""
        self.add_document(record)

    def comparisons(self) -> Sequence[ComparisonRecord]:
        """Return the results of comparisons, the latest last."""
        return self.documents(ComparisonRecord)

    def add_explanation(self, record: ExplanationRecord) -> None:
        """Store why a revision is faster or slower; the last record of a key counts."""
        self.add_document(record)

    def explanations(self) -> Sequence[ExplanationRecord]:
        """Return the last explanation of each key, in the order in which the keys were first stored."""
        return self.documents(ExplanationRecord)

    def add_listing(self, record: ListingRecord) -> None:
        """Store the listing of a suite in one build; the last record of a key counts."""
        self.add_document(record)

    def listings(self) -> Sequence[ListingRecord]:
        """Return the last listing of each key, in the order in which the keys were first stored."""
        return self.documents(ListingRecord)

    def add_build_reads(self, record: ReadsRecord) -> None:
        """Store the paths that an observed build uses; the last record of a key counts."""
        self.add_document(record)

    def build_reads(self, recipe: str = "") -> Sequence[ReadsRecord]:
        """Return the last observation of each build with a recipe, or of all, in the order of the first ones."""
        return self.documents(ReadsRecord, recipe)

    def notes(self) -> Sequence[RegressionNote]:
        """Return the notes about regressions, oldest first."""
        return self.documents(RegressionNote)

    def add_note(self, note: RegressionNote) -> None:
        """Store a note about a regression; another process may write meanwhile."""
        self.add_document(note)
