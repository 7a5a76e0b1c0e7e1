"""Build and measure on other machines: what is sent there, what runs there, and what comes back."""

from __future__ import annotations
