"""Build and measure on other machines: what is sent there, what runs there, and what comes back.

Where jobs are performed.
"""

from __future__ import annotations
