"""The page and the Markdown: complete, self-contained, and inert for hostile text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from perftrail.charts.frame import Chart
from perftrail.charts.history import Events, history
from perftrail.errors import UsageError
from perftrail.local_engine import LocalEngine
from perftrail.present.html_page import (
    AT_ONCE,
    LOG_BYTES,
    MOST_ROWS,
    Drawings,
    Fact,
    Listing,
    Page,
    Section,
    Table,
    Verdict,
    bundle,
    log_end,
    svg,
    to_html,
    to_markdown,
    write_markdown,
    write_page,
)
from tests.charts.examples import HOSTILE, LABELS, PALETTE, along, examples

LONG = "x" * (LOG_BYTES + 100)


class Tags(HTMLParser):
    """The tags of a page as a browser reads them, and the content of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data


def a_page(*, chart: Chart | None = None, rows: int = 2, detail: int = 0) -> Page:
    """A page whose every text is hostile."""
    table = Table(
        name="hostile",
        head=("n", HOSTILE),
        rows=tuple((str(number), HOSTILE) for number in range(rows)),
        numbers=frozenset({0}),
    )
    section = Section(
        name="lead",
        title=HOSTILE,
        paragraphs=(HOSTILE,),
        chart=chart,
        tables=(table,),
        listings=(Listing(title=HOSTILE, text=HOSTILE),),
        detail=tuple(along(*range(detail))),
    )
    verdict = Verdict(
        sentence=HOSTILE, tone="better", facts=(Fact(label=HOSTILE, text=HOSTILE),), notes=(HOSTILE,)
    )
    return Page(question=HOSTILE, verdict=verdict, lead=section, sections=(), written_by="perftrail")


def columns_of(text: str) -> list[Any]:
    """The long columns that the page's script reads on demand, by number."""
    tags = Tags(text)
    kinds = [attributes for tag, attributes in tags.tags if tag == "script"]
    numbered = [
        (int(number), json.loads(script))
        for attributes, script in zip(kinds, tags.scripts, strict=True)
        if (number := attributes.get("data-column"))
    ]
    assert [number for number, _ in numbered] == list(range(len(numbered)))
    return [column for _, column in numbered]


def named(text: str, name: str) -> str:
    """The one value of an attribute in a page."""
    [value] = [found for _, attributes in Tags(text).tags if (found := attributes.get(name))]
    return value


def test_hostile_text_adds_no_tag_and_no_script() -> None:
    plain = Page(
        question="q",
        verdict=Verdict(sentence="s", tone="better", facts=(Fact(label="l", text="t"),), notes=("n",)),
        lead=Section(
            name="lead",
            title="t",
            paragraphs=("p",),
            chart=examples()["curve"],
            tables=(Table(name="hostile", head=("n", "h"), rows=(("0", "x"), ("1", "x"))),),
            listings=(Listing(title="t", text="t"),),
        ),
        sections=(),
        written_by="perftrail",
    )
    hostile = Tags(to_html(a_page(chart=examples()["curve"]), {}))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in Tags(to_html(plain, {})).tags]
    assert not any(name.startswith("on") for _, attributes in hostile.tags for name in attributes)


def test_the_page_loads_nothing_and_runs_only_its_own_scripts() -> None:
    text = to_html(a_page(chart=examples()["curve"]), {"example": "<svg/>"})
    addresses = [
        value
        for _, attributes in Tags(text).tags
        for name in ("src", "href")
        if (value := attributes.get(name))
    ]
    assert all(address.startswith(("data:image/svg+xml;base64,", "#")) for address in addresses)
    policy = next(value for tag, attributes in Tags(text).tags if (value := attributes.get("content")))
    assert "default-src 'none'" in policy
    assert policy.count("'sha256-") == 3
    assert "unsafe-inline" not in policy.split("style-src")[0]


def test_revisions_link_to_their_pages_on_the_web() -> None:
    address = "https://example.org/commit/3f9c2ab41d"
    page = replace(
        a_page(),
        verdict=Verdict(sentence=f"3f9c2ab41d {HOSTILE} 0123456789", tone="worse", facts=()),
        commits={"3f9c2ab41d": address},
    )
    text = to_html(page, {})
    links = [attributes["href"] for tag, attributes in Tags(text).tags if tag == "a"]
    assert [link for link in links if link and not link.startswith("#")] == [address]
    assert HOSTILE not in text


def test_markdown_has_no_sparklines() -> None:
    table = Table(
        name="t",
        head=("metric", "history", "newest"),
        rows=(("a", "M0,1 L2,3", "1 s"),),
        sparklines=frozenset({1}),
    )
    page = replace(a_page(), sections=(Section(name="t", title="t", tables=(table,)),))
    assert "| metric | newest |\n| :--- | :--- |\n| a | 1 s |" in to_markdown(page)


def test_the_page_is_below_one_and_a_half_megabytes() -> None:
    assert len(to_html(a_page(chart=examples()["curve"]), {}).encode()) < 1_500_000


def test_the_script_is_put_together_once_for_all_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bundle.cache_clear()
    script = bundle()
    [kept] = (tmp_path / "perftrail").iterdir()
    assert kept.read_text(encoding="utf-8") == script
    assert "vegaEmbed" in script
    kept.write_text("kept")
    bundle.cache_clear()
    assert bundle() == "kept"
    bundle.cache_clear()


