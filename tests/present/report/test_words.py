"""Names of revisions, rows and values in a report: short, and inert for hostile text."""

from __future__ import annotations

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.subject import Revision, Subject
from perftrail.model.wording import LONGEST_ESCAPED, escaped
from perftrail.present.answer_sentence import revision_name
from perftrail.present.report.words import (
    revision_mark,
    row_metric,
    row_value,
    slug,
)
from perftrail.present.shared_sentences import effect_words
from perftrail.results.rows import Row

ID = "0123456789" * 4
NOWHERE = Point()


def row(*values: float, point: Point = NOWHERE) -> Row:
    return Row(
        subject=Subject(revision=Revision(id=ID), variant="plain"),
        benchmark="mt",
        point=point,
        metric="real",
        unit="s",
        failures=0,
        values=values,
    )


def test_plain_text_stays_as_it_is() -> None:
    assert escaped("Größe × 2 <b>") == "Größe × 2 <b>"


@pytest.mark.parametrize("letter", ["\x1b", "\u202e", "\u2066", "\n", "\x00"])
def test_characters_that_steer_are_spelt_out(letter: str) -> None:
    text = escaped(f"a{letter}b")
    assert letter not in text
    assert text.startswith("a\\")


def test_characters_may_be_kept_where_text_has_lines() -> None:
    assert escaped("a\nb\x07", allowed="\n") == "a\nb\\x07"


def test_long_text_is_cut_and_says_so() -> None:
    text = escaped("x" * 1000)
    assert len(text) == LONGEST_ESCAPED
    assert text.endswith("…")


def test_a_title_has_id_label_and_message() -> None:
    revision = Revision(id=ID, label="v1.2", summary="Make it \u202efast")
    assert revision_name(revision) == "0123456789 (v1.2) “Make it \\u202efast”"


def test_a_label_with_its_own_brackets_is_not_put_into_brackets_again() -> None:
    edited = Revision(id=ID, label="working tree (2 files changed)", summary="a.c and b.c")
    assert revision_name(edited) == "0123456789, working tree (2 files changed) “a.c and b.c”"


def test_a_release_is_not_named_twice() -> None:
    release = Revision(id="1.2.3", label="1.2.3", summary="release 1.2.3")
    assert revision_name(release) == "1.2.3"
    assert revision_mark(release) == "1.2.3"


def test_a_row_is_named_with_its_point() -> None:
    assert row_metric(row(1.0)) == "mt.real"
    assert row_metric(row(1.0, point=Point((("threads", 2),)))) == "mt.real at threads=2"


def test_a_value_has_its_interval_unless_one_value_has_none() -> None:
    assert row_value(row()) == "no value"
    assert row_value(row(1.5)) == "1.50 s"
    text = row_value(row(*(1.0 + number / 100 for number in range(10))))
    assert text.startswith("1.0")
    assert "[" in text


def test_an_effect_has_direction_ratio_and_interval() -> None:
    text = effect_words(0.5, 0.48, 0.52)
    assert text.startswith("50 % less (× 0.500")
    assert "95 % interval 0.480 to 0.520" in text


def test_names_of_files_never_collide() -> None:
    taken: list[str] = []
    for text in ("a b", "a/b", "a.b", "../", "…"):
        taken.append(slug(text, taken))
    assert taken == ["a-b", "a-b-2", "a-b-3", "chart", "chart-2"]
