"""The garbage collector is off while very many objects are created, and restored afterwards."""

from __future__ import annotations

import gc
import weakref

import pytest

from perftrail.results import measured as subject
from perftrail.results.measured import free_piecewise, gc_disabled, gc_limited


class Thing:
    """An object whose destruction can be observed."""

    itself: Thing


def test_garbage_collection_pauses_and_resumes_even_after_an_error() -> None:
    with pytest.raises(KeyError), gc_disabled():
        assert not gc.isenabled()
        with gc_disabled():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_what_took_long_to_make_is_not_looked_through_again_until_all_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject, "COSTLY_SECONDS", -1.0)
    monkeypatch.setattr(subject, "ALL_EVERY", 2)
    monkeypatch.setattr(subject, "_costly", iter((1, 2)))
    before = gc.get_threshold()
    try:
        with gc_limited():
            kept, cycle = Thing(), Thing()
            cycle.itself = cycle
        gone, lost = weakref.ref(kept), weakref.ref(cycle)
        assert gc.get_threshold() == before
        assert gc.get_freeze_count()
        del kept, cycle
        assert gone() is None
        gc.collect()
        assert lost() is not None
        with gc_limited():
            pass
        assert lost() is None
    finally:
        gc.unfreeze()


def test_what_is_made_quickly_is_looked_through_as_always() -> None:
    with pytest.raises(KeyError), gc_limited():
        cycle = Thing()
        cycle.itself = cycle
        raise KeyError
    lost = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert lost() is None
    assert not gc.get_freeze_count()


def test_what_crumbles_goes_a_few_at_a_time_and_what_others_have_stays() -> None:
    things = [Thing() for _ in range(25)]
    kept, seen = things[7], [weakref.ref(thing) for thing in things]
    pieces: list[list[object]] = [[*things], []]
    del things
    free_piecewise(pieces, at_once=10)
    assert pieces == [[], []]
    assert [each() for each in seen if each() is not None] == [kept]
