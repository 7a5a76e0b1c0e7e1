"""The fuzzing of the parsers finds nothing in a short run, and finds a parser that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.fuzz_parsers import guided, targets


@pytest.mark.parametrize("target", targets.TARGETS)
def test_a_short_run_reads_or_refuses_every_input(target: str, tmp_path: Path) -> None:
    corpus = targets.seeds(target)
    executions = guided.fuzz(target, seconds=0.3, seed=1, corpus=list(corpus), broken=f"{tmp_path}/broken-")
    assert executions >= len(corpus)
    assert [each.read_bytes() for each in tmp_path.glob("broken-*")] == []


def test_every_target_has_a_corpus() -> None:
    assert all(content for name in targets.TARGETS for content in targets.seeds(name))


def test_a_parser_that_fails_on_many_digits_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def parse(content: bytes) -> None:
        text = content.decode("latin-1")
        if text.isascii() and text.isdecimal():
            int(text)

    monkeypatch.setitem(targets.TARGETS, "planted", targets.Target(parse=parse))
    monkeypatch.setattr(guided, "PIECES", (b"9" * 5000,))
    guided.fuzz("planted", seconds=1, seed=1, corpus=[b"1"], broken=f"{tmp_path}/broken-")
    [broken] = tmp_path.glob("broken-*")
    assert len(broken.read_bytes()) > 4300
