"""A study's newest snapshot replaces the previous one, also during requests."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import StoreError
from perftrail.model.measurement import InvocationKey, Measurement
from perftrail.opening import open_results
from perftrail.store import open_store
from perftrail.web import studies as module
from perftrail.web.studies import served_studies
from tests.copied import copy_study

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from perftrail.model.store_records import StoreProgress
    from perftrail.model.study import Study
    from perftrail.ports import Store
    from perftrail.present.dashboard.snapshot import Snapshot
    from perftrail.store import Access
    from perftrail.web.studies import ServedStudy
    from tests.web.studies import Hostile


async def newest(served_study: ServedStudy, known: StoreProgress | None) -> Snapshot:
    """Wait for a snapshot of a store that has moved on since."""
    async with asyncio.timeout(30):
        while True:
            found = await served_study.snapshot()
            if found is not None and found.store_progress != known:
                return found
            await asyncio.sleep(0.02)


def test_a_new_snapshot_replaces_the_previous_one_which_is_freed_at_once(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHORTEST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "PAUSE_FACTOR", 0.0)
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.0)
    study = tmp_path / "beta"
    copy_study(hostile.root / "beta", study)

    async def follow(served_study: ServedStudy) -> None:
        before = await newest(served_study, None)
        count, mark = before.stored["invocations"], before.store_progress
        parts = [before, before.report_data, before.report_data.rows[0], before.report_data.rows[-1]]
        gone = [weakref.ref(part) for part in parts]
        machine, runnable = before.report_data.view.machine.id, min(before.report_data.rows[0].runnables)
        del before, parts
        with open_store(str(study / ".perftrail" / "results.db"), access="write") as store:
            key = InvocationKey(runnable=runnable, machine=machine, phase="sample", ordinal=1000)
            store.add(Measurement(key=key, started="2025-11-21", seconds=1.0, values={"seconds": 1.0}))
        after = await newest(served_study, mark)
        assert after.stored["invocations"] == count + 1
        assert len(after.report_data.rows[0].values) == 9
        async with asyncio.timeout(30):
            while any(each() is not None for each in gone):
                await asyncio.sleep(0.02)

    gc.disable()
    try:
        with served_studies((str(study / "perftrail.toml"),), store=None) as found:
            asyncio.run(follow(found["beta"]))
    finally:
        gc.enable()


def test_a_damaged_store_is_read_again_only_after_a_growing_pause_and_its_error_stays(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("SHORTEST_PAUSE_SECONDS", 0.0), ("PAUSE_FACTOR", 0.0), ("CHECK_SECONDS", 0.0)):
        monkeypatch.setattr(module, name, seconds)
    study = tmp_path / "beta"
    copy_study(hostile.root / "beta", study)
    file = study / ".perftrail" / "results.db"
    opened: list[str] = []

    def counted_open(
        study: Study, *, store: str | None = None, access: Access = "read"
    ) -> AbstractContextManager[Store]:
        opened.append(str(store))
        return open_results(study, store=store, access=access)

    async def follow(served_study: ServedStudy) -> None:
        await newest(served_study, None)
        whole = file.read_bytes()
        file.unlink()
        file.write_bytes(b"damaged" * 1000)
        for suffix in ("-wal", "-shm"):
            file.with_name(f"{file.name}{suffix}").unlink(missing_ok=True)
        served_study.close()
        opened.clear()
        for _ in range(20):
            assert await served_study.snapshot() is not None
            with pytest.raises(StoreError, match=r"results\.db"):
                await served_study.live()
            assert "results.db" in served_study.trouble
        assert len(opened) == 1
        monkeypatch.setattr(module, "TROUBLE_SECONDS", 0.01)
        served_study._retry_at = 0.0
        with pytest.raises(StoreError, match=r"results\.db"):
            await served_study.live()
        file.write_bytes(whole)
        async with asyncio.timeout(30):
            while served_study.trouble:
                await served_study.snapshot()
                await asyncio.sleep(0.02)
        assert await served_study.live() is not None

    monkeypatch.setattr(module, "open_results", counted_open)
    with served_studies((str(study / "perftrail.toml"),), store=None) as found:
        asyncio.run(follow(found["beta"]))
