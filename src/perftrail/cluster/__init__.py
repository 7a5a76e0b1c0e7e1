"""Build and measure on other machines: jobs, workers, and the transfer of studies, builds and results."""

from __future__ import annotations
