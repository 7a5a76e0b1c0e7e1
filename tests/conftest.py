"""What all tests share: property tests have no deadline, since a busy machine is no defect; numpy has one thread."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from perftrail.cli.main import keep_to_one_thread

keep_to_one_thread()
settings.register_profile("perftrail", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("perftrail")
