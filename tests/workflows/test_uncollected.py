"""While very many values are made, nobody looks for cycles; afterwards it is as it was."""

from __future__ import annotations

import gc

import pytest

from perftrail.workflows.uncollected import uncollected


def test_the_collector_rests_and_goes_on_though_something_fails() -> None:
    with pytest.raises(KeyError), uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