def test_a_chart_and_its_sign_stay_on_one_line() -> None:
    fact = Fact(label="Effect", text="15 % less (× 0.85)")
    page = replace(a_page(), verdict=Verdict(sentence="15 % less", tone="better", facts=(fact,)))
    text = to_html(page, {})
    assert "15\u00a0% less (×\u00a00.85)" in text
    assert "15 % less" not in text


def test_hidden_rows_of_a_long_table_are_shown_on_request() -> None:
    text = to_html(a_page(rows=AT_ONCE + 70), {})
    assert [tag for tag, _ in Tags(text).tags].count("tr") == AT_ONCE + 1
    columns = [columns_of(text)[int(number)] for number in named(text, "data-columns").split()]
    assert columns == [[str(n) for n in range(AT_ONCE + 70)], [HOSTILE] * (AT_ONCE + 70)]
    assert named(text, "data-rows") == str(AT_ONCE + 70)


def test_a_table_that_is_the_answer_is_shown_whole() -> None:
    page = a_page(rows=AT_ONCE + 70)
    assert page.lead is not None
    whole = replace(page.lead, tables=tuple(replace(table, whole=True) for table in page.lead.tables))
    text = to_html(replace(page, lead=whole), {})
    assert [tag for tag, _ in Tags(text).tags].count("tr") == AT_ONCE + 70 + 1
    assert columns_of(text) == []
    assert "more rows" not in to_markdown(replace(page, lead=whole))
    assert "more rows" in to_markdown(page)


def test_a_single_further_row_is_counted_in_the_singular() -> None:
    assert "\n1 more row." in to_markdown(a_page(rows=MOST_ROWS + 1))
    assert "1 more row <button" in to_html(a_page(rows=AT_ONCE + 1), {})


def test_a_column_that_several_show_is_written_once() -> None:
    page = a_page(rows=AT_ONCE + 1)
    assert page.lead is not None
    again = replace(page.lead, tables=tuple(replace(table, name="again") for table in page.lead.tables))
    assert columns_of(to_html(replace(page, sections=(again,)), {})) == columns_of(to_html(page, {}))


def test_every_point_of_a_thinned_chart_is_there_for_a_closer_look() -> None:
    points = along(*range(3000))
    chart = history(points, Events(length=3000), labels=LABELS, palette=PALETTE)
    text = to_html(a_page(chart=chart, detail=3000), {})
    numbers, columns = json.loads(named(text, "data-detail")), columns_of(text)
    assert columns[numbers["position"]] == list(range(3000))
    assert columns[numbers["value"]][:3] == [0.1, 1.1, 2.1]


def test_markdown_keeps_hostile_text_text() -> None:
    text = to_markdown(a_page())
    assert not re.search(r"(?<!\\)<(?:img|/script)", text)
    assert "\u202e" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


def test_markdown_mentions_no_user_and_closes_no_issue() -> None:
    page = a_page()
    text = to_markdown(
        Page(
            question="fixes #1 by @all", verdict=page.verdict, lead=None, sections=(), written_by="perftrail"
        )
    )
    assert "@all" not in text
    assert "#1" not in text


def test_markdown_in_a_directory_shows_its_charts(tmp_path: Path) -> None:
    chart = replace(examples()["curve"], title=HOSTILE, caption=HOSTILE)
    text, drawn = write_markdown(a_page(chart=chart), str(tmp_path / "new"), Drawings(LocalEngine()))
    assert drawn.read_text(encoding="utf-8").startswith("<svg")
    shown = text.read_text(encoding="utf-8")
    [name] = re.findall(r"^!\[.*\]\((.*)\)$", shown, re.MULTILINE)
    assert text.parent / name == drawn
    assert not re.search(r"(?<!\\)<(?:img|/script)", shown)
    assert "charts/" not in to_markdown(a_page(chart=chart))


def test_each_chart_is_next_to_the_page_as_svg_and_png(tmp_path: Path) -> None:
    written = write_page(
        a_page(chart=examples()["curve"]), str(tmp_path / "new" / "report"), Drawings(LocalEngine())
    )
    page, drawn, picture = written
    assert page.name == "index.html"
    assert drawn.read_text(encoding="utf-8").startswith("<svg")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name another directory"):
        write_page(a_page(), str(tmp_path / "file" / "report"), Drawings(LocalEngine()))


def test_the_end_of_a_log_is_read_wherever_the_results_were_moved(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(f"{LONG}the end")
    assert log_end("/elsewhere/.perftrail/logs/a.log", tmp_path).endswith("the end")
    assert len(log_end("/elsewhere/.perftrail/logs/a.log", tmp_path)) == LOG_BYTES + 1


@pytest.mark.parametrize("log", ["/etc/passwd", "/x/logs/../../secret", "/x/logs/link", ""])
def test_a_store_cannot_have_other_files_quoted(tmp_path: Path, log: str) -> None:
    results = tmp_path / "results"
    (results / "logs").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (results / "logs" / "link").symlink_to(tmp_path / "secret")
    assert log_end(log, results) == ""


def test_a_chart_with_characters_that_no_image_can_have_is_drawn_with_their_escapes() -> None:
    name = "parse\x00\x1f\ufffe"
    chart = Chart(
        name="odd",
        title=name,
        caption="",
        spec={
            "title": name,
            "data": {"values": [{"name": name, "value": 1.0}]},
            "mark": "bar",
            "encoding": {
                "x": {"field": "name", "type": "nominal"},
                "y": {"field": "value", "type": "quantitative"},
            },
        },
    )
    assert "parse\\x00\\x1f\\ufffe" in svg(chart)
