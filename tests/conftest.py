"""What all tests share: property tests have no deadline, since a busy machine is no defect."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("perftrail", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("perftrail")
